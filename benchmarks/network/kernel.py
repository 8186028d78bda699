"""A network of the kernel's: a namespace for each party, and a link between each two that holds every packet.

Needs Linux, root, iproute2 and /dev/net/tun. The links are TUN devices, and bandwidth is a token bucket (tc tbf).
"""

from __future__ import annotations

import collections
import contextlib
import ctypes
import fcntl
import ipaddress
import os
import select
import shutil
import struct
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from itertools import combinations

from blindfit.coordinator.job.network import Line

TUNSETIFF, IFF_TUN_NO_PI = 0x400454CA, 0x1001
CLONE_NEWNET = 0x40000000
PREFIX = f"bf{os.getpid()}-"
QUEUE_MS, BURST_S = 50, 0.001
Addresses = dict[str, dict[str, str]]


def is_available() -> bool:
    """Return whether this process may make namespaces and devices."""
    has_all = all(map(shutil.which, ("ip", "tc"))) and os.path.exists("/dev/net/tun")
    return sys.platform == "linux" and os.geteuid() == 0 and has_all


def namespace(party: str) -> str:
    return PREFIX + party


@contextlib.contextmanager
def kernel_network(parties: Sequence[str], line: Line, congestion: str) -> Iterator[tuple[Addresses, dict[str, str]]]:
    """Make the namespaces and their links, and remove them at the end.

    Args:
        congestion: the name of TCP's congestion control.

    Yields:
        By party, the addresses of the others; and the address of each party for this process, without delay.
    """
    _remove(parties)
    with contextlib.ExitStack() as stack:
        stack.callback(_remove, parties)
        for party in parties:
            _ip("netns", "add", namespace(party))
            _inside(party, "ip", "link", "set", "lo", "up")
        direct = {party: _join_directly(number, party) for number, party in enumerate(parties)}
        there: Addresses = {party: {} for party in parties}
        wires = []
        for number, (one, other) in enumerate(combinations(parties, 2)):
            net = list(ipaddress.ip_network(f"10.93.{number}.0/30").hosts())
            ends = [(one, other, str(net[0])), (other, one, str(net[1]))]
            wires.append(tuple(_open_end(*end, line, congestion) for end in ends))
            there[one][other], there[other][one] = str(net[1]), str(net[0])
        stack.enter_context(_carry(wires, line.latency_s))
        yield there, direct


def _remove(parties: Sequence[str]) -> None:
    """Remove what is there; the kernel removes a namespace later, and its devices by themselves at once."""
    for number, party in enumerate(parties):
        for words in (["link", "delete", f"{PREFIX}{number}"], ["netns", "delete", namespace(party)]):
            subprocess.run(["ip", *words], stderr=subprocess.DEVNULL, check=False)


def _ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True)


def _inside(party: str, *words: str) -> None:
    _ip("netns", "exec", namespace(party), *words)


def _join_directly(number: int, party: str) -> str:
    """Join a namespace to this one by a pair of devices, and return the party's address on it."""
    ours, theirs = f"{PREFIX}{number}", f"{PREFIX}{number}p"
    _ip("link", "add", ours, "type", "veth", "peer", "name", theirs, "netns", namespace(party))
    _ip("addr", "add", f"10.94.{number}.1/30", "dev", ours)
    _ip("link", "set", ours, "up")
    _inside(party, "ip", "addr", "add", f"10.94.{number}.2/30", "dev", theirs)
    _inside(party, "ip", "link", "set", theirs, "up")
    return f"10.94.{number}.2"


def _open_end(party: str, other: str, address: str, line: Line, congestion: str) -> int:
    """Open the device of a link in a party's namespace."""
    device = f"to-{other}"[:15]
    descriptor = _open_device(namespace(party), device)
    net = str(ipaddress.ip_interface(f"{address}/30").network)
    _inside(party, "ip", "link", "set", device, "up", "mtu", "1500", "txqueuelen", "5000")
    _inside(party, "ip", "addr", "add", f"{address}/30", "dev", device)
    _inside(party, "ip", "route", "change", net, "dev", device, "congctl", "lock", congestion)
    if line.bits_per_s is not None:
        burst = max(3000, int(line.bits_per_s / 8 * BURST_S))
        limit = ["rate", f"{line.bits_per_s:.0f}bit", "burst", f"{burst}", "latency", f"{QUEUE_MS}ms"]
        _inside(party, "tc", "qdisc", "add", "dev", device, "root", "tbf", *limit)
    return descriptor


def _open_device(namespace: str, device: str) -> int:
    libc = ctypes.CDLL(None, use_errno=True)
    here, there = os.open("/proc/self/ns/net", os.O_RDONLY), os.open(f"/run/netns/{namespace}", os.O_RDONLY)
    try:
        if libc.setns(there, CLONE_NEWNET) != 0:
            sys.exit(f"cannot enter the namespace {namespace}: run this as root")
        descriptor = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
        fcntl.ioctl(descriptor, TUNSETIFF, struct.pack("16sH22x", device.encode(), IFF_TUN_NO_PI))
        return descriptor
    finally:
        libc.setns(here, CLONE_NEWNET)
        os.close(here)
        os.close(there)


@contextlib.contextmanager
def _carry(wires: Sequence[tuple[int, ...]], delay_s: float) -> Iterator[None]:
    """Carry packets in a process of its own until the block ends."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(write)
        with contextlib.suppress(BaseException):
            _carry_packets(wires, delay_s, read)
        os._exit(0)
    os.close(read)
    for descriptor in (end for wire in wires for end in wire):
        os.close(descriptor)
    try:
        yield
    finally:
        os.close(write)
        os.waitpid(child, 0)


def _carry_packets(wires: Sequence[tuple[int, ...]], delay_s: float, until: int) -> None:
    other_end = {end: other for wire in wires for end, other in (wire, wire[::-1])}
    on_their_way: collections.deque[tuple[float, int, bytes]] = collections.deque()
    while True:
        now = time.monotonic()
        while on_their_way and on_their_way[0][0] <= now:
            _, end, packet = on_their_way.popleft()
            with contextlib.suppress(BlockingIOError):
                os.write(end, packet)
        wait_s = max(0.0, on_their_way[0][0] - now) if on_their_way else None
        readable, _, _ = select.select([*other_end, until], [], [], wait_s)
        if until in readable:
            return
        for end in readable:
            for _ in range(64):
                try:
                    packet = os.read(end, 65535)
                except BlockingIOError:
                    break
                on_their_way.append((time.monotonic() + delay_s, other_end[end], packet))
