"""Encodings of 32 bytes that no party may accept as a point, and a way to put one in the place of another."""

from __future__ import annotations

from nacl import bindings

from blindfit.algorithms.alignment import psi

FIELD = 2**255 - 19
SIGN = 1 << 255


def _encoded(number: int) -> bytes:
    return number.to_bytes(psi.POINT_BYTES, "little")


ORDER_2 = _encoded(FIELD - 1)
ORDER_8 = bytes.fromhex("26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05")
ORDER_8_TOO = bytes.fromhex("c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a")
SMALL_ORDER = {
    "identity": _encoded(1),
    "order 2": ORDER_2,
    "order 4": _encoded(0),
    "order 4, other sign": _encoded(SIGN),
    "order 8": ORDER_8,
    "order 8, other sign": _encoded(int.from_bytes(ORDER_8, "little") | SIGN),
    "order 8, other y": ORDER_8_TOO,
    "order 8, other y and sign": _encoded(int.from_bytes(ORDER_8_TOO, "little") | SIGN),
}
NOT_CANONICAL = {
    f"p + {extra}, sign {sign}": _encoded(FIELD + extra + sign * SIGN) for extra in range(19) for sign in (0, 1)
} | {f"{name}, a negative zero": _encoded(y | SIGN) for name, y in (("identity", 1), ("order 2", FIELD - 1))}
OFF_THE_CURVE = {"y = 2": _encoded(2), "y = 7": _encoded(7)}


def with_torsion(point: bytes, torsion: bytes) -> bytes:
    """Return a point on the curve and of large order, but not in the prime subgroup."""
    return bindings.crypto_core_ed25519_add(point, torsion)


OFF_THE_SUBGROUP = {
    f"a point plus {name}": with_torsion(psi.hash_id("x"), torsion)
    for name, torsion in SMALL_ORDER.items()
    if name != "identity"
}

BAD_POINTS = SMALL_ORDER | NOT_CANONICAL | OFF_THE_CURVE | OFF_THE_SUBGROUP
