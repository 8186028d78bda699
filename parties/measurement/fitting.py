"""Label mechanisms are made in a process of their own, which may take so long and so much memory and no more.

A consumer chooses the settings, and some have a server solve linear programs for minutes. The process is told the prior
and no label: how long it takes, what it needs and whether it fails are matters of the estimate, which was charged
before it was made.
"""

from __future__ import annotations

import multiprocessing
import os
import resource
import sys
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import Any

from blindfit.algorithms.errors import BlindfitError, ComputeFailed
from blindfit.algorithms.privacy.label_mechanisms import LabelMechanism, MechanismSettings, Prior, make_mechanism
from blindfit.parties.settings import FitSettings

# What a fit imports is there when it starts, and so is not of the memory that it may need.
IMPORTED = ["blindfit.algorithms.privacy.label_mechanisms", "scipy.optimize", "scipy.sparse", "scipy.special"]
_processes = multiprocessing.get_context("forkserver")  # forked from a process of one thread: this one has many
_processes.set_forkserver_preload(IMPORTED)
MIB = 2**20


class LimitedMaker:
    """`make_mechanism` within limits."""

    def __init__(self, limits: FitSettings) -> None:
        self._limits = limits

    def __call__(self, settings: MechanismSettings, epsilon: float, prior: Prior | None) -> LabelMechanism:
        """Raises:
        ComputeFailed: a limit was reached.
        ConfigError, RangeError: these settings make no mechanism.
        """
        if not settings.takes_prior:
            return make_mechanism(settings, epsilon, prior)
        ours, theirs = _processes.Pipe(duplex=False)
        process = _processes.Process(
            target=_make, args=(theirs, self._limits, settings, epsilon, prior), name="fit", daemon=True
        )
        with ours:
            process.start()
            theirs.close()
            try:
                made = self._receive(ours, process)
            finally:
                process.kill()
                process.join()
                process.close()
        if isinstance(made, BlindfitError):
            raise made
        return made

    def _receive(self, ours: Connection, process: ForkServerProcess) -> LabelMechanism | BlindfitError:
        if not ours.poll(self._limits.time_limit_s):
            raise self._make_error(f"it took longer than fit.time_limit_s = {self._limits.time_limit_s:g}")
        try:
            made: LabelMechanism | BlindfitError | None = ours.recv()
        except EOFError:
            process.join()
            raise self._make_error(f"its process ended with {process.exitcode}") from None
        if made is None:
            raise self._make_error(f"it needed more than fit.memory_limit_mib = {self._limits.memory_limit_mib}")
        return made

    def _make_error(self, reason: str) -> ComputeFailed:
        return ComputeFailed(backend="fit of a label mechanism", reason=reason)


def _make(answer: Connection, limits: FitSettings, *asked: Any) -> None:
    """In the process: sends the mechanism, the error that refuses it, or None where memory does not suffice."""
    _limit(limits)
    made: LabelMechanism | BlindfitError | None
    try:
        made = make_mechanism(*asked)
    except BlindfitError as error:
        made = error
    except MemoryError:
        made = None
    answer.send(made)


def _limit(limits: FitSettings) -> None:
    """Of processor time too: should the party be killed, nobody else would end this process."""
    seconds = int(limits.time_limit_s * (os.cpu_count() or 1)) + 1
    wanted = {resource.RLIMIT_CORE: 0, resource.RLIMIT_CPU: seconds}
    if sys.platform == "linux":  # elsewhere the system does not hold to it
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        wanted[resource.RLIMIT_AS] = pages * resource.getpagesize() + limits.memory_limit_mib * MIB
    for which, most in wanted.items():
        hard = resource.getrlimit(which)[1]
        most = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(which, (most, hard))
