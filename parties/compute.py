"""The table [compute] of a party's file."""

from __future__ import annotations

import ipaddress
import re
from pathlib import Path
from typing import Literal

from pydantic import Field, model_validator

from blindfit.parties.tables import Settings
from blindfit.parties.wire.addresses import HOST, is_host

SCHEDULER = re.compile(rf"(?P<scheme>tls|tcp)://(?P<host>{HOST}):(?P<port>[0-9]{{1,5}})")
COMPUTE_TLS = {"certificate", "key", "authority"}
COMPUTE_OPTIONS = {
    "serial": set[str](),
    "loky": {"workers", "task_timeout_s"},
    "dask": {"address", "task_timeout_s"} | COMPUTE_TLS,
}


class ComputeSettings(Settings):
    """Workers for this party's vectors of ciphertexts: this process, this machine's cores, or a Dask cluster.

    A cluster also reads the rows of a WALR training and builds a measurement server's label index.

    Example:
        >>> paillier.ComputeSettings(backend="loky", workers=4).task_timeout_s
        600.0
    """

    backend: Literal["serial", "loky", "dask"] = "loky"
    """Workers for vectors of ciphertexts: "serial" is this process, "loky" the cores of this machine, "dask" a
    cluster."""
    workers: int | None = Field(None, ge=1, le=4096)
    """Number of worker processes. By default as many as this machine has cores; more do not help."""
    address: str | None = None
    """Address of the Dask scheduler, such as tls://scheduler:8786."""
    certificate: Path | None = None
    """Certificate of this party for the cluster, a PEM file."""
    key: Path | None = None
    """Private key of `compute.certificate`, a PEM file."""
    authority: Path | None = None
    """Certificate of the cluster's own authority, a PEM file. It may not be `identity.authority`, which peers have
    certificates of."""
    task_timeout_s: float = Field(600.0, gt=0, le=7 * 86400)
    """Longest wait for the next result of a worker, in seconds. Raise it for slow workers."""

    @model_validator(mode="after")
    def _nothing_is_set_in_vain(self) -> ComputeSettings:
        in_vain = self.model_fields_set - COMPUTE_OPTIONS[self.backend] - {"backend"}
        if in_vain:
            raise ValueError(f'{min(in_vain)} does nothing with backend = "{self.backend}", remove it')
        if self.workers == 1:
            raise ValueError('workers = 1 is only this process: set backend = "serial" and remove workers')
        return self

    @model_validator(mode="after")
    def _dask_is_whole(self) -> ComputeSettings:
        if self.backend != "dask":
            return self
        if self.address is None:
            raise ValueError('address is missing: backend = "dask" needs its scheduler, such as tls://scheduler:8786')
        scheme, host = _scheduler(self.address)
        given = {name for name in COMPUTE_TLS if getattr(self, name) is not None}
        if scheme == "tcp" and not _is_this_machine(host):
            raise ValueError("address: tcp:// is for a scheduler on this machine; to any other it is tls://")
        if scheme == "tcp" and given:
            raise ValueError(f"{min(given)} does nothing with a tcp:// address, remove it")
        if scheme == "tls" and given != COMPUTE_TLS:
            raise ValueError(f"{min(COMPUTE_TLS - given)} is missing: tls:// needs certificate, key and authority")
        return self


def _scheduler(address: str) -> tuple[str, str]:
    """Return scheme and host of tls://host:port."""
    match = SCHEDULER.fullmatch(address)
    if match is None or not 0 < int(match["port"]) < 2**16 or not is_host(match["host"]):
        raise ValueError(f"address: {address!r} is not of the form tls://host:port")
    return match["scheme"], match["host"].strip("[]")


def _is_this_machine(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
