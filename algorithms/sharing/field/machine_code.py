"""Products modulo 2^61 - 1 in machine code: one multiplication of 64 by 64 bits each, sums in 128 bits.

The code is made at run time from the few lines of LLVM below, so no compiler is needed. It has no branch and no address
that depends on an element. A product of two elements is below 2^122, so 64 of them fit into 128 bits; a sum is folded
(2^61 = 1) before it has taken in so many.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from blindfit.algorithms.llvm import INTEGER, POINTER, binding, compile_functions
from blindfit.algorithms.sharing.field.elements import Elements, Kernel, P

TERMS = 32  # of a sum before it is folded; a folded part counts for less than one term


class MachineCode:
    """See field.Kernel."""

    def __init__(self, functions: dict[str, Any]) -> None:
        self._functions = functions

    def products(self, a: Elements, b: Elements) -> Elements:
        result = np.empty(a.shape, dtype=np.uint64)
        self._functions["products"](result.ctypes.data, a.ctypes.data, b.ctypes.data, a.size)
        return result

    def times_vector(self, matrix: Elements, vector: Elements) -> Elements:
        matrix, result = np.ascontiguousarray(matrix), np.empty(len(matrix), dtype=np.uint64)
        self._functions["times"](result.ctypes.data, matrix.ctypes.data, vector.ctypes.data, *matrix.shape)
        return result

    def transposed_times_vector(self, matrix: Elements, vector: Elements) -> Elements:
        matrix, result = np.ascontiguousarray(matrix), np.empty(matrix.shape[1], dtype=np.uint64)
        sums = np.zeros((matrix.shape[1], 2), dtype=np.uint64)
        pointers = (result.ctypes.data, matrix.ctypes.data, vector.ctypes.data)
        self._functions["transposed_times"](*pointers, *matrix.shape, sums.ctypes.data)
        return result


@cache
def machine_code() -> MachineCode | None:
    """Return the kernel; None without llvmlite, without pointers of 64 bits, or if it disagrees with Python."""
    if binding() is None:
        return None
    kinds = {
        "products": (POINTER, POINTER, POINTER, INTEGER),
        "times": (POINTER, POINTER, POINTER, INTEGER, INTEGER),
        "transposed_times": (POINTER, POINTER, POINTER, INTEGER, INTEGER, POINTER),
    }
    code = MachineCode(compile_functions(_CODE.replace("$TERMS", str(TERMS)), kinds))
    return code if is_right(code) else None


def is_right(code: Kernel) -> bool:
    """Test products of the largest elements, which carry farthest, and of some others."""
    row = np.array([P - 1, P - 2, P // 2, 2**32, 2**29 - 1, 1, 0], dtype=np.uint64)
    matrix = np.vstack([np.full((2 * TERMS + 1, len(row)), P - 1, dtype=np.uint64), row])
    column = np.resize(row, len(matrix))
    rows, columns = matrix.tolist(), matrix.T.tolist()
    return bool(
        code.products(row, row).tolist() == [x * x % P for x in row.tolist()]
        and code.times_vector(matrix, row).tolist() == [_inner(each, row.tolist()) for each in rows]
        and code.transposed_times_vector(matrix, column).tolist() == [_inner(each, column.tolist()) for each in columns]
    )


def _inner(a: list[int], b: list[int]) -> int:
    return sum(x * y for x, y in zip(a, b, strict=True)) % P


_CODE = """
define private i128 @fold(i128 %x) alwaysinline {        ; 2^61 = 1: below 2^67 + 2^61
  %low = and i128 %x, 2305843009213693951
  %high = lshr i128 %x, 61
  %sum = add i128 %low, %high
  ret i128 %sum
}

define private i64 @settled(i128 %x) alwaysinline {       ; an element
  %once = call i128 @fold(i128 %x)
  %twice = call i128 @fold(i128 %once)
  %y = trunc i128 %twice to i64                           ; below 2^61 + 2^6
  %less = sub i64 %y, 2305843009213693951
  %sign = ashr i64 %less, 63                              ; -1 where it was below p
  %back = and i64 %sign, 2305843009213693951
  %z = add i64 %less, %back
  ret i64 %z
}

define private i128 @product(ptr %a, ptr %b) alwaysinline {
  %x = load i64, ptr %a
  %y = load i64, ptr %b
  %wide.x = zext i64 %x to i128
  %wide.y = zext i64 %y to i128
  %z = mul nuw i128 %wide.x, %wide.y
  ret i128 %z
}

define void @products(ptr noalias %out, ptr %a, ptr %b, i64 %n) {
entry:
  %some = icmp sgt i64 %n, 0
  br i1 %some, label %each, label %done
each:
  %i = phi i64 [0, %entry], [%i.next, %each]
  %a.at = getelementptr i64, ptr %a, i64 %i
  %b.at = getelementptr i64, ptr %b, i64 %i
  %z = call i128 @product(ptr %a.at, ptr %b.at)
  %y = call i64 @settled(i128 %z)
  %out.at = getelementptr i64, ptr %out, i64 %i
  store i64 %y, ptr %out.at
  %i.next = add nuw i64 %i, 1
  %more = icmp slt i64 %i.next, %n
  br i1 %more, label %each, label %done
done:
  ret void
}

; out_i = sum_j matrix_ij vector_j
define void @times(ptr noalias %out, ptr %matrix, ptr %vector, i64 %rows, i64 %columns) {
entry:
  %some = icmp sgt i64 %rows, 0
  br i1 %some, label %row, label %done
row:
  %i = phi i64 [0, %entry], [%i.next, %row.end]
  %first = mul i64 %i, %columns
  %row.at = getelementptr i64, ptr %matrix, i64 %first
  br label %block
block:                                                    ; of TERMS columns, or what is left
  %from = phi i64 [0, %row], [%to, %block.end]
  %sum = phi i128 [0, %row], [%folded, %block.end]
  %end = add i64 %from, $TERMS
  %short = icmp slt i64 %columns, %end
  %to = select i1 %short, i64 %columns, i64 %end
  %any = icmp slt i64 %from, %to
  br i1 %any, label %term, label %block.end
term:
  %j = phi i64 [%from, %block], [%j.next, %term]
  %part = phi i128 [%sum, %block], [%part.next, %term]
  %m.at = getelementptr i64, ptr %row.at, i64 %j
  %v.at = getelementptr i64, ptr %vector, i64 %j
  %z = call i128 @product(ptr %m.at, ptr %v.at)
  %part.next = add i128 %part, %z
  %j.next = add nuw i64 %j, 1
  %more.terms = icmp slt i64 %j.next, %to
  br i1 %more.terms, label %term, label %block.end
block.end:
  %block.sum = phi i128 [%sum, %block], [%part.next, %term]
  %folded = call i128 @fold(i128 %block.sum)
  %more.blocks = icmp slt i64 %to, %columns
  br i1 %more.blocks, label %block, label %row.end
row.end:
  %y = call i64 @settled(i128 %folded)
  %out.at = getelementptr i64, ptr %out, i64 %i
  store i64 %y, ptr %out.at
  %i.next = add nuw i64 %i, 1
  %more = icmp slt i64 %i.next, %rows
  br i1 %more, label %row, label %done
done:
  ret void
}

; out_j = sum_i matrix_ij vector_i, in one pass over the matrix; sums are zeros, 16 octets a column
define void @transposed_times(ptr noalias %out, ptr %matrix, ptr %vector, i64 %rows, i64 %columns, ptr noalias %sums) {
entry:
  %some = icmp sgt i64 %columns, 0
  br i1 %some, label %rows.begin, label %done
rows.begin:
  %any = icmp sgt i64 %rows, 0
  br i1 %any, label %row, label %settle
row:
  %i = phi i64 [0, %rows.begin], [%i.next, %row.end]
  %first = mul i64 %i, %columns
  %row.at = getelementptr i64, ptr %matrix, i64 %first
  %v.at = getelementptr i64, ptr %vector, i64 %i
  %v = load i64, ptr %v.at
  %wide.v = zext i64 %v to i128
  %i.next = add nuw i64 %i, 1
  br label %adding
adding:
  %j = phi i64 [0, %row], [%j.next, %adding]
  %m.at = getelementptr i64, ptr %row.at, i64 %j
  %m = load i64, ptr %m.at
  %wide.m = zext i64 %m to i128
  %z = mul nuw i128 %wide.m, %wide.v
  %sum.at = getelementptr i128, ptr %sums, i64 %j
  %sum = load i128, ptr %sum.at, align 8
  %new = add i128 %sum, %z
  store i128 %new, ptr %sum.at, align 8
  %j.next = add nuw i64 %j, 1
  %more = icmp slt i64 %j.next, %columns
  br i1 %more, label %adding, label %added
added:
  %rest = urem i64 %i.next, $TERMS
  %fold.now = icmp eq i64 %rest, 0
  br i1 %fold.now, label %folding, label %row.end
folding:
  %k = phi i64 [0, %added], [%k.next, %folding]
  %full.at = getelementptr i128, ptr %sums, i64 %k
  %full = load i128, ptr %full.at, align 8
  %folded = call i128 @fold(i128 %full)
  store i128 %folded, ptr %full.at, align 8
  %k.next = add nuw i64 %k, 1
  %more.k = icmp slt i64 %k.next, %columns
  br i1 %more.k, label %folding, label %row.end
row.end:
  %more.rows = icmp slt i64 %i.next, %rows
  br i1 %more.rows, label %row, label %settle
settle:
  %l = phi i64 [0, %rows.begin], [0, %row.end], [%l.next, %settle]
  %last.at = getelementptr i128, ptr %sums, i64 %l
  %last = load i128, ptr %last.at, align 8
  %y = call i64 @settled(i128 %last)
  %out.at = getelementptr i64, ptr %out, i64 %l
  store i64 %y, ptr %out.at
  %l.next = add nuw i64 %l, 1
  %more.l = icmp slt i64 %l.next, %columns
  br i1 %more.l, label %settle, label %done
done:
  ret void
}
"""
