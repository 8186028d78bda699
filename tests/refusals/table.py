"""Every place of the code that may refuse a job: the case that both commands refuse, or the reason why `check` cannot.

A place is named by the beginning of its name, as tests/refusals/sites.py writes it. The longest beginning counts.
"""

from __future__ import annotations

from collections.abc import Sequence

from tests.refusals.cases import CASES
from tests.refusals.sites import sites

PARTY = "another party is down, busy, or differs from its declaration"
DISK = "the disk or the memory is full, or a file on it is damaged"
USED_UP = "a limit was used up in between"
#: These are no refusals of a job before the first message that depends on a row.
LATER = "it comes after that message, so it is no refusal of a job that begins"
FILES = "the reading of the job and party files refuses it first, which is one function for both commands"
REMOTE = "only a running party refuses it: `check` asks that party (tests/refusals/test_parties_up.py)"
ELSEWHERE = "no job comes here: another command does, or a caller that calls the code wrongly"
ROWS = "it is a fact of rows, refused when the snapshot is made, to its owner only (tests/refusals/test_rows.py)"

EXCEPTIONS = (PARTY, DISK, USED_UP)
OUTSIDE = (LATER, FILES, REMOTE, ELSEWHERE, ROWS)

REASONS: dict[str, Sequence[str]] = {
    PARTY: [
        "coordinator/running/launcher.py _port",
        "parties/sessions/events.py _last_event",
        "parties/sessions/sessions.py Sessions._check_is_approved",
        "parties/vertical/checkpoints.py Running.refuse_another",
        "parties/measurement/ways/two_servers.py Meeting.agree",
        "parties/measurement/ways/two_servers.py AtActiveParty.add_up",
        "parties/measurement/ways/several_parties.py Blocks.want",
        "parties/measurement/ways/several_parties.py check_blocks",
        "parties/measurement/ways/encrypted_rows.py check_is_allowed: the approved job",
        "parties/measurement/charging.py ChargingService.check_snapshot",
        "parties/measurement/charging.py ChargingService.check_approval",
        "parties/measurement/charging.py check_same",
        "parties/measurement/release_labels.py LabelReleases._check_policy: the grid",
        "parties/label_dp/consumer.py mechanism_settings",
        "parties/predict/prediction.py JointPrediction.run",
        "parties/predict/in_shares.py scores_in_shares",
    ],
    DISK: [
        "coordinator/running/receipts.py",
        "parties/snapshots/directories.py only_publisher",
        "parties/snapshots/people.py",
        "parties/snapshots/rows_file.py",
        "parties/snapshots/snapshots.py Snapshots.publish: {}: its snapshot",
        "parties/snapshots/snapshots.py Snapshots.current",
        "parties/vertical/checkpoints.py Checkpoints._read",
        "parties/vertical/checkpoints.py make_damage_error",
        "parties/vertical/model_store.py PartStore.read",
        "parties/measurement/fitting.py",
        "parties/measurement/label_index.py open_index",
        "parties/measurement/label_index_build.py",
        "parties/measurement/mapped.py",
        "parties/measurement/ways/encrypted_rows.py load_or_create_key",
    ],
    USED_UP: [
        "parties/sessions/admission.py Admission._check_room",
        "parties/sessions/sessions.py Sessions.start",
    ],
    LATER: [
        "parties/measurement/ways/several_parties.py AtServer.can_repeat",
        "parties/vertical/linkages.py",
        "parties/walr/server.py",
        "parties/walr/holders.py count_bound.refuse",
        "parties/label_dp/consumer.py fit_rows",
        "parties/measurement/label_index.py JoinState",
        "parties/measurement/uploads.py Upload.joining",
        "parties/measurement/release_labels.py LabelReleases._recall",
        "parties/measurement/ways/shared_rows.py Meeting",
        "parties/measurement/ways/two_servers.py Meeting.compare",
        "parties/measurement/ways/two_servers.py Meeting._begin_exchange",
        "parties/measurement/ways/several_parties.py Blocks.rows",
        "parties/measurement/ways/several_parties.py AtServer._find_blocks",
        "parties/measurement/ways/several_parties.py AtServer._join_blocks",
        "parties/measurement/ways/several_parties.py AtServer._count_told_bits.refuse",
        "parties/predict/in_shares.py parameters_of",
    ],
    FILES: [
        "coordinator/running/rehearsal.py",
        "parties/sessions/admission.py Admission._check_policy: {} needs",
        "parties/sessions/admission.py Admission._check_policy: (_refuse)",
        "parties/sessions/admission.py Admission.check",
        "parties/training/feature_bounds.py read_bounds",
        "parties/training/feature_bounds.py _bounds",
        "parties/measurement/label_index.py write_index",
        "parties/vertical/seats.py refuse_dataset",
        "parties/vertical/prepared.py _numbers",
        "parties/measurement/ways/shared_rows.py MaskDealer.check",
    ],
    REMOTE: [
        "coordinator/running/reaching.py",
        "parties/sessions/admission.py Admission._check_policy: the parties draw",
        "parties/sessions/admission.py Admission._check_policy: it is",
        "parties/sessions/admission.py Admission._check_policy: it has no dataset",
        "parties/sessions/admission.py Admission._address_of: the address",
        "parties/snapshots/snapshots.py Snapshots.require_current",
    ],
    ELSEWHERE: [
        "parties/measurement/client.py",
        "coordinator/running/faults.py",
        "parties/vertical/checkpoints.py Checkpoints.base",
        "parties/sessions/purge.py",
        "parties/snapshots/populations.py refuse_another_population",
        "parties/snapshots/populations.py refuse_people_of_another",
        "parties/walr/release_document.py",
        "parties/sessions/admission.py Admission._check_name",
        "parties/sessions/admission.py Admission._take_receipts",
        "parties/store/receipts.py",
        "parties/snapshots/snapshot.py",
        "parties/vertical/model_store.py PartStore.path",
        "parties/vertical/prepared.py _is_positive",
        "parties/measurement/codec.py",
        "parties/measurement/charging.py ChargingService.dataset",
        "parties/measurement/charging.py ChargingService.check_policy",
        "parties/measurement/service.py",
        "parties/measurement/label_index.py LabelIndex.new_request",
        "parties/measurement/release_labels.py LabelReleases._check_policy",
        "parties/measurement/ways/encrypted_rows.py check_is_allowed: (refuse)",
        "parties/measurement/ways/several_parties.py refuse_blocks",
        "parties/measurement/ways/several_parties.py AtServer.check: {} is not one",
        "parties/measurement/ways/trusted.py",
        "parties/measurement/ways/two_servers.py AtServer",
        "parties/dp_lr/rows.py _labels",
        "algorithms/privacy/ledger.py verify_chain",
        "algorithms/privacy/ledger.py from_json_line",
        "algorithms/privacy/ledger.py Receipt.from_statement",
        "algorithms/privacy/ledger.py check_receipt",
    ],
    ROWS: [
        "parties/training/rows.py read_rows",
        "parties/training/split.py",
        "parties/evaluate/consumer.py read_scores",
        "parties/evaluate/consumer.py make_scored_rows",
    ],
}


def reason_of(site: str) -> str:
    """Return why `check` does not make a refusal; "" if a case shows that it does; "?" if the table lacks it."""
    said = [(len(at), reason) for reason, places in REASONS.items() for at in places if site.startswith(at)]
    said += [(len(case.at), "") for case in CASES if site.startswith(case.at)]
    return max(said)[1] if said else "?"


def counts() -> dict[str, int]:
    """Return the number of places for each reason; "" stands for refusals of both commands."""
    found = dict.fromkeys(("", *REASONS), 0)
    for site in sites().values():
        found[reason_of(site)] += 1
    return found
