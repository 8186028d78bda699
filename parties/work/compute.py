"""The processes that share this party's work on vectors: on this machine (loky), or on its own cluster (Dask).

Functions, arguments and results are pickled between processes of one organisation, which trust each other completely.
No bytes of a peer are unpickled, and no peer may have a certificate of the cluster.

The scheduler and the workers of a cluster have this version of Blindfit installed. Products hold Python's lock, so a
worker with several threads is no faster than one with a single thread: `dask worker --nworkers auto --nthreads 1`. A
worker without enough memory writes to its disk, unless `distributed.worker.memory.spill` is false there.
"""

from __future__ import annotations

import gc
import logging
import multiprocessing
import ssl
import threading
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import BrokenExecutor, CancelledError
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeVar

from blindfit.algorithms.errors import ComputeFailed, ConfigError, forget_frames
from blindfit.algorithms.workers import THIS_PROCESS, OpenWorkers, Task, Workers, in_this_process
from blindfit.parties.compute import ComputeSettings
from blindfit.parties.files.private_files import read_certificate, read_private_key
from blindfit.parties.settings import PartySettings

__all__ = ["ComputeSettings", "JoblibWorkers", "cluster_of", "cores", "open_workers", "workers_of"]

R = TypeVar("R")
Losses = Mapping[type[BaseException], tuple[str, str]]  # exception for lost workers -> reason, and advice

CONNECT_TIMEOUT_S = 5.0
FIRST_WORKER_TIMEOUT_S = 10.0
IDLE_WORKER_TIMEOUT_S = 60  # after it a process of loky ends; the next map starts another
LOKY_TRIES = 3
OUT_OF_MEMORY = "check the system's log: usually memory is short; if it is, run fewer workers on a machine"

_loky_turn = threading.Lock()  # joblib has one pool, and kills all of it when a task fails


def workers_of(settings: PartySettings, base_dir: Path) -> AbstractContextManager[Workers]:
    """Return a party's workers as `open_workers` does, without any that a peer could run."""
    if settings.compute.authority is not None:
        ours, shared = (
            read_certificate(base_dir / p) for p in (settings.compute.authority, settings.identity.authority)
        )
        if ours.public_key() == shared.public_key():
            raise ConfigError(
                f"{base_dir / settings.compute.authority} is the authority of [identity] too: every organisation that "
                "has a certificate of it could run code on the cluster",
                hint="make one only for the cluster: `blindfit certs authority DIR`, and name it in compute.authority",
            )
    return open_workers(settings.compute, base_dir)


def cluster_of(settings: PartySettings, base_dir: Path) -> OpenWorkers:
    """Return the opener of the party's own cluster, as in `workers_of`; `in_this_process` without a cluster."""
    return partial(workers_of, settings, base_dir) if settings.compute.backend == "dask" else in_this_process


@contextmanager
def open_workers(compute: ComputeSettings, base_dir: Path = Path()) -> Iterator[Workers]:
    """Yield the workers that the settings name. A cluster must be reachable and run this version of Blindfit.

    Args:
        compute: the settings.
        base_dir: folder at which relative paths of the settings start.

    Yields:
        The workers, for the functions of `blindfit.paillier`; they end with the block.

    Raises:
        ConfigError: a file of the cluster's identity is wrong, or Dask is not installed.
        ComputeFailed: the cluster cannot be reached, has no workers, or they run another version.

    Example:
        >>> w_enc = paillier.encrypt(paillier.Fixed.from_reals([0.5, -1.25], 16), randomisers)
        >>> X = paillier.Fixed.from_reals([[2.0, 0.0], [4.0, 1.0]], 12)
        >>> with paillier.open_workers(paillier.ComputeSettings(backend="serial")) as workers:
        ...     paillier.decrypt(paillier.rows_dot(X, w_enc, workers=workers), key).to_reals().tolist()
        [1.0, 0.75]
    """
    if compute.backend == "dask":
        with _connect(compute, base_dir) as client:
            yield _dask_workers(compute, client)
    else:
        count = 1 if compute.backend == "serial" else compute.workers or cores()
        yield THIS_PROCESS if count == 1 else _loky_workers(count, compute.task_timeout_s)


def cores() -> int:
    import joblib

    return int(joblib.cpu_count())


class JoblibWorkers:
    """Workers that run tasks through joblib; tasks that are lost with a worker are run again.

    Args:
        name: name of the backend, for errors.
        count: number of tasks that run at once.
        task_timeout_s: longest wait for the next result, in seconds.
        parallel: function that makes the joblib.Parallel of one map, which yields results in any order.
        tries: number of times that an unfinished task is run at most.
        turn: lock that is held during a map.
    """

    def __init__(
        self,
        name: str,
        count: int,
        task_timeout_s: float,
        parallel: Callable[[], Any],
        lost: Losses,
        *,
        tries: int = 1,
        turn: AbstractContextManager[Any] | None = None,
    ) -> None:
        self.name, self.count, self.task_timeout_s = name, count, task_timeout_s
        self._parallel, self._lost, self._tries, self._turn = parallel, lost, tries, turn or nullcontext()

    def map(self, function: Callable[..., R], tasks: Sequence[tuple[Any, ...]]) -> list[R]:
        calls = [Task(index, function, arguments) for index, arguments in enumerate(tasks)]
        results: dict[int, R] = {}
        cause: BaseException | None = None
        for _ in range(self._tries):
            try:
                self._collect([call for call in calls if call.index not in results], results)
            except tuple(self._lost) as error:
                cause = error
            except multiprocessing.TimeoutError as error:
                raise self._too_slow(len(results), len(calls)) from error
            else:
                return [results[index] for index in range(len(calls))]
        raise self._describe_death(cause, len(results), len(calls)) from cause

    def _collect(self, calls: list[Task], results: dict[int, Any]) -> None:
        """Add each result when it comes, so that finished results are kept after a worker dies."""
        from joblib import delayed

        if calls:
            with self._turn:
                # joblib would scatter bare arrays, and lose them with the worker that holds them; it does not scatter a
                # Task.
                results.update(self._parallel()(delayed(Task.run)(call) for call in calls))

    def _too_slow(self, done: int, tasks: int) -> ComputeFailed:
        return ComputeFailed(
            backend=self.name,
            failed=tasks - done,
            tasks=tasks,
            reason=f"waited {self.task_timeout_s:g} s for the next result",
            hint="look for a worker that is stuck or missing; if a task takes so long, raise compute.task_timeout_s",
        )

    def _describe_death(self, cause: BaseException | None, done: int, tasks: int) -> ComputeFailed:
        reason, hint = next(words for kind, words in self._lost.items() if isinstance(cause, kind))
        return ComputeFailed(backend=self.name, failed=tasks - done, tasks=tasks, reason=reason, hint=hint)


# --- this machine -------------------------------------------------------------------------------------


def _loky_workers(count: int, task_timeout_s: float) -> JoblibWorkers:
    import joblib

    parallel = partial(
        joblib.Parallel,
        n_jobs=count,
        backend="loky",
        timeout=task_timeout_s,
        return_as="generator_unordered",
        batch_size=1,
        max_nbytes=None,  # else large arrays, secret or not, are written to a folder of temporary files
        idle_worker_timeout=IDLE_WORKER_TIMEOUT_S,
    )
    lost: Losses = {BrokenExecutor: (f"worker processes died, {LOKY_TRIES} times in a row", OUT_OF_MEMORY)}
    return JoblibWorkers("loky", count, task_timeout_s, parallel, lost, tries=LOKY_TRIES, turn=_loky_turn)


# --- a cluster ----------------------------------------------------------------------------------------


def _dask_workers(compute: ComputeSettings, client: Any) -> JoblibWorkers:
    from distributed import KilledWorker

    name = _name(compute)
    count = _check_workers(name, client, compute.task_timeout_s)
    lost: Losses = {
        KilledWorker: ("one of them kills every worker that takes it", OUT_OF_MEMORY),
        CancelledError: (
            "the scheduler was lost",
            "start the scheduler and its workers again; look in its log for the reason",
        ),
    }
    parallel = partial(_dask_parallel, client, count, compute.task_timeout_s)
    return JoblibWorkers(name, count, compute.task_timeout_s, parallel, lost)


def _dask_parallel(client: Any, count: int, task_timeout_s: float) -> Any:
    import joblib

    if client.status != "running":
        raise CancelledError  # the same as for work in progress when the scheduler was lost
    return joblib.Parallel(
        backend=_dask_backend(client, count),
        timeout=task_timeout_s,
        return_as="generator_unordered",
        batch_size=1,
    )


def _dask_backend(client: Any, count: int) -> Any:
    """Return joblib's backend without two gaps: a task whose workers died is never reported, and one thread is not
    used.
    """
    from joblib._dask import DaskDistributedBackend

    class Backend(DaskDistributedBackend):  # type: ignore[misc]
        def effective_n_jobs(self, n_jobs: int) -> int:  # noqa: ARG002
            return max(2, count)  # with 1, joblib runs the tasks in this process

        def submit(self, func: Any, callback: Any = None) -> Any:
            future = super().submit(func, callback)
            future.add_done_callback(lambda done: done.exception() and callback(done.exception()))
            return future

    return Backend(client=client)


@contextmanager
def _connect(compute: ComputeSettings, base_dir: Path) -> Iterator[Any]:
    try:
        from distributed import Client
    except ImportError:
        raise ConfigError(
            'compute.backend = "dask" needs Dask, which is not installed',
            hint="run `pip install 'dask[distributed]>=2025.1'`",
        ) from None
    for logger in ("distributed", "distributed.client"):
        logging.getLogger(logger).setLevel(logging.CRITICAL)  # their messages are raised here instead
    security = _security(compute, base_dir)
    try:
        client = Client(compute.address, security=security, timeout=CONNECT_TIMEOUT_S, set_as_default=False)
    except (OSError, ValueError) as error:  # ValueError: the process that answers does not speak TLS
        failed = ComputeFailed(
            backend=_name(compute),
            reason=_why_not_connected(error),
            hint="start `dask scheduler` there; if the address is tls://, with a certificate of compute.authority",
        )
        forget_frames(error)  # they refer to the half-made client
    else:
        with client:
            yield client
        return
    gc.collect()  # here, where the client closes: if another client is made meanwhile, the collection would block
    raise failed


def _why_not_connected(error: BaseException | None) -> str:
    while error is not None:
        if isinstance(error, ssl.SSLError):
            return f"no TLS connection ({error.reason or 'cut off'})"
        error = error.__cause__
    return "no connection"


def _security(compute: ComputeSettings, base_dir: Path) -> Any:
    """Return mutual TLS, or None for a scheduler on this machine."""
    from distributed.security import Security

    if not (compute.certificate and compute.key and compute.authority):
        return None
    certificate, key, authority = (base_dir / path for path in (compute.certificate, compute.key, compute.authority))
    for path in (certificate, authority):
        read_certificate(path)  # for an error that names the file
    read_private_key(key, None)
    return Security(
        require_encryption=True,
        tls_ca_file=str(authority),
        tls_client_cert=str(certificate),
        tls_client_key=str(key),
    )


def _check_workers(name: str, client: Any, timeout_s: float) -> int:
    """Return the number of the workers' threads, after each worker has confirmed that it runs this version."""
    try:
        client.wait_for_workers(1, timeout=FIRST_WORKER_TIMEOUT_S)
        threads: dict[str, int] = client.ncores()
        asked = {address: _ask_version(client, address) for address in threads}
        said = {address: _read_version(answer, timeout_s) for address, answer in asked.items()}
    except TimeoutError as error:
        raise ComputeFailed(
            backend=name, reason="it has no workers, or they do not answer", hint="start or restart its workers"
        ) from error
    ours = f"Blindfit {version('blindfit')}"
    for address, theirs in said.items():
        if theirs != ours:
            raise ComputeFailed(
                backend=name,
                reason=f"the worker {address} has {theirs}, and this party {ours}",
                hint="install the same version for the scheduler, every worker and this party",
            )
    return sum(threads.values())


def _ask_version(client: Any, address: str) -> Any:
    return client.submit(version, "blindfit", key=f"blindfit-version-{uuid.uuid4()}", workers=[address], pure=False)


def _read_version(answer: Any, timeout_s: float) -> str:
    error = answer.exception(timeout=timeout_s)
    return f"Blindfit {answer.result()}" if error is None else f"no Blindfit that runs ({type(error).__name__})"


def _name(compute: ComputeSettings) -> str:
    return f"dask at {compute.address}"
