"""Jobs over a simulated network: the same model, a report of the network, and refusals."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from blindfit.coordinator.job.job import Job, load_job, read_job
from blindfit.coordinator.jobs.run import submit
from blindfit.coordinator.report.network import describe_network, network_lines
from blindfit.coordinator.running import session as sessions
from blindfit.coordinator.running.network.relays import Relays
from blindfit.coordinator.terminal.terminal import terminal
from tests.hints.following import led_past, refused
from tests.world import World
from tests.world.loans import loans, speed_is_not_measured
from tests.world.measured import shop_and_meter
from tests.world.vertical import bank_and_shops, weights

__all__ = ["speed_is_not_measured"]  # a fixture
SAID = "simulated: 2 ms one way (4 ms there and back), up to 1 ms of jitter, 50 Mbit/s"
EXACT = ["taylor.jitter=0", "taylor.gradient_noise=0", "taylor.unsafe=['no-jitter', 'no-gradient-noise']"]


def run(world: World, out: str, *more: str) -> dict[str, Any]:
    sets = [word for option in EXACT for word in ("--set", option)]
    done = world.blindfit("run", "job.toml", "--out", out, *sets, *more)
    assert done.returncode == 0, done.stderr
    said = " ".join(done.stdout.split())
    report: dict[str, Any] = json.loads(world.path(out, "report.json").read_text())
    assert ("network" in report) == (f"network {report.get('network')}" in said) == ("network" in said)
    return report


def test_a_training_gives_the_same_model_bits_and_its_reports_name_the_network(tmp_path: Path) -> None:
    world = bank_and_shops(tmp_path, rows=75, epochs=1)
    near = run(world, "near")
    far = run(world, "far", "--network", "2ms 1ms 50mbit")
    assert "network" not in near
    assert far["network"] == SAID
    assert far["job"]["network"] == {"latency": "2ms", "jitter": "1ms", "bandwidth": "50mbit", "pairs": {}}
    assert "Network simulated" not in world.path("near/report.html").read_text()
    assert f"Network {SAID}" in world.path("far/report.html").read_text()
    models = [weights(world, report["session"]) for report in (near, far)]
    assert models[0].keys() == models[1].keys() == {"bank", "shop-a", "shop-b"}
    for name, part in models[0].items():
        assert np.array_equal(part, models[1][name])
    scored = world.blindfit(
        "predict", "predict.toml", "--model", "far", "--out", "scored", "--network", "1ms", "--json"
    )
    assert json.loads(scored.stdout)["report"]["network"] == "simulated: 1 ms one way (2 ms there and back)"


def test_parties_dial_relays_and_the_coordinator_does_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened, proposed = [], []
    open_relays, proposal_of = Relays.open, sessions.proposal_of

    def note_routes(relays: Relays, addresses: dict[str, str]) -> Any:
        opened.append((dict(addresses), open_relays(relays, addresses)))
        return opened[-1][1]

    def note_addresses(job: Job[Any], session: str, addresses: dict[str, str], *more: Any) -> Any:
        proposed.append(dict(addresses))
        return proposal_of(job, session, addresses, *more)

    monkeypatch.setattr(Relays, "open", note_routes)
    monkeypatch.setattr(sessions, "proposal_of", note_addresses)
    done = shop_and_meter(tmp_path).blindfit("run", "job.toml", "--out", "out", "--network", "1ms")
    assert done.returncode == 0, done.stderr
    ((addresses, routes),) = opened
    assert proposed == [{**addresses, **routes[name]} for name in addresses]
    assert not set(addresses.values()) & {address for of in routes.values() for address in of.values()}


def test_a_report_says_that_nothing_crosses_the_network_of_one_party() -> None:
    parties = {"bank": {"role": "active", "dataset": "rows"}}
    asked = read_job({"protocol": "dp-lr", "parties": parties, "privacy": {"epsilon": 1.0}, "network": "100mbit"})
    said = "simulated: 100 Mbit/s; the job has one party, so nothing crossed the network"
    assert describe_network(asked) == {"network": said}
    assert list(network_lines(describe_network(asked))) == [("network", said)]
    assert list(network_lines({})) == []


def test_a_network_that_ends_in_the_middle_of_a_job_is_the_cause(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    open_relays = Relays.open

    def open_and_end(relays: Relays, addresses: dict[str, str]) -> Any:
        routes = open_relays(relays, addresses)
        os.kill(relays._process.pid, signal.SIGKILL)
        return routes

    monkeypatch.setattr(Relays, "open", open_and_end)
    done = shop_and_meter(tmp_path).blindfit(
        "run", "job.toml", "--out", "out", "--network", "1ms", "--set", "timeouts.reconnect_s=0.5"
    )
    assert done.returncode != 0
    assert "the simulated network ended with exit code -9" in done.stderr


def test_parties_that_are_up_have_a_network_of_their_own(tmp_path: Path) -> None:
    world = shop_and_meter(tmp_path)
    asked = load_job(world.path("job.toml"), ["network=40ms"])
    with refused("remove [network] from the job file, or start the parties here with `blindfit run`") as told:
        submit(asked, world.path("out"), terminal(quiet=True))
    assert not world.path("out").exists()
    led_past(told, lambda: submit(load_job(world.path("job.toml")), world.path("out"), terminal(quiet=True)))
    done = world.blindfit("run", "job.toml", "--out", "out", "--network", "fast")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("error: job.toml: network: 'fast' is not a number and a unit")


@pytest.mark.usefixtures("speed_is_not_measured")
@pytest.mark.parametrize("protocol", ["taylor", "falcon"])
def test_forecasts_are_for_the_network_of_the_job(tmp_path: Path, protocol: str) -> None:
    world = loans(tmp_path, protocol)
    before = {finding.text for finding in world.check()}
    found = [finding for finding in world.check("network=5ms 10mbit") if finding.text not in before]
    texts = {finding.about: finding.text for finding in found}
    assert texts["network"].startswith("5 ms one way (10 ms there and back), 10 Mbit/s: `blindfit run` simulates it")
    assert texts["bytes"].endswith(" at 10 Mbit/s")
    assert any(text.endswith(" at 100 Mbit/s") for text in before)
    if protocol == "falcon":
        assert " 5 ms from party to party " in texts["rounds"]
        assert any(" 40 ms from party to party " in text for text in before)
    assert texts.keys() == {"network", "bytes"} | ({"rounds"} if protocol == "falcon" else set())
