"""Approvals of an operator, and jobs that a policy accepts."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

DECISIONS = "tests/approval/test_decisions.py"
MEMBERS = "tests/approval/test_members.py"
REFUSALS = "tests/refusals/test_refusals.py::test_both_refuse_in_the_same_words"
POLICY = "tests/approval/test_policy.py"
SHOWN = "tests/approval/test_shown.py"
HANDSHAKE = "tests/wire/test_handshake.py"

MUTANTS = (
    # --- the digest
    Mutant(
        "any-digest-approves",
        (15,),
        "blindfit.coordinator.operator.deciding:decide",
        "if row.digest != digest and not (refuse and digest is None):",
        "if digest is None and not refuse:",
        (f"{DECISIONS}::test_another_job_behind_the_name_that_was_shown",),
    ),
    Mutant(
        "approved-by-name",
        (15,),
        "blindfit.coordinator.operator.deciding:decide",
        "not (refuse and digest is None):",
        "digest is not None:",
        (f"{DECISIONS}::test_another_digest_or_none_is_one_clear_line_and_changes_nothing",),
    ),
    Mutant(
        "any-state-is-approved",
        (15,),
        "blindfit.coordinator.operator.deciding:_waiting",
        'if row is None or row.state != "HELD":',
        "if row is None:",
        ("tests/approval/test_decisions.py::test_a_name_that_was_cancelled_comes_with_no_other_job",),
    ),
    Mutant(
        "a-yes-to-another-job-counts",
        (15,),
        "blindfit.parties.sessions.sessions:Sessions._wait_for_decision",
        "row.state == State.ACCEPTED and row.digest == session.digest",
        "row.state == State.ACCEPTED",
        ("tests/approval/test_decisions.py::test_a_yes_to_another_digest_is_none",),
    ),
    Mutant(
        "an-approval-that-cannot-be-written-is-lost",
        (17,),
        "blindfit.parties.sessions.sessions:Sessions._wait_for_decision",
        "            with contextlib.suppress(LedgerUnavailable):",
        "            with contextlib.suppress(KeyError):",
        ("tests/approval/test_decisions.py::test_an_approval_that_cannot_be_written_for_a_moment_loses_no_job",),
    ),
    Mutant(
        "begun-before-it-is-written",
        (17,),
        "blindfit.parties.sessions.sessions:Sessions._enter",
        "        state = next_state(session.state, step, session.id)\n        with self._store",
        "        session.state = state = next_state(session.state, step, session.id)\n        with self._store",
        (
            "tests/approval/test_decisions.py::test_a_start_that_cannot_be_written_starts_nothing_and_can_be_asked_again",
        ),
    ),
    Mutant(
        "an-end-that-cannot-be-written-is-told-nobody",
        (17,),
        "blindfit.parties.sessions.sessions:Sessions._end",
        "state=state, **describe_error(error)\n            )\n            self._set_state(session, state)\n",
        "state=state, **describe_error(error)\n            )\n            raise\n",
        ("tests/approval/test_decisions.py::test_who_watches_hears_of_an_end_that_cannot_be_written",),
    ),
    Mutant(
        "what-starts-is-not-what-was-approved",
        (15,),
        "blindfit.parties.sessions.sessions:Sessions._check_is_approved",
        "if row is None or row.digest != session.digest:",
        "if row is None:",
        (f"{DECISIONS}::test_what_runs_is_held_against_what_was_approved",),
    ),
    Mutant(
        "what-is-shown-is-not-what-is-approved",
        (15,),
        "blindfit.coordinator.operator.held:HeldJob.of",
        "if asked.digest != row.digest:",
        "if not row.digest:",
        (f"{DECISIONS}::test_a_row_that_shows_another_job_than_it_would_approve",),
    ),
    Mutant(
        "a-digest-without-members",
        (15,),
        "blindfit.algorithms.protocols.handshake:digest_of_agreement",
        "hashlib.sha256(parameters_digest(members) + parameters_digest(parameters))",
        "hashlib.sha256(parameters_digest(parameters))",
        (f"{DECISIONS}::test_whatever_an_operator_sees_is_in_the_digest",),
    ),
    Mutant(
        "tables-in-the-job-not-shown",
        (12,),
        "blindfit.coordinator.operator.held:not_default",
        '            yield from not_default(f"{prefix}{name}.", value)\n',
        "            continue\n",
        (f"{SHOWN}::test_no_field_is_left_out",),
    ),
    Mutant(
        "flags-not-shown-first",
        (12,),
        "blindfit.coordinator.operator.held:HeldJob.describe",
        "        for flag in asked.job.unsafe:\n",
        "        for flag in asked.job.unsafe[1:]:\n",
        ("tests/approval/test_shown.py::test_unsafe_flags_come_first_and_glare",),
    ),
    Mutant(
        "a-coordinator-writes-to-the-terminal",
        (15,),
        "blindfit.coordinator.operator.held:to_toml",
        "    return json.dumps(value).replace(",
        "    return str(value).replace(",
        (f"{SHOWN}::test_what_a_coordinator_writes_moves_no_cursor_and_makes_no_line",),
    ),
    Mutant(
        "one-server-alone-is-told-that-it-pays",
        (12,),
        "blindfit.coordinator.operator.held:HeldJob._payers",
        "        return servers or [",
        "        return servers[-1:] or [",
        (f"{SHOWN}::test_both_measurement_servers_are_told_that_they_pay",),
    ),
    # --- the policy
    Mutant(
        "who-takes-part-is-counted-by-coordinators-alone",
        (12,),
        "blindfit.parties.node:part_of",
        "Part(seat.check, seat.run, its.tables(), its.wrong_roles)",
        "Part(seat.check, seat.run, its.tables())",
        (f"{POLICY}::test_a_party_counts_itself_who_takes_part",),
    ),
    Mutant(
        "any-delta",
        (5,),
        "blindfit.parties.settings:PolicySettings.refusals",
        "if delta > self.max_delta:",
        "if delta > 1:",
        (f"{POLICY}::test_epsilon_and_delta_are_bounded_together",),
    ),
    Mutant(
        "any-flag",
        (12,),
        "blindfit.parties.settings:PolicySettings.refusals",
        "if flag not in self.unsafe:",
        "if not flag:",
        (f"{POLICY}::test_a_flag_that_a_party_does_not_list_is_refused",),
    ),
    Mutant(
        "policies-that-nobody-reads",
        (5, 12),
        "blindfit.parties.job.parameters:JobParameters.refusals",
        "yield from policy.refusals(self.epsilon, self.delta, self.unsafe_at(role))",
        "yield from policy.refusals(self.epsilon, 0.0)",
        (f"{POLICY}::test_a_flag_that_a_party_does_not_list_is_refused",),
    ),
    Mutant(
        "requests-past-most-delta",
        (5,),
        "blindfit.parties.measurement.charging:ChargingService.check_policy",
        "self.policy.refusals(cost.epsilon, cost.delta):",
        "self.policy.refusals(cost.epsilon, 0.0):",
        ("tests/measurement/test_release.py::test_max_delta",),
    ),
    # --- who takes part
    Mutant(
        "other-members-ignored",
        (15,),
        "blindfit.algorithms.protocols.handshake:step_2_compare",
        "    _require_same(mine.members, theirs.members, peer)\n",
        "",
        (f"{HANDSHAKE}::test_members_that_differ_are_named_on_both_sides",),
    ),
    Mutant(
        "datasets-not-told",
        (15,),
        "blindfit.parties.sessions.proposal:COMPARED",
        'COMPARED = ("role", "dataset")',
        'COMPARED = ("role",)',
        (f"{MEMBERS}::test_another_membership_is_one_line_on_both_sides",),
    ),
    # --- what check refuses, the party refuses, before a job begins
    Mutant(
        "a-job-begins-with-a-spent-budget",
        (16,),
        "blindfit.parties.store.charging:check_before",
        "if not any(",
        "if False and any(",
        (f"{REFUSALS}[walr: algorithms/privacy/ledger.py check_budget]",),
    ),
    Mutant(
        "a-dataset-of-another-active-party",
        (15,),
        "blindfit.parties.measurement.seat:MeasurementSeat.check_members",
        "if allowed is not None and member.name not in allowed:",
        "if False:",
        (f"{REFUSALS}[walr: parties/measurement/seat.py MeasurementSeat.check_members]",),
    ),
    Mutant(
        "uploads-are-counted-once-rows-have-come",
        (16,),
        "blindfit.parties.measurement.seat:MeasurementSeat.check_members",
        "check_uploads(reader, settings.policy, dataset, settings.name, active)",
        "pass",
        (f"{REFUSALS}[walr: parties/measurement/uploads.py check_uploads: (PolicyRefused)]",),
    ),
    Mutant(
        "a-mechanism-that-a-policy-does-not-list",
        (5,),
        "blindfit.parties.label_dp.settings:LabelDPJob.refusals",
        'role == "measurement" and',
        "False and",
        (f"{REFUSALS}[label_dp: parties/sessions/admission.py Admission._check_policy: (_refuse) #2]",),
    ),
    Mutant(
        "a-checked-job-passes-the-seat",
        (12,),
        "blindfit.parties.sessions.admission:Admission.check",
        "        part.check(asked.job, me)\n",
        "",
        (f"{REFUSALS}[walr: parties/training/rows.py check_features]",),
    ),
    Mutant(
        "a-check-keeps-the-job",
        (27,),
        "blindfit.parties.sessions.sessions:Sessions.check",
        "self.admission.check(proposal, proposed_by, self._sessions)",
        "self._keep(self.admission.open_session(proposal, proposed_by, self._sessions), proposal)",
        ("tests/refusals/test_parties_up.py::test_a_job_that_is_accepted",),
    ),
    Mutant(
        "whoever-is-a-peer-checks-jobs",
        (15,),
        "blindfit.parties.wire.guard:ALLOWED",
        '"/blindfit.v1.Control/Check": frozenset({"coordinator"})',
        '"/blindfit.v1.Control/Check": ALL_ROLES',
        (
            "tests/wire/test_guard.py::test_a_request_that_does_not_parse_is_malformed_for_callers_and_unread_for_others",
        ),
    ),
)
