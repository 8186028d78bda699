"""Label mechanisms are made in a separate process with limits of time and memory.

An active party chooses the settings, and for some settings a server solves linear programs for minutes. The process
gets the prior and no label. So its time, its memory and its failure depend on the labels only through the estimated
prior, which was charged before it was made.
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

# The modules that a fit imports are loaded at its start, so they do not count in the memory that the fit may need.
IMPORTED = ["blindfit.algorithms.privacy.label_mechanisms", "scipy.optimize", "scipy.sparse", "scipy.special"]
_processes = multiprocessing.get_context("forkserver")  # forked from a process of one thread: this one has many
_processes.set_forkserver_preload(IMPORTED)
MIB = 2**20


class LimitedMaker:
    """`make_mechanism` within limits of time and memory."""

    def __init__(self, limits: FitSettings) -> None:
        self._limits = limits

    def __call__(self, settings: MechanismSettings, epsilon: float, prior: Prior | None) -> LabelMechanism:
        """Return the mechanism.

        Raises:
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
    """Send the mechanism, the error that refuses it, or None if memory does not suffice. This runs in the new
    process.
    """
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
    """Limit memory and processor time of this process. If the party is killed, only the second limit ends it."""
    seconds = int(limits.time_limit_s * (os.cpu_count() or 1)) + 1
    wanted = {resource.RLIMIT_CORE: 0, resource.RLIMIT_CPU: seconds}
    if sys.platform == "linux":  # other systems do not enforce the limit
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        wanted[resource.RLIMIT_AS] = pages * resource.getpagesize() + limits.memory_limit_mib * MIB
    for which, most in wanted.items():
        hard = resource.getrlimit(which)[1]
        most = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(which, (most, hard))
