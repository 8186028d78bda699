"""One spelling of an id: two ids that look alike to a reader are the same, at every party.

    what differs                          so
    white space before or after           left out
    characters that nobody sees           left out: control characters, zero-width ones, byte order marks, soft hyphens
    composed or combining accents         composed (Unicode's normal form C)

Everything else counts: capitals, leading zeros, white space within, full-width digits. The rule has no options: parties
with different options would miss rows in common.
"""

from __future__ import annotations

import unicodedata
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

#: Control characters that are not white space, and Default_Ignorable_Code_Point of Unicode 16.
UNSEEN = (
    r"[\x{0}-\x{8}\x{E}-\x{1B}\x{7F}-\x{84}\x{86}-\x{9F}\x{AD}\x{34F}\x{61C}\x{115F}-\x{1160}\x{17B4}-\x{17B5}"
    r"\x{180B}-\x{180F}\x{200B}-\x{200F}\x{202A}-\x{202E}\x{2060}-\x{206F}\x{3164}\x{FE00}-\x{FE0F}\x{FEFF}\x{FFA0}"
    r"\x{FFF0}-\x{FFF8}\x{1BCA0}-\x{1BCA3}\x{1D173}-\x{1D17A}\x{E0000}-\x{E0FFF}]+"
)
_UNSEEN_ASCII = r"[\x{0}-\x{8}\x{E}-\x{1B}\x{7F}]+"


def one_spelling(texts: Any) -> Any:
    """Return each text in the spelling that stands for all that look like it; idempotent. Null stays null.

    Args:
        texts: a `pyarrow.StringArray`.
    """
    if pc.all(pc.string_is_ascii(texts), min_count=0).as_py():  # nearly always: no tables of Unicode are needed
        seen = pc.replace_substring_regex(texts, _UNSEEN_ASCII, "") if _any(texts, _UNSEEN_ASCII) else texts
        return pc.utf8_trim_whitespace(seen)
    seen = pc.replace_substring_regex(texts, UNSEEN, "") if _any(texts, UNSEEN) else texts
    # Arrow's own utf8_normalize decomposes accents before Arrow 26, so parties with different versions would differ.
    composed = [None if text is None else unicodedata.normalize("NFC", text) for text in seen.to_pylist()]
    return pc.utf8_trim_whitespace(pa.array(composed, seen.type))


def _any(texts: Any, pattern: str) -> bool:
    return bool(pc.any(pc.match_substring_regex(texts, pattern), min_count=0).as_py())
