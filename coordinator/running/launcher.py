"""`blindfit run`: temporary certificates, and one process for each party, all forked from one."""

from __future__ import annotations

import contextlib
import json
import secrets
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from blindfit.algorithms.errors import (
    BlindfitError,
    ConfigError,
    PeerAborted,
    PeerUnreachable,
    PolicyRefused,
    TransportError,
)
from blindfit.coordinator.job.job import Job
from blindfit.coordinator.job.out_dir import Out, hold_folder, make_folder
from blindfit.coordinator.running.nursery import Child, Nursery
from blindfit.coordinator.running.rehearsal import Rehearsal, check_apart, on_stage, overrides_of
from blindfit.coordinator.running.scratch import scratch_folder
from blindfit.coordinator.running.snapshots import publish_first
from blindfit.coordinator.running.watcher import Stop
from blindfit.parties.data.origin import near_names
from blindfit.parties.files.private_files import make_private, open_private
from blindfit.parties.identity import authority
from blindfit.parties.identity.identity import Identity, load_identity
from blindfit.parties.settings import PartySettings
from blindfit.parties.store.excess import PASSES_LIMIT
from blindfit.parties.systems import load_party
from blindfit.parties.tables import read_values, toml_of

READY_TIMEOUT_S = 60.0
STOP_TIMEOUT_S = 5.0
LOST_TIMEOUT_S = 1.0  # a connection is cut a moment before the system reports how its process ended
LOG = "party.log"
KILLED = "either memory ran out, which the system's log shows, or somebody killed the process"
CERTIFICATE_DAYS = 2
COORDINATOR = "coordinator"


@dataclass(frozen=True)
class Launched:
    """Running parties, and the coordinator's own identity.

    Attributes:
        processes: processes of the parties that were started here; each logs into its folder in `out`.
        struck: sentence for each party whose process this command has ended on purpose.
        routes: addresses at which each party finds the others, if a network is simulated between them.
        job: job as the parties run it.
        nursery: process that forked the parties.
    """

    addresses: dict[str, str]
    identity: Identity
    processes: Mapping[str, Child] = field(default_factory=dict)
    out: Path = Path()
    struck: dict[str, str] = field(default_factory=dict)
    start: Callable[..., dict[str, str]] = lambda *_names: {}
    """Start parties whose processes have ended, and return their addresses."""
    routes: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    job: Job[Any] | None = None
    nursery: Nursery | None = None

    def find_lost_process(self, error: BlindfitError) -> BlindfitError:
        """Return an error that names the party whose process ended during the job, and how; else the same error."""
        may_be_one = isinstance(error, TransportError | PeerAborted)
        give_up = time.monotonic() + (LOST_TIMEOUT_S if self.processes and may_be_one else 0)
        while True:
            for name, process in self.processes.items():
                if (code := process.poll()) is not None:
                    if self.nursery is not None and self.nursery.code is not None:
                        return nursery_lost(self.nursery, "run")
                    lost = process_lost(name, code, self.out / name / LOG)
                    lost.hint = self.struck.get(name, lost.hint)
                    return lost
            if time.monotonic() >= give_up:
                return self._with_silent_process(error)
            time.sleep(0.02)

    def _with_silent_process(self, error: BlindfitError) -> BlindfitError:
        """Return an error with a hint if the process of an unreachable party exists: nobody needs to start it."""
        if isinstance(error, PeerUnreachable) and error.peer in self.processes:
            process, log = self.processes[error.peer], self.out / error.peer / LOG
            error.hint = f"its process {process.pid} exists, and may be stopped or busy; look at its log {log}"
        return error

    def start_again(self, party: str) -> Launched:
        """Start a party again whose process has ended, and return the addresses of all parties."""
        self.processes[party].wait()
        struck = {name: why for name, why in self.struck.items() if name != party}
        return replace(self, addresses={**self.addresses, **self.start(party)}, struck=struck)


@contextlib.contextmanager
def launch(
    job: Job[Any],
    out: Out,
    command: Sequence[str] | None = None,
    say: Callable[[str], None] = lambda _: None,
    stop: Stop | None = None,
    rehearsal: Rehearsal | None = None,
    nursery: Nursery | None = None,
) -> Iterator[Launched]:
    """Publish datasets that have no snapshot, start every party of the job, and stop them at the end.

    Args:
        out: folder of the reports, or a function that makes it; a job with wrong files leaves no folder.
        command: command line that starts a process of Blindfit; None means `python -m blindfit`.
        say: function that prints a line about published datasets.
        stop: order of another thread to end the start.
        rehearsal: form of the rehearsal, if the job is rehearsed.
        nursery: process that forks the parties, also for other runs; None starts one for this run.

    Raises:
        KeyboardInterrupt: another thread asked to stop.
        ConfigError: a party has no config, or ended immediately; its last line is in the message.
        ConfigError, DataError: a dataset cannot be published.
    """
    for name in job.parties:
        check_member(job, name)
    coordinator = coordinator_name(job)
    with contextlib.ExitStack() as stack:
        temporary = stack.enter_context(scratch_folder("blindfit run"))
        # The nursery imports what parties need while this process publishes.
        nursery = nursery or stack.enter_context(Nursery(command))
        out = make_folder(out, job.protocol, rehearses=rehearsal is not None)
        stack.enter_context(hold_folder(out))
        if rehearsal is not None:
            check_apart({name: party_settings(job, name) for name in job.parties}, out)
            job = rehearsal.set_up(job, rehearsal.stage_in(out))
        publish_first(job, {name: party_settings(job, name) for name in job.parties}, say)
        certificates = temporary / "authority"
        roles = {name: member.role for name, member in job.parties.items()}
        _make_certificates(certificates, {**roles, coordinator: "coordinator"})
        processes: dict[str, Child] = {}
        stack.callback(_stop, processes)

        def start(*names: str) -> dict[str, str]:
            """Start parties, and return their addresses."""
            for name in names:
                processes[name] = _start(job, name, certificates, out, nursery, again=name in processes)
            started = {name: processes[name] for name in names}
            ports = _wait_for_ports(started, out, nursery, stop or Stop())
            return {name: f"127.0.0.1:{port}" for name, port in ports.items()}

        addresses = start(*job.parties)
        yield Launched(
            addresses, identity_of(certificates, coordinator), processes, out, job=job, start=start, nursery=nursery
        )


def _make_certificates(directory: Path, roles: Mapping[str, str]) -> None:
    """Make certificates from an authority that signs nothing else: its key is removed immediately.

    The parties' keys are removed with the run: its parties remove them, or the next run does, even after a kill.
    """
    authority.create_authority(directory, f"blindfit-run-{secrets.token_hex(4)}", days=CERTIFICATE_DAYS)
    for name, role in roles.items():
        authority.issue(directory, name, ["localhost"], days=CERTIFICATE_DAYS, role=role)
    (directory / "authority.key").unlink()


def _stop(processes: Mapping[str, Child]) -> None:
    """Stop all processes at the same time: they share one deadline."""
    for process in processes.values():
        process.terminate()
    give_up = time.monotonic() + STOP_TIMEOUT_S
    for process in processes.values():
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(max(0.0, give_up - time.monotonic()))
    for process in processes.values():
        process.kill()
    for process in processes.values():
        process.wait()


def identity_of(certificates: Path, name: str) -> Identity:
    files = authority.PartyFiles.in_folder(certificates / name)
    return load_identity(files.certificate, files.key, files.authority)


def party_settings(job: Job[Any], name: str) -> tuple[Path, PartySettings]:
    """Return the path of a party file and its settings, with the state folder of a rehearsal."""
    config = job.parties[name].config
    if config is None:
        raise ConfigError(
            f"parties.{name}.config is missing: `blindfit run` starts every party here",
            hint=f"set parties.{name}.config to its party file; if the parties already run, use "
            "`blindfit submit JOB.TOML`",
        )
    path = job.folder / config
    unread = {"certificate": "made by the launcher", "key": "", "authority": "", **_own_passphrase(path)}
    settings = load_party(path, [f"identity={_inline_table(unread)}"])
    if settings.name != name:
        raise ConfigError(f"{path}: name = {settings.name}, but the job calls this party {name}")
    return path, settings if job.stage is None else on_stage(settings, job, job.stage)


def check_member(job: Job[Any], name: str) -> None:
    """Check that the party file agrees with the job about the party.

    Raises:
        PolicyRefused: the file has another role.
        ConfigError: the file has no dataset with the name in the job.
    """
    (path, settings), party = party_settings(job, name), job.parties[name]
    if settings.role != party.role:  # in the party's words; its certificate for the run has the job's role
        raise PolicyRefused(party=name, field="role", reason=f"it is {settings.role}, not {party.role}")
    if party.dataset and party.dataset not in settings.datasets:
        raise ConfigError(
            f"parties.{name}.dataset: {path} has no dataset named {party.dataset}",
            hint=near_names(party.dataset, list(settings.datasets), "datasets of that file"),
        )


def _own_passphrase(path: Path) -> dict[str, str]:
    """Return the option for the passphrase of the party's secrets, which is that of its own key.

    That key is not read.
    """
    identity = read_values(path, []).get("identity")
    file = identity.get("passphrase_file") if isinstance(identity, dict) else None
    return {} if file is None else {"passphrase_file": str(file)}


def coordinator_name(job: Job[Any]) -> str:
    """Return the coordinator that every party knows."""
    known = [
        {peer for peer, p in party_settings(job, name)[1].peers.items() if p.role == COORDINATOR}
        for name in job.parties
    ]
    common = sorted(set.intersection(*known))
    if not common:
        raise ConfigError(
            "the parties know no common coordinator",
            hint='add [peers.coordinator] with role = "coordinator" to each file',
        )
    return common[0]


def _start(job: Job[Any], name: str, certificates: Path, out: Path, nursery: Nursery, *, again: bool) -> Child:
    path, settings = party_settings(job, name)
    files = authority.PartyFiles.in_folder(certificates / name)
    directory = out / name
    make_private(directory)
    overrides = {
        "listen": "127.0.0.1:0",  # a name may mean two addresses, and another program may have the port at one of them
        "identity": _inline_table(_paths(files)),  # the whole table: its own revocation list has no use here
        "output_dir": str(directory.resolve()),
        "log_format": "json",
        "policy.accept_seed": "true",  # all parties belong to this user
    }
    for peer, said in settings.peers.items():
        if said.address is not None:  # the address of a running party; in this run the job has all addresses
            overrides[f"peers.{peer}"] = _inline_table({"role": said.role})
    if settings.passphrase_file is not None:
        overrides["secrets.passphrase_file"] = toml_of(str(settings.passphrase_file))
    words = ["party", str(path), "--ready-file", str(directory / "port"), "--no-first-snapshots"]
    words += ["--launcher", str(certificates.parent)]
    if job.stage is not None:
        overrides |= dict(overrides_of(settings))
        words += ["--rehearse", "warn" if job.stage.warn_only else "refuse"]
    for key, value in overrides.items():
        words += ["--set", f"{key}={value}"]
    (directory / "port").unlink(missing_ok=True)
    with open_private(directory / LOG, "ab" if again else "wb") as log:
        log.write(b"\n" if again else b"")  # the end of the earlier process may have cut a line
    return nursery.start(words, settings.policy.systems, directory / LOG)


def _paths(files: authority.PartyFiles) -> dict[str, str]:
    paths = {"certificate": files.certificate, "key": files.key, "authority": files.authority}
    return {name: str(path.resolve()) for name, path in paths.items()}


def _inline_table(values: Mapping[str, str]) -> str:
    return "{" + ", ".join(f"{name} = {toml_of(value)}" for name, value in values.items()) + "}"


def _wait_for_ports(processes: Mapping[str, Child], out: Path, nursery: Nursery, stop: Stop) -> dict[str, int]:
    """Wait until every party serves; they start at the same time."""
    ports: dict[str, int] = {}
    give_up = time.monotonic() + READY_TIMEOUT_S
    while waiting := [name for name in processes if name not in ports]:
        stop.check()
        for name in waiting:
            if (port := _port(name, processes[name], out, nursery)) is not None:
                ports[name] = port
        if time.monotonic() >= give_up:
            raise TransportError(
                f"{waiting[0]} was not running after {READY_TIMEOUT_S:g} s", peer=waiting[0], step="start"
            )
        time.sleep(0.02)
    return ports


def _port(name: str, process: Child, out: Path, nursery: Nursery) -> int | None:
    """Return a party's port, or None while the party has no port.

    Raises:
        ConfigError, TransportError: its process has ended.
    """
    ready = out / name / "port"
    if ready.exists() and (text := ready.read_text().strip()):
        return int(text)
    if (code := process.poll()) is None:
        return None
    if nursery.code is not None:
        raise nursery_lost(nursery, "start")
    if code < 0:
        raise process_lost(name, code, out / name / LOG, "before it was ready")
    said, hint = _last_words((out / name / LOG).read_text(errors="replace"))
    raise ConfigError(f"{name} did not start: {said}", hint=hint)


def nursery_lost(nursery: Nursery, step: str) -> TransportError:
    """Return the error that all parties are lost because the process that forked them has ended."""
    how, said = _how(nursery.code or 0), " ".join(filter(None, _last_words(nursery.said))) if nursery.said else ""
    hint = said or (KILLED if nursery.code == -signal.SIGKILL else "")
    return TransportError(f"the process from which the parties start {how}", peer="", step=step, hint=hint)


def process_lost(name: str, code: int, log: Path, when: str = "in the middle of the job") -> TransportError:
    """Return the error about a process that has ended.

    code: code of `subprocess`: the number of a signal, negative, or an exit code.
    """
    how, hint = _how(code), KILLED if code == -signal.SIGKILL else "" if code <= 0 else _last_line(log)
    return TransportError(f"{name}'s process {how} {when}; its log is {log}", peer=name, step="run", hint=hint)


def _how(code: int) -> str:
    return f"was killed ({_signal(-code)})" if code < 0 else f"ended with exit code {code}"


def _signal(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _last_words(text: str) -> tuple[str, str]:
    """Return the error that a process wrote last, and its hint."""
    lines = [line for line in text.splitlines() if line.strip()]
    hint = lines.pop().removeprefix("hint: ") if lines and lines[-1].startswith("hint: ") else ""
    return (lines[-1].removeprefix("error: ") if lines else "it wrote nothing"), hint


def _last_line(path: Path) -> str:
    return " ".join(filter(None, _last_words(path.read_text(errors="replace"))))


def _records(lines: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Yield the records; a line that a crash or a full disk cut is left out."""
    for line in (line for line in lines if line.startswith("{")):
        with contextlib.suppress(ValueError):
            yield json.loads(line)


def reason_in_log(out: Path, name: str, error: str) -> tuple[str, str]:
    """Return what a party on this machine wrote about its wrong data or settings; peers learn less.

    Returns:
        Reason and hint; empty if it wrote none.
    """
    found = [r for r in log_of(out, name) if r.get("error") == error and "reason" in r]
    return (str(found[-1]["reason"]), str(found[-1].get("hint", ""))) if found else ("", "")


def cautions_in_log(out: Path, name: str) -> list[str]:
    """Return the cautions about its datasets that a party on this machine wrote for its operator only."""
    return [str(r["event"]) for r in log_of(out, name) if r.get("level") == "warning" and "dataset" in r]


def limits_in_log(out: Path, name: str) -> list[str]:
    """Return a party's sentences about limits that the job passes, of a budget or an account."""
    return [str(r["event"]) for r in log_of(out, name) if r.get(PASSES_LIMIT)]


def log_of(out: Path, name: str) -> list[dict[str, Any]]:
    """Return the records of the log of a party on this machine."""
    try:
        return list(_records((out / name / LOG).read_text(errors="replace").splitlines()))
    except OSError:
        return []
