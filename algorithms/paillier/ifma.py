"""Products mod n^2 eight at a time, where the processor multiplies 52-bit limbs in vectors (AVX-512 IFMA).

A number lies in limbs of 52 bits, in Montgomery's form; one vector holds the same limb of eight numbers, so that eight
products run side by side and never wait for one another's carries. n^2 < R / 4 with R = 2^(52 limbs), so numbers below
2 n^2 multiply to numbers below 2 n^2 and nothing is subtracted on the way ("almost Montgomery"). No branch and no
address depends on a number, other than which rows are multiplied.

The machine code is made at run time from the few lines of LLVM below, so that no compiler is needed; on any other
processor `vector_unit` gives None, and GMP does the work.

Source: Gueron, Krasnov 2016, "Accelerating big integer arithmetic using Intel IFMA extensions"; Walter 1999,
"Montgomery exponentiation needs no final subtractions".
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from functools import cache
from typing import Any

import gmpy2
import numpy as np
import numpy.typing as npt
from gmpy2 import mpz

Rows = npt.NDArray[np.uint64]
"""(count, limbs): one number a row, lowest limb first, in Montgomery's form and below 2 n^2."""

LIMB_BITS = 52
LANES = 8
LEAST_BITS = 512  # of a modulus: below, Python's own work is most of the time
_LIMB = np.uint64((1 << LIMB_BITS) - 1)
_FEATURES = ("avx512f", "avx512ifma")


class VectorUnit:
    """Products modulo one odd number, of rows of a table; see `vector_unit`."""

    def __init__(self, modulus: int) -> None:
        self.modulus = mpz(modulus)
        self.limbs = limbs_of(modulus)
        self._radix = mpz(1) << (LIMB_BITS * self.limbs)
        self._negated_inverse = int(-gmpy2.invert(self.modulus, 1 << LIMB_BITS) % (1 << LIMB_BITS))
        self._modulus_row = _limbs(self.limbs, [self.modulus])
        self._function = _compiled(self.limbs)
        self.multiplied = 0  # products so far

    def rows(self, integers: Sequence[int]) -> Rows:
        """Numbers in [0, n^2) as rows."""
        return _limbs(self.limbs, [integer * self._radix % self.modulus for integer in integers])

    def integers(self, rows: Rows) -> list[int]:
        """Rows as numbers in [0, n^2); one product a row."""
        one = _limbs(self.limbs, [1])  # 1 itself, not in Montgomery's form: multiplying by it takes the form off
        indices = np.stack([np.arange(len(rows)), np.full(len(rows), len(rows))], axis=1)
        plain = self.grouped_products(np.concatenate([rows, one]), indices)
        modulus = self.modulus
        return [number - modulus if number >= modulus else number for number in _joined(plain)]

    def power_tables(self, bases: Sequence[int], bits: int) -> Rows:
        """base^0 .. base^(2^bits - 1) of each base, one table after the other; a product an entry."""
        tables = np.empty((len(bases), 1 << bits, self.limbs), dtype=np.uint64)
        tables[:, 0] = self.rows([1])
        step = self.rows(bases)  # base^(2^bit)
        for bit in range(bits):
            size = 1 << bit
            lower = tables[:, :size].reshape(-1, self.limbs)
            tables[:, size : 2 * size] = self.products(lower, step.repeat(size, axis=0)).reshape(-1, size, self.limbs)
            step = self.products(step, step)
        return tables.reshape(-1, self.limbs)

    def products(self, a: Rows, b: Rows) -> Rows:
        """a_i b_i."""
        pairs = np.arange(2 * len(a)).reshape(2, -1).T
        return self.grouped_products(np.concatenate([a, b]), pairs)

    def grouped_products(self, table: Rows, indices: npt.NDArray[np.integer[Any]]) -> Rows:
        """For each line of indices, shape (groups, factors), the product of the rows of the table that it names.

        Raises:
            IndexError: an index lies outside the table.
        """
        groups, factors = indices.shape
        if groups and factors and not 0 <= int(indices.min()) <= int(indices.max()) < len(table):
            raise IndexError("a factor lies outside the table")
        padded = np.zeros((-(-groups // LANES) * LANES, factors), dtype=np.int64)
        padded[:groups] = indices
        by_lane = np.ascontiguousarray(padded.reshape(-1, LANES, factors).transpose(0, 2, 1))
        products = np.empty((len(padded), self.limbs), dtype=np.uint64)
        self.multiplied += groups * max(0, factors - 1)
        if groups and factors:
            self._function(
                products.ctypes.data,
                np.ascontiguousarray(table).ctypes.data,
                by_lane.ctypes.data,
                len(by_lane),
                factors,
                self._modulus_row.ctypes.data,
                self._negated_inverse,
            )
        return products[:groups]


def limbs_of(modulus: int) -> int:
    """So many that four times the modulus fits."""
    return -(-(int(modulus).bit_length() + 2) // LIMB_BITS)


def _limbs(count: int, integers: Sequence[int]) -> Rows:
    """Two limbs are thirteen octets: the first seven less half of one, and the rest."""
    pairs = -(-count // 2)
    octets = b"".join(int(integer).to_bytes(13 * pairs, "little") for integer in integers)
    padded = np.zeros((len(integers), pairs, 16), dtype=np.uint8)
    padded[..., :13] = np.frombuffer(octets, dtype=np.uint8).reshape(-1, pairs, 13)
    low = padded[..., :8].copy().view("<u8")[..., 0] & _LIMB
    high = padded[..., 6:14].copy().view("<u8")[..., 0] >> np.uint64(4) & _LIMB
    return np.ascontiguousarray(np.stack([low, high], axis=-1).reshape(len(integers), -1)[:, :count])


def _joined(rows: Rows) -> list[mpz]:
    """The inverse of `_limbs`."""
    even = rows if rows.shape[1] % 2 == 0 else np.pad(rows, ((0, 0), (0, 1)))
    low, high = even[:, ::2], even[:, 1::2]
    octets = np.zeros((*low.shape, 13), dtype=np.uint8)
    octets[..., :8] = (low | high << np.uint64(LIMB_BITS))[..., None].view(np.uint8)
    octets[..., 8:] = (high >> np.uint64(64 - LIMB_BITS))[..., None].view(np.uint8)[..., :5]
    return [mpz(int.from_bytes(row.tobytes(), "little")) for row in octets]


def vector_unit(modulus: int) -> VectorUnit | None:
    """A vector unit for an odd modulus, or None where this machine has none that multiplies as GMP does."""
    if modulus.bit_length() < LEAST_BITS or not _supported():
        return None
    unit = VectorUnit(modulus)
    return unit if _agrees_with_gmp(unit) else None


def _agrees_with_gmp(unit: VectorUnit) -> bool:
    """Products of the largest numbers, which carry farthest, and of some others."""
    top = unit.modulus - 1
    numbers = [top, mpz(1), mpz(0), top // 3, top >> 7, top - 2, top * 5 // 7, mpz(2)]
    indices = np.array([(i, j, 0) for i in range(LANES) for j in range(LANES)])
    expected = [numbers[i] * numbers[j] * top % unit.modulus for i, j, _ in indices.tolist()]
    return unit.integers(unit.grouped_products(unit.rows(numbers), indices)) == expected


@cache
def _supported() -> bool:
    try:
        import llvmlite.binding as llvm
    except ImportError:
        return False
    features = llvm.get_host_cpu_features()
    return all(features.get(name, False) for name in _FEATURES)


@cache
def _compiled(limbs: int) -> Any:
    """The machine code for numbers of so many limbs; ctypes lets other threads run meanwhile."""
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    machine = llvm.Target.from_default_triple().create_target_machine(
        cpu=llvm.get_host_cpu_name(), features=llvm.get_host_cpu_features().flatten(), opt=3, jit=True
    )
    module = llvm.parse_assembly(_CODE.replace("$LIMBS", str(limbs)).replace("$PADDED", str(limbs + 1)))
    module.verify()
    builder = llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options(speed_level=3))
    builder.getModulePassManager().run(module, builder)
    engine = llvm.create_mcjit_compiler(module, machine)
    engine.finalize_object()
    pointer, integer = ctypes.c_void_p, ctypes.c_int64
    kind = ctypes.CFUNCTYPE(None, pointer, pointer, pointer, integer, integer, pointer, integer)
    function = kind(engine.get_function_address("grouped_products"))
    _KEPT_ALIVE.append(engine)
    return function


_KEPT_ALIVE: list[Any] = []

_CODE = """
%V = type <8 x i64>                  ; one limb of eight numbers
%N = type [$PADDED x %V]             ; eight numbers, and a limb of zeros above

declare %V @llvm.x86.avx512.vpmadd52l.uq.512(%V, %V, %V)
declare %V @llvm.x86.avx512.vpmadd52h.uq.512(%V, %V, %V)

; a <- a b / R mod n.  For each limb of a: t <- (t + a_i b + m n) / 2^52, where m makes the lowest limb vanish.
define private void @multiply(ptr noalias %a, ptr noalias %b, ptr noalias %n, %V %k, ptr noalias %t) {
entry:
  store %N zeroinitializer, ptr %t
  br label %row
row:
  %i = phi i64 [0, %entry], [%i.next, %row.end]
  %ai.at = getelementptr %V, ptr %a, i64 %i
  %ai = load %V, ptr %ai.at
  %b.0 = load %V, ptr %b
  %n.0 = load %V, ptr %n
  %t.0 = load %V, ptr %t
  %u = call %V @llvm.x86.avx512.vpmadd52l.uq.512(%V %t.0, %V %ai, %V %b.0)
  %m = call %V @llvm.x86.avx512.vpmadd52l.uq.512(%V zeroinitializer, %V %u, %V %k)
  %v = call %V @llvm.x86.avx512.vpmadd52l.uq.512(%V %u, %V %m, %V %n.0)
  %over = lshr %V %v, splat (i64 52)
  br label %limb
limb:
  %j = phi i64 [0, %row], [%j.next, %limb]
  %bj = phi %V [%b.0, %row], [%b.next, %limb]
  %nj = phi %V [%n.0, %row], [%n.next, %limb]
  %carry = phi %V [%over, %row], [zeroinitializer, %limb]
  %j.next = add nuw i64 %j, 1
  %b.at = getelementptr %V, ptr %b, i64 %j.next
  %b.next = load %V, ptr %b.at
  %n.at = getelementptr %V, ptr %n, i64 %j.next
  %n.next = load %V, ptr %n.at
  %t.at = getelementptr %V, ptr %t, i64 %j.next
  %t.next = load %V, ptr %t.at
  %s0 = add %V %t.next, %carry
  %s1 = call %V @llvm.x86.avx512.vpmadd52h.uq.512(%V %s0, %V %ai, %V %bj)
  %s2 = call %V @llvm.x86.avx512.vpmadd52l.uq.512(%V %s1, %V %ai, %V %b.next)
  %s3 = call %V @llvm.x86.avx512.vpmadd52h.uq.512(%V zeroinitializer, %V %m, %V %nj)
  %s4 = call %V @llvm.x86.avx512.vpmadd52l.uq.512(%V %s3, %V %m, %V %n.next)
  %s = add %V %s2, %s4
  %t.to = getelementptr %V, ptr %t, i64 %j
  store %V %s, ptr %t.to
  %more = icmp ult i64 %j.next, $LIMBS
  br i1 %more, label %limb, label %row.end
row.end:
  %i.next = add nuw i64 %i, 1
  %more.rows = icmp ult i64 %i.next, $LIMBS
  br i1 %more.rows, label %row, label %settle
settle:                               ; limbs below 2^52 again
  %l = phi i64 [0, %row.end], [%l.next, %settle]
  %c = phi %V [zeroinitializer, %row.end], [%c.next, %settle]
  %tl.at = getelementptr %V, ptr %t, i64 %l
  %tl = load %V, ptr %tl.at
  %sum = add %V %tl, %c
  %low = and %V %sum, splat (i64 4503599627370495)
  %c.next = lshr %V %sum, splat (i64 52)
  %to = getelementptr %V, ptr %a, i64 %l
  store %V %low, ptr %to
  %l.next = add nuw i64 %l, 1
  %more.limbs = icmp ult i64 %l.next, $LIMBS
  br i1 %more.limbs, label %settle, label %done
done:
  ret void
}

; Eight rows of the table, one to a lane.
define private void @gather(ptr noalias %out, ptr %table, ptr %indices) {
entry:
  br label %lane
lane:
  %i = phi i64 [0, %entry], [%i.next, %lane.end]
  %index.at = getelementptr i64, ptr %indices, i64 %i
  %index = load i64, ptr %index.at
  %row = getelementptr [$LIMBS x i64], ptr %table, i64 %index
  br label %limb
limb:
  %j = phi i64 [0, %lane], [%j.next, %limb]
  %from = getelementptr i64, ptr %row, i64 %j
  %value = load i64, ptr %from
  %to = getelementptr [8 x i64], ptr %out, i64 %j, i64 %i
  store i64 %value, ptr %to
  %j.next = add nuw i64 %j, 1
  %more = icmp ult i64 %j.next, $LIMBS
  br i1 %more, label %limb, label %lane.end
lane.end:
  %i.next = add nuw i64 %i, 1
  %more.lanes = icmp ult i64 %i.next, 8
  br i1 %more.lanes, label %lane, label %done
done:
  ret void
}

define private void @scatter(ptr %products, ptr noalias %a) {
entry:
  br label %lane
lane:
  %i = phi i64 [0, %entry], [%i.next, %lane.end]
  %row = getelementptr [$LIMBS x i64], ptr %products, i64 %i
  br label %limb
limb:
  %j = phi i64 [0, %lane], [%j.next, %limb]
  %from = getelementptr [8 x i64], ptr %a, i64 %j, i64 %i
  %value = load i64, ptr %from
  %to = getelementptr i64, ptr %row, i64 %j
  store i64 %value, ptr %to
  %j.next = add nuw i64 %j, 1
  %more = icmp ult i64 %j.next, $LIMBS
  br i1 %more, label %limb, label %lane.end
lane.end:
  %i.next = add nuw i64 %i, 1
  %more.lanes = icmp ult i64 %i.next, 8
  br i1 %more.lanes, label %lane, label %done
done:
  ret void
}

define void @grouped_products(
    ptr %products, ptr %table, ptr %indices, i64 %groups, i64 %factors, ptr %modulus, i64 %k) {
entry:
  %a = alloca %N, align 64
  %b = alloca %N, align 64
  %n = alloca %N, align 64
  %t = alloca %N, align 64
  store %N zeroinitializer, ptr %a
  store %N zeroinitializer, ptr %b
  store %N zeroinitializer, ptr %n
  %k.0 = insertelement %V poison, i64 %k, i32 0
  %k.all = shufflevector %V %k.0, %V poison, <8 x i32> zeroinitializer
  br label %spread
spread:                               ; the modulus, the same in all lanes
  %l = phi i64 [0, %entry], [%l.next, %spread]
  %limb.at = getelementptr i64, ptr %modulus, i64 %l
  %limb = load i64, ptr %limb.at
  %limb.0 = insertelement %V poison, i64 %limb, i32 0
  %limb.all = shufflevector %V %limb.0, %V poison, <8 x i32> zeroinitializer
  %limb.to = getelementptr %V, ptr %n, i64 %l
  store %V %limb.all, ptr %limb.to
  %l.next = add nuw i64 %l, 1
  %more.limbs = icmp ult i64 %l.next, $LIMBS
  br i1 %more.limbs, label %spread, label %group
group:
  %g = phi i64 [0, %spread], [%g.next, %group.end]
  %g.first = mul i64 %g, %factors
  %g.indices = getelementptr [8 x i64], ptr %indices, i64 %g.first
  call void @gather(ptr %a, ptr %table, ptr %g.indices)
  br label %factor
factor:
  %f = phi i64 [1, %group], [%f.next, %factor.do]
  %more.factors = icmp ult i64 %f, %factors
  br i1 %more.factors, label %factor.do, label %group.end
factor.do:
  %f.indices = getelementptr [8 x i64], ptr %g.indices, i64 %f
  call void @gather(ptr %b, ptr %table, ptr %f.indices)
  call void @multiply(ptr %a, ptr %b, ptr %n, %V %k.all, ptr %t)
  %f.next = add nuw i64 %f, 1
  br label %factor
group.end:
  %out.at = mul i64 %g, 8
  %out = getelementptr [$LIMBS x i64], ptr %products, i64 %out.at
  call void @scatter(ptr %out, ptr %a)
  %g.next = add nuw i64 %g, 1
  %more.groups = icmp ult i64 %g.next, %groups
  br i1 %more.groups, label %group, label %done
done:
  ret void
}
"""
