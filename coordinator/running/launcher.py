"""`blindfit run`: certificates made for the occasion, one process for each party on this machine."""

from __future__ import annotations

import contextlib
import json
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

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
from blindfit.coordinator.running.scratch import scratch_folder
from blindfit.coordinator.running.snapshots import publish_first
from blindfit.coordinator.running.watcher import Stop
from blindfit.parties.data.origin import near_names
from blindfit.parties.files.private_files import make_private, open_private
from blindfit.parties.identity import authority
from blindfit.parties.identity.identity import Identity, load_identity
from blindfit.parties.settings import PartySettings
from blindfit.parties.systems import load_party
from blindfit.parties.tables import read_values, toml_of

BLINDFIT = (sys.executable, "-m", "blindfit")
READY_TIMEOUT_S = 60.0
STOP_TIMEOUT_S = 5.0
LOST_TIMEOUT_S = 1.0  # a connection is cut a moment before the system tells how its process ended
LOG = "party.log"
KILLED = "the system kills a process so when memory runs out, and its own log says so; or somebody did"
CERTIFICATE_DAYS = 2
COORDINATOR = "coordinator"


@dataclass(frozen=True)
class Launched:
    """Parties that are up, and the coordinator's own identity.

    Attributes:
        processes: of the parties that were started here; each logs into its folder in `out`.
        struck: by the party whose process this command has ended on purpose, the sentence that says so.
    """

    addresses: dict[str, str]
    identity: Identity
    processes: Mapping[str, subprocess.Popen[bytes]] = field(default_factory=dict)
    out: Path = Path()
    struck: dict[str, str] = field(default_factory=dict)
    restart: Callable[[str], str] = lambda _party: ""
    """Start a party again whose process has ended, and return its new address."""

    def find_lost_process(self, error: BlindfitError) -> BlindfitError:
        """Return an error that says which party's process ended during the job, and how; else the same error."""
        may_be_one = isinstance(error, TransportError | PeerAborted)
        give_up = time.monotonic() + (LOST_TIMEOUT_S if self.processes and may_be_one else 0)
        while not (ended := [name for name, process in self.processes.items() if process.poll() is not None]):
            if time.monotonic() >= give_up:
                return self._with_silent_process(error)
            time.sleep(0.02)
        lost = process_lost(ended[0], self.processes[ended[0]].returncode, self.out / ended[0] / LOG)
        lost.hint = self.struck.get(ended[0], lost.hint)
        return lost

    def _with_silent_process(self, error: BlindfitError) -> BlindfitError:
        """Say of a party that cannot be reached that its process is there: nobody needs to start it."""
        if isinstance(error, PeerUnreachable) and error.peer in self.processes:
            process, log = self.processes[error.peer], self.out / error.peer / LOG
            error.hint = f"its process {process.pid} is there, and may be stopped or busy; its log is {log}"
        return error

    def start_again(self, party: str) -> Launched:
        """Start a party again whose process has ended, and return where all parties are then."""
        address = self.restart(party)
        struck = {name: why for name, why in self.struck.items() if name != party}
        return replace(self, addresses={**self.addresses, party: address}, struck=struck)


@contextlib.contextmanager
def launch(
    job: Job[Any],
    out: Out,
    command: Sequence[str] | None = None,
    say: Callable[[str], None] = lambda _: None,
    stop: Stop | None = None,
) -> Iterator[Launched]:
    """Publish what the job reads and nobody has published, start every party of the job, and stop them at the end.

    Args:
        out: the folder of the reports, or what makes one; a job whose files are wrong leaves none.
        command: what is this command line, in a process of its own; None: `python -m blindfit`.
        say: prints a line about what was published.
        stop: another thread's wish that the start ends.

    Raises:
        KeyboardInterrupt: another thread asked to stop.
        ConfigError: a party has no config, or ended at once; its last line is in the message.
        ConfigError, DataError: a dataset cannot be published.
    """
    for name in job.parties:
        check_member(job, name)
    coordinator, out = coordinator_name(job), make_folder(out, job.protocol)
    publish_first(job, {name: party_settings(job, name) for name in job.parties}, say)
    processes: dict[str, subprocess.Popen[bytes]] = {}
    with hold_folder(out), scratch_folder("blindfit run") as temporary:
        certificates = temporary / "authority"
        roles = {name: member.role for name, member in job.parties.items()}
        _make_certificates(certificates, {**roles, coordinator: "coordinator"})

        def restart(name: str) -> str:
            processes[name].wait()
            _close(processes[name])
            with open_private(out / name / LOG, "ab") as log:
                log.write(b"\n")  # the end of the process may have cut a line
            processes[name] = _start(job, name, certificates, out, command or BLINDFIT, mode="ab")
            return address_of(name)

        def address_of(name: str) -> str:
            return f"127.0.0.1:{_port(name, processes[name], out, stop or Stop())}"

        try:
            for name in job.parties:
                processes[name] = _start(job, name, certificates, out, command or BLINDFIT)
            addresses = {name: address_of(name) for name in processes}
            yield Launched(addresses, identity_of(certificates, coordinator), processes, out, restart=restart)
        finally:
            _stop(list(processes.values()))


def _make_certificates(directory: Path, roles: Mapping[str, str]) -> None:
    """Make certificates of an authority that signs nothing else: its key is removed at once. The parties' keys are
    removed with the run, however this process ends: its parties remove them, or the next run does.
    """
    authority.create_authority(directory, f"blindfit-run-{secrets.token_hex(4)}", days=CERTIFICATE_DAYS)
    for name, role in roles.items():
        authority.issue(directory, name, ["localhost"], days=CERTIFICATE_DAYS, role=role)
    (directory / "authority.key").unlink()


def _stop(processes: list[subprocess.Popen[bytes]]) -> None:
    for process in processes:
        process.terminate()
    for process in processes:
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(STOP_TIMEOUT_S)
        process.kill()
        process.wait()
        _close(process)


def _close(process: subprocess.Popen[bytes]) -> None:
    if process.stdin is not None:
        process.stdin.close()


def identity_of(certificates: Path, name: str) -> Identity:
    files = authority.PartyFiles.in_folder(certificates / name)
    return load_identity(files.certificate, files.key, files.authority)


def party_settings(job: Job[Any], name: str) -> tuple[Path, PartySettings]:
    config = job.parties[name].config
    if config is None:
        raise ConfigError(
            f"parties.{name}.config is missing: `blindfit run` starts every party here",
            hint=f"set parties.{name}.config to its party file; where the parties are up, use "
            "`blindfit submit JOB.TOML`",
        )
    path = job.folder / config
    unread = {"certificate": "made by the launcher", "key": "", "authority": "", **_own_passphrase(path)}
    settings = load_party(path, [f"identity={_inline_table(unread)}"])
    if settings.name != name:
        raise ConfigError(f"{path}: name = {settings.name}, but the job calls this party {name}")
    return path, settings


def check_member(job: Job[Any], name: str) -> None:
    """Check that the party's file goes with what the job says of the party.

    Raises:
        PolicyRefused: the file has another role.
        ConfigError: the file has no dataset of the name that the job gives.
    """
    (path, settings), party = party_settings(job, name), job.parties[name]
    if settings.role != party.role:  # as the party would say; its certificate for the run has the job's role
        raise PolicyRefused(party=name, field="role", reason=f"it is {settings.role}, not {party.role}")
    if party.dataset and party.dataset not in settings.datasets:
        raise ConfigError(
            f"parties.{name}.dataset: {path} has no dataset named {party.dataset}",
            hint=near_names(party.dataset, list(settings.datasets), "datasets of that file"),
        )


def _own_passphrase(path: Path) -> dict[str, str]:
    """What locks the party's own key locks its secrets too, and that key is not read here."""
    identity = read_values(path, []).get("identity")
    file = identity.get("passphrase_file") if isinstance(identity, dict) else None
    return {} if file is None else {"passphrase_file": str(file)}


def coordinator_name(job: Job[Any]) -> str:
    """The one coordinator that every party knows."""
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


def _start(
    job: Job[Any], name: str, certificates: Path, out: Path, command: Sequence[str], mode: Literal["wb", "ab"] = "wb"
) -> subprocess.Popen[bytes]:
    path, settings = party_settings(job, name)
    files = authority.PartyFiles.in_folder(certificates / name)
    directory = out / name
    make_private(directory)
    overrides = {
        "listen": "127.0.0.1:0",  # a name may mean two addresses, and the port be somebody else's at one of them
        "identity": _inline_table(_paths(files)),  # the whole table: a revocation list of its own has no use here
        "output_dir": str(directory.resolve()),
        "log_format": "json",
        "policy.accept_seed": "true",  # all parties are this user's
    }
    for peer, said in settings.peers.items():
        if said.address is not None:  # of the party that is up there; here the job says where all are
            overrides[f"peers.{peer}"] = _inline_table({"role": said.role})
    if settings.passphrase_file is not None:
        overrides["secrets.passphrase_file"] = toml_of(str(settings.passphrase_file))
    words = [*command, "party", str(path), "--ready-file", str(directory / "port"), "--no-first-snapshots"]
    words += ["--launcher", str(certificates.parent)]
    for key, value in overrides.items():
        words += ["--set", f"{key}={value}"]
    (directory / "port").unlink(missing_ok=True)
    with open_private(directory / LOG, mode) as log:
        # The party's standard input ends when this process does, however that ends.
        return subprocess.Popen(words, stdin=subprocess.PIPE, stdout=log, stderr=log)


def _paths(files: authority.PartyFiles) -> dict[str, str]:
    paths = {"certificate": files.certificate, "key": files.key, "authority": files.authority}
    return {name: str(path.resolve()) for name, path in paths.items()}


def _inline_table(values: Mapping[str, str]) -> str:
    return "{" + ", ".join(f"{name} = {toml_of(value)}" for name, value in values.items()) + "}"


def _port(name: str, process: subprocess.Popen[bytes], out: Path, stop: Stop) -> int:
    ready = out / name / "port"
    give_up = time.monotonic() + READY_TIMEOUT_S
    while time.monotonic() < give_up:
        stop.check()
        if ready.exists() and (text := ready.read_text().strip()):
            return int(text)
        if (code := process.poll()) is not None:
            if code < 0:
                raise process_lost(name, code, out / name / LOG, "before it was up")
            said, hint = _last_words(out / name / LOG)
            raise ConfigError(f"{name} did not start: {said}", hint=hint)
        time.sleep(0.02)
    raise TransportError(f"{name} was not up after {READY_TIMEOUT_S:g} s", peer=name, step="start")


def process_lost(name: str, code: int, log: Path, when: str = "in the middle of the job") -> TransportError:
    """Args:
    code: as `subprocess` has it: the number of a signal, negative, or an exit code.
    """
    how = f"was killed ({_signal(-code)})" if code < 0 else f"ended with exit code {code}"
    hint = KILLED if code == -signal.SIGKILL else "" if code <= 0 else _last_line(log)
    return TransportError(f"{name}'s process {how} {when}; its log is {log}", peer=name, step="run", hint=hint)


def _signal(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _last_words(path: Path) -> tuple[str, str]:
    """The error that a party's process ended with, and its hint."""
    lines = [line for line in path.read_text(errors="replace").splitlines() if line.strip()]
    hint = lines.pop().removeprefix("hint: ") if lines and lines[-1].startswith("hint: ") else ""
    return (lines[-1].removeprefix("error: ") if lines else "it said nothing"), hint


def _last_line(path: Path) -> str:
    return " ".join(filter(None, _last_words(path)))


def _records(lines: Sequence[str]) -> Iterator[dict[str, Any]]:
    """A line that a crash or a full disk cut is left out."""
    for line in (line for line in lines if line.startswith("{")):
        with contextlib.suppress(ValueError):
            yield json.loads(line)


def reason_in_log(out: Path, name: str, error: str) -> tuple[str, str]:
    """What a party on this machine wrote of its bad data or settings; it tells a peer, and so the coordinator, less.

    Returns:
        The reason and its hint; empty: it wrote none.
    """
    found = [r for r in log_of(out, name) if r.get("error") == error and "reason" in r]
    return (str(found[-1]["reason"]), str(found[-1].get("hint", ""))) if found else ("", "")


def cautions_in_log(out: Path, name: str) -> list[str]:
    """Return what a party on this machine wrote about its datasets, for its operator only."""
    return [str(r["event"]) for r in log_of(out, name) if r.get("level") == "warning" and "dataset" in r]


def log_of(out: Path, name: str) -> list[dict[str, Any]]:
    """Return the records of the log of a party on this machine."""
    try:
        return list(_records((out / name / LOG).read_text(errors="replace").splitlines()))
    except OSError:
        return []
