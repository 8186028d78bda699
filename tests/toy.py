"""Secure product of two additively shared vectors: a whole protocol on one page, to prove the plumbing with.

Source: Beaver, CRYPTO 1991 (multiplication triples); MAC-free, as in the SPDZ online phase.
Model: two parties with shares, semi-honest, one dealer (the key node) that does not collude.

    step  who        does                                  sends
    0     dealer     a, b random; c = a*b                  TripleShare to each
    1     each P_i   [d] = [x] - [a];  [e] = [y] - [b]     Masked([d], [e])
    2     each P_i   open d, e                             --
                     [z] = [c] + d[b] + e[a] (+ de if i=0)

Departures: DP owns the names epsilon and delta, so the openings are d and e.
Learns: nothing beyond the uniform d, e.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from blindfit.algorithms.errors import MalformedMessage
from blindfit.algorithms.messages import Channel, ShareVector
from blindfit.algorithms.protocols.table import DATA, KEY, ONCE, Arrow, Table

MODULUS = 2**61 - 1
Vector = npt.NDArray[np.uint64]
Uniform = Callable[[int], int]  # uniform(m) -> integer in [0, m)

ROLES = {"p0": "active", "p1": "passive", "dealer": "key-node"}


# --- messages ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, repr=False)
class TripleShare:
    a: ShareVector
    b: ShareVector
    c: ShareVector


@dataclass(frozen=True, slots=True, repr=False)
class Masked:
    d: ShareVector
    e: ShareVector


TABLE = Table(
    "toy",
    Arrow("0", KEY, DATA, TripleShare, ONCE, "a share of a triple"),
    Arrow("1", DATA, DATA, Masked, ONCE, "a share of uniform openings"),
)


# --- steps ---------------------------------------------------------------------------------------


def step_0_dealer(n: int, uniform: Uniform) -> tuple[TripleShare, TripleShare]:
    a, b = draw(n, uniform), draw(n, uniform)
    shares = [share(v, uniform) for v in (a, b, mul(a, b))]
    return TripleShare(*(s[0] for s in shares)), TripleShare(*(s[1] for s in shares))


def step_1_mask(x: Vector, y: Vector, triple: TripleShare) -> Masked:
    return Masked(d=sub(x, triple.a), e=sub(y, triple.b))


def step_2_combine(index: int, triple: TripleShare, mine: Masked, theirs: Masked, *, peer: str) -> Vector:
    for name in ("d", "e"):
        if getattr(theirs, name).shape != getattr(mine, name).shape:
            raise MalformedMessage(culprit=peer, field=name, reason="has the wrong length", step="Masked")
    d, e = add(mine.d, theirs.d), add(mine.e, theirs.e)
    z = add(triple.c, add(mul(d, triple.b), mul(e, triple.a)))
    return add(z, mul(d, e)) if index == 0 else z


# --- roles ---------------------------------------------------------------------------------------


async def run_party(index: int, peer: str, x: Vector, y: Vector, channel: Channel) -> Vector:
    triple = await channel.receive("dealer", TripleShare)
    mine = step_1_mask(x, y, triple)
    await channel.send(peer, mine)
    theirs = await channel.receive(peer, Masked)
    return step_2_combine(index, triple, mine, theirs, peer=peer)


async def run_dealer(n: int, parties: tuple[str, str], uniform: Uniform, channel: Channel) -> None:
    for party, triple in zip(parties, step_0_dealer(n, uniform), strict=True):
        await channel.send(party, triple)


# --- the specification: all roles in one process, no channel ----------------------------------------


def run_locally(x: tuple[Vector, Vector], y: tuple[Vector, Vector], uniform: Uniform) -> tuple[Vector, Vector]:
    t0, t1 = step_0_dealer(len(x[0]), uniform)
    m0, m1 = step_1_mask(x[0], y[0], t0), step_1_mask(x[1], y[1], t1)
    return step_2_combine(0, t0, m0, m1, peer="p1"), step_2_combine(1, t1, m1, m0, peer="p0")


# --- vectors modulo MODULUS ------------------------------------------------------------------------


def vector(values: list[int]) -> Vector:
    return np.array([value % MODULUS for value in values], np.uint64)


def draw(n: int, uniform: Uniform) -> Vector:
    return vector([uniform(MODULUS) for _ in range(n)])


def share(v: Vector, uniform: Uniform) -> tuple[Vector, Vector]:
    mask = draw(len(v), uniform)
    return mask, sub(v, mask)


def add(v: Vector, w: Vector) -> Vector:
    return vector([p + q for p, q in zip(v.tolist(), w.tolist(), strict=True)])


def sub(v: Vector, w: Vector) -> Vector:
    return vector([p - q for p, q in zip(v.tolist(), w.tolist(), strict=True)])


def mul(v: Vector, w: Vector) -> Vector:
    return vector([p * q for p, q in zip(v.tolist(), w.tolist(), strict=True)])
