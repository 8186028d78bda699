"""The simulated network: what it holds back, how much it holds, and when it is refused or named."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

SETTINGS, RELAY = "tests/network/test_settings.py", "tests/network/test_relay.py"
RELAYS, JOBS = "tests/network/test_relays.py", "tests/network/test_jobs.py"
REFUSED = f"{SETTINGS}::test_another_value_is_refused_in_one_line"

MUTANTS = [
    Mutant(
        "a-network-without-a-delay-is-taken",
        (16,),
        "blindfit.coordinator.job.network:_check_delay",
        "if not 0 < ",
        "if not 0 <= ",
        (REFUSED,),
    ),
    Mutant(
        "a-network-of-a-party-that-is-not-in-the-job",
        (16,),
        "blindfit.coordinator.job.job:JobFile._links_parties_of_the_job",
        "() if self.network is None else self.network.find_unknown(self.parties)",
        "()",
        (REFUSED,),
    ),
    Mutant(
        "submit-ignores-the-network",
        (16,),
        "blindfit.coordinator.jobs.run:submit",
        "if job.network is not None:",
        "if False:",
        (f"{JOBS}::test_parties_that_are_up_have_a_network_of_their_own",),
    ),
    Mutant(
        "a-relay-that-holds-all-that-is-sent",
        (16,),
        "blindfit.coordinator.running.network.link:Window.find_room",
        "max(0, int(self.size) - (self.sent - self.acknowledged))",
        "MOST_WINDOW_BYTES",
        (f"{RELAY}::test_a_party_that_reads_nothing_makes_the_sender_wait_and_the_relay_holds_a_window",),
    ),
    Mutant(
        "a-cut-lets-through-what-is-on-its-way",
        (18,),
        "blindfit.coordinator.running.network.relay:Flow._deliver",
        "if self._breaker.is_open:",
        "if False:",
        (f"{RELAY}::test_nothing_crosses_a_cable_that_is_cut_and_all_of_it_does_once_it_is_mended",),
    ),
    Mutant(
        "a-party-is-blamed-for-the-network",
        (32,),
        "blindfit.coordinator.running.network.relays:relays",
        "raise opened.error or error from None",
        "raise",
        (f"{RELAYS}::test_a_process_of_relays_that_is_killed_is_named_as_the_cause",),
    ),
]
