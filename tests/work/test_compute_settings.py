"""[compute]: every option has an effect, or is refused in one line."""

from __future__ import annotations

from typing import Any

import pytest

from blindfit.algorithms.errors import ConfigError
from tests.work.parties import party

TLS = {"certificate": "c/certificate.pem", "key": "c/key.pem", "authority": "c/authority.pem"}


@pytest.mark.parametrize(
    ("compute", "expected"),
    [
        ({"backend": "serial", "workers": 4}, 'compute: workers does nothing with backend = "serial", remove it'),
        ({"backend": "serial", "task_timeout_s": 4}, 'task_timeout_s does nothing with backend = "serial", remove it'),
        ({"backend": "loky", "workers": 1}, 'workers = 1 is only this process: set backend = "serial"'),
        ({"backend": "loky", "workers": 0}, "compute.workers: must be at least 1"),
        ({"address": "tls://a:1"}, 'compute: address does nothing with backend = "loky", remove it'),
        ({"backend": "loky", **TLS}, 'compute: authority does nothing with backend = "loky", remove it'),
        ({"backend": "dask"}, 'address is missing: backend = "dask" needs its scheduler, such as tls://scheduler:8786'),
        (
            {"backend": "dask", "address": "tls://a:8786", **TLS, "workers": 4},
            'compute: workers does nothing with backend = "dask", remove it',
        ),
        ({"backend": "dask", "address": "tls://a:8786"}, "authority is missing: tls:// needs certificate, key and"),
        ({"backend": "dask", "address": "tls://a:8786", **TLS, "key": None}, "key is missing: tls:// needs"),
        ({"backend": "dask", "address": "tcp://10.0.0.4:8786"}, "address: tcp:// is for a scheduler on this machine"),
        ({"backend": "dask", "address": "tcp://localhost.evil.org:8786"}, "tcp:// is for a scheduler on this machine"),
        (
            {"backend": "dask", "address": "tcp://127.0.0.1:8786", **TLS},
            "compute: authority does nothing with a tcp:// address, remove it",
        ),
        *(
            ({"backend": "dask", "address": address}, f"address: {address!r} is not of the form tls://host:port")
            for address in (
                "scheduler:8786", "tls://scheduler", "tls://:8786", "tls://a:0", "tls://a:70000", "http://a:8786",
                "tls://a:8786/", "tls://me@a:8786", "inproc://1/2", "tls://a..b:8786", "tls://[..]:8786",
            )
        ),
        ({"backend": "spark"}, "compute.backend: must be 'serial', 'loky' or 'dask'"),
        ({"task_timeout_s": 0}, "compute.task_timeout_s: must be above 0"),
        ({"timeout_s": 5}, "compute.timeout_s is not an option; did you mean task_timeout_s?"),
    ],
)  # fmt: skip
def test_an_option_that_does_nothing_or_is_wrong_is_refused(compute: dict[str, Any], expected: str) -> None:
    with pytest.raises(ConfigError) as refused:
        party(**compute)
    assert expected in str(refused.value)
    assert "\n" not in str(refused.value)


def test_the_authority_of_the_peers_is_not_the_clusters() -> None:
    with pytest.raises(ConfigError, match=r"compute.authority is that of \[identity\]"):
        party(backend="dask", address="tls://a:8786", **{**TLS, "authority": "ca/./authority.pem"})


@pytest.mark.parametrize(
    "compute",
    [
        {},
        {"backend": "serial"},
        {"workers": 2, "task_timeout_s": 1.5},
        {"backend": "dask", "address": "tls://scheduler.example.org:8786", **TLS, "task_timeout_s": 60},
        {"backend": "dask", "address": "tcp://localhost:8786"},
        {"backend": "dask", "address": "tcp://127.0.0.53:8786"},
        {"backend": "dask", "address": "tcp://[::1]:8786"},
    ],
)
def test_what_does_something_is_taken(compute: dict[str, Any]) -> None:
    assert party(**compute).compute.model_dump(exclude_unset=True, mode="json") == compute


def test_this_machines_cores_are_the_default() -> None:
    assert party().compute.backend == "loky"
    assert party().compute.workers is None
