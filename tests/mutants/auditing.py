"""Dangerous changes of what `blindfit verify` shows of a release file, and of who may sign one."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

INPUTS = "tests/export/test_inputs.py"
SERVERS = "tests/export/test_lying_servers.py"

MUTANTS = (
    Mutant(
        "any-start-passes",
        (5, 28),
        "blindfit.coordinator.verify.inputs:start",
        "        return NotCovered(",
        "        return str(",
        (f"{INPUTS}::test_a_start_fitted_to_true_labels_does_not_pass_silently",),
    ),
    Mutant(
        "any-penalty-passes",
        (5, 28),
        "blindfit.coordinator.verify.inputs:penalty",
        'read.settings.l2 == "auto"',
        'read.settings.l2 != "none"',
        (f"{INPUTS}::test_a_start_fitted_to_true_labels_does_not_pass_silently",),
    ),
    Mutant(
        "a-start-is-not-compared-with-its-release",
        (5, 28),
        "blindfit.coordinator.verify.inputs:_match_release",
        '    require(is_same, "it is not the model of the release file that it names")\n',
        "",
        (f"{INPUTS}::test_a_start_that_is_not_the_model_of_its_release_file_fails",),
    ),
    Mutant(
        "one-more-training-covers-a-start",
        (5, 28),
        "blindfit.coordinator.verify.inputs:_not_covered_in",
        "if name.startswith(PREFIX)]",
        "if not name]",
        (f"{INPUTS}::test_a_start_whose_own_start_is_not_covered_is_not_covered",),
    ),
    Mutant(
        "a-start-of-any-ledger",
        (5, 28),
        "blindfit.coordinator.verify.inputs:_not_counted",
        "    if now.part.signer.key != then.part.signer.key:\n",
        "    if now is then:\n",
        (f"{INPUTS}::test_a_start_of_another_ledger_is_not_covered",),
    ),
    Mutant(
        "any-party-signs-as-a-server",
        (15,),
        "blindfit.coordinator.verify.server_checks:check_role",
        "    require(role == wanted,",
        "    require(bool(role),",
        ("tests/export/test_own_server.py",),
    ),
    Mutant(
        "a-party-acts-in-any-role",
        (15,),
        "blindfit.parties.node:PartyNode.__init__",
        "identity.role not in (None, settings.role)",
        "identity.role in ()",
        (f"{INPUTS}::test_a_party_does_not_start_in_another_role_than_its_certificates",),
    ),
    Mutant(
        "a-run-of-any-number-of-samples",
        (16,),
        "blindfit.algorithms.privacy.events:Sampling.__post_init__",
        "1 <= self.n_releases <= MOST_SAMPLED_RELEASES",
        "1 <= self.n_releases",
        (f"{SERVERS}::test_counts_that_no_ledger_has",),
    ),
    Mutant(
        "a-receipt-counts-more-than-its-ledger-has",
        (16,),
        "blindfit.algorithms.privacy.ledger:Receipt._is_possible",
        " and charged <= self.position",
        " and charged",
        (f"{SERVERS}::test_counts_that_no_ledger_has",),
    ),
    Mutant(
        "a-receipt-has-sums-of-any-size",
        (16,),
        "blindfit.algorithms.privacy.charges:Charges.__post_init__",
        "1 <= n <= MOST_UNITS",
        "1 <= n",
        (f"{SERVERS}::test_counts_that_no_ledger_has",),
    ),
    Mutant(
        "an-auditor-composes-samples",
        (16,),
        "blindfit.coordinator.verify.server_checks:_events",
        "        require(release.sampling is None,",
        "        require(release is not None,",
        (f"{SERVERS}::test_counts_that_no_ledger_has",),
    ),
    Mutant(
        "a-server-signs-as-another-one",
        (21,),
        "blindfit.coordinator.verify.server_checks:_names",
        "require(about.server == server.name",
        "require(bool(about.server)",
        (f"{SERVERS}::test_a_signed_lie_fails_the_check_that_it_is_about",),
    ),
)
