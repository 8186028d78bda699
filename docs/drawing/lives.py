"""The life of a session, and the life of a release."""

from __future__ import annotations

from collections.abc import Iterator

from kit import Canvas

SESSION = (
    "A coordinator proposes a job. A party with approve = ask holds it until its operator approves or refuses; any "
    "other party accepts it at once. When all have accepted, the session runs. It ends as DONE, FAILED, REFUSED or "
    "ENDED. A training that failed in the middle can be resumed from its checkpoints by a new session."
)
RELEASE = (
    "A dataset becomes a numbered snapshot, which never changes. A request names the snapshot and a question. If "
    "the question was answered before, the same bytes are sent again and nothing is charged. Otherwise the budget "
    "is checked, and the charge is written durably; only then is the answer sent, with a receipt. A "
    "restored ledger that lacks the charge is corrected by the receipt."
)


def pictures() -> Iterator[tuple[str, Canvas]]:
    yield "session", session()
    yield "release", release()


def session() -> Canvas:
    canvas = Canvas(940, 330, "The life of a session at one party", SESSION)
    canvas.text((20, 36), "The life of a session at one party", size=17, bold=True)
    canvas.box((20, 140), (140, 60), "proposed", "by a coordinator")
    canvas.box((225, 56), (190, 80), "HELD", "waits for the operator", '(approve = "ask")', kind="server")
    canvas.box((225, 212), (190, 66), "ACCEPTED", "waits for the others", kind="active")
    canvas.box((470, 212), (170, 66), "RUNNING", "agree, align, compute", kind="active")
    canvas.box((740, 56), (184, 62), "REFUSED", "by an operator, or by time", kind="bad")
    canvas.box((740, 132), (184, 56), "ENDED", "cancelled", kind="plain")
    canvas.box((740, 202), (184, 48), "DONE", "every part is stored", kind="good")
    canvas.box((740, 264), (184, 56), "FAILED", "with the first cause", kind="bad")
    canvas.line([(160, 158), (195, 158), (195, 95), (223, 95)])
    canvas.line([(160, 182), (195, 182), (195, 245), (223, 245)])
    canvas.line([(320, 136), (320, 210)])
    canvas.text((330, 178), "approve", muted=True)
    canvas.line([(415, 90), (738, 90)])
    canvas.text((570, 82), "refuse", muted=True, anchor="middle")
    canvas.line([(415, 245), (468, 245)])
    canvas.text((440, 237), "start", muted=True, anchor="middle")
    canvas.line([(640, 226), (738, 226)])
    canvas.text((690, 218), "finish", muted=True, anchor="middle")
    canvas.line([(640, 262), (690, 262), (690, 290), (738, 290)])
    canvas.text((668, 283), "fail", muted=True, anchor="middle")
    canvas.line([(555, 212), (555, 160), (738, 160)])
    canvas.text((640, 152), "cancel", muted=True, anchor="middle")
    canvas.line([(740, 312), (530, 312), (530, 280)], dashed=True)
    canvas.text((522, 306), "resume, as a new session", muted=True, anchor="end")
    return canvas


def release() -> Canvas:
    canvas = Canvas(940, 372, "The life of a release", RELEASE)
    canvas.text((20, 36), "The life of a release", size=17, bold=True)
    canvas.box((20, 70), (160, 66), "dataset", "may change")
    canvas.box((20, 190), (160, 66), "snapshot", "never changes", kind="server")
    canvas.box((250, 190), (160, 66), "question", "snapshot, mechanism,", "parameters, parties", kind="active")
    canvas.box((490, 70), (190, 66), "the same answer", "byte for byte; no charge", kind="good")
    canvas.box((490, 190), (190, 66), "charge", "written to the ledger first", kind="key")
    canvas.box((750, 190), (170, 66), "answer", "with fresh noise", kind="good")
    canvas.box((750, 290), (170, 66), "receipt", "signed; others keep it", kind="passive")
    canvas.box((490, 290), (190, 66), "refusal", "not enough budget is left", kind="bad")
    canvas.line([(100, 136), (100, 188)])
    canvas.text((108, 166), "blindfit snapshot", muted=True)
    canvas.line([(180, 223), (248, 223)])
    canvas.line([(330, 190), (330, 103), (488, 103)])
    canvas.text((410, 95), "asked before", muted=True, anchor="middle")
    canvas.line([(410, 223), (488, 223)])
    canvas.text((450, 215), "new", muted=True, anchor="middle")
    canvas.line([(680, 223), (748, 223)])
    canvas.line([(835, 256), (835, 288)])
    canvas.line([(330, 256), (330, 323), (488, 323)])
    canvas.text((410, 315), "over the budget", muted=True, anchor="middle")
    canvas.line([(750, 340), (715, 340), (715, 240), (682, 240)], dashed=True)
    canvas.text((708, 282), "restores", muted=True, anchor="end")
    return canvas
