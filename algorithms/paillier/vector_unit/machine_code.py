"""The machine code of unit.py, as LLVM for eight or four numbers side by side.

A vector has the same limb of every number. A half is `limbs` vectors and a vector of zeros above; a number is two
halves, r and s of r + n s. All halves lie in one workspace, which is filled with zeros at first:

    0 n    1 offset    2, 3 a    4, 5 b    6 twice a's s    7, 8 sums    9 m    10 an m that is not read    11.. table

The offset is a multiple of n from which every m can be subtracted limb by limb. No function is inlined, so that
both widths are made in a fifth of a second.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from llvmlite import ir

from blindfit.algorithms.paillier.vector_unit.shape import HALVES, LIMB_BITS, TABLE_SIZE, WINDOW_BITS

N, OFFSET, A, B, TWICE, SUM_R, SUM_S, M, UNREAD, TABLE = 0, 1, 2, 4, 6, 7, 8, 9, 10, HALVES
_WORD, _POINTER = ir.IntType(64), ir.PointerType()

Value = Any  # llvmlite has no types
Step = Callable[[Value, list[Value]], Sequence[Value] | None]


def llvm_code(lanes: int) -> str:
    """Return a module with the functions `horner` and `powers`."""
    return str(_Code(lanes).module)


class _Body:
    """A function being written: llvmlite's builder `at`, with vectors and loops."""

    def __init__(self, function: Value, vector: Value) -> None:
        self.at, self.vector, self.lanes = ir.IRBuilder(function.append_basic_block()), vector, vector.count

    def splat(self, number: int) -> Value:
        return ir.Constant(self.vector, [number] * self.lanes)

    def spread(self, word: Value) -> Value:
        """Return the same word in all lanes."""
        undefined, index = ir.Constant(self.vector, ir.Undefined), ir.IntType(32)
        first = self.at.insert_element(undefined, word, index(0))
        return self.at.shuffle_vector(first, undefined, ir.VectorType(index, self.lanes)([0] * self.lanes))

    def vectors(self, pointer: Value, offset: Value) -> Value:
        return self.at.gep(pointer, [offset], source_etype=self.vector)

    def words(self, pointer: Value, offset: Value) -> Value:
        return self.at.gep(pointer, [offset], source_etype=_WORD)

    def load(self, pointer: Value, index: Value) -> Value:
        return self.at.load(self.vectors(pointer, index), typ=self.vector, align=8 * self.lanes)

    def store(self, value: Value, pointer: Value, index: Value) -> None:
        self.at.store(value, self.vectors(pointer, index), align=8 * self.lanes)

    def load_word(self, pointer: Value, index: Value) -> Value:
        return self.at.load(self.words(pointer, index), typ=_WORD)

    def store_word(self, word: Value, pointer: Value, index: Value) -> None:
        self.at.store(word, self.words(pointer, index))

    def halves(self, workspace: Value, limbs: Value, *which: int) -> list[Value]:
        size = self.at.add(limbs, _WORD(1))
        return [self.vectors(workspace, self.at.mul(_WORD(one), size)) for one in which]

    def size(self, limbs: Value) -> Value:
        """Return the size of a number, in vectors."""
        return self.at.mul(self.at.add(limbs, _WORD(1)), _WORD(2))

    def each_word(self, number: Value, lane: Value, limbs: Value, do: Callable[[Value, Value], None]) -> None:
        """Call do(address, index in its row) for all limbs of one lane."""
        low, high = (self.words(half, lane) for half in self.halves(number, limbs, 0, 1))
        self.repeat(0, limbs, lambda j, _: do(self._limb(low, j), j))
        self.repeat(0, limbs, lambda j, _: do(self._limb(high, j), self.at.add(limbs, j)))

    def _limb(self, lowest: Value, j: Value) -> Value:
        return self.words(lowest, self.at.mul(j, _WORD(self.lanes)))

    def call(self, function: Value, *arguments: Value) -> None:
        self.at.call(function, arguments)

    def repeat(self, first: int, end: Value, step: Step, state: Sequence[Value] = ()) -> list[Value]:
        """Repeat state = step(i, state) for each i from first to below end; return the last state."""
        at = self.at
        before = at.block
        head, inside, after = (at.append_basic_block() for _ in range(3))
        at.branch(head)
        at.position_at_end(head)
        index, *carried = phis = [at.phi(kind) for kind in (_WORD, *(value.type for value in state))]
        at.cbranch(at.icmp_unsigned("<", index, end), inside, after)
        at.position_at_end(inside)
        following = [*(step(index, carried) or ())]
        following.insert(0, at.add(index, _WORD(1)))
        for phi, start, value in zip(phis, [_WORD(first), *state], following, strict=True):
            phi.add_incoming(start, before)
            phi.add_incoming(value, at.block)
        at.branch(head)
        at.position_at_end(after)
        return carried


class _Code:
    """One module; each method writes one of its functions."""

    def __init__(self, lanes: int) -> None:
        self.vector = ir.VectorType(_WORD, lanes)
        self.module = ir.Module()
        self._low, self._high = self._multiply_add("l"), self._multiply_add("h")
        self._one_product, self._two_products = self._write_reduced_sum(1), self._write_reduced_sum(2)
        self._settle, self._settle_twice = self._write_settle(1), self._write_settle(2)
        self._multiply, self._square = self._product(), self._squaring()
        self._spread_half, self._gather, self._scatter = (
            self._write_spread(),
            self._write_gather(),
            self._write_scatter(),
        )
        self._select = self._write_select()
        self._horner()
        self._powers()

    def _multiply_add(self, part: str) -> Value:
        """Return the function a + (lower or higher 52 bits of b c)."""
        kind = ir.FunctionType(self.vector, [self.vector] * 3)
        return ir.Function(self.module, kind, f"llvm.x86.avx512.vpmadd52{part}.uq.{64 * self.vector.count}")

    def _function(self, name: str, *kinds: Value, private: bool = True) -> tuple[Value, _Body]:
        function = ir.Function(self.module, ir.FunctionType(ir.VoidType(), kinds), name)
        if private:
            function.linkage = "private"
            function.attributes.add("noinline")
        return function, _Body(function, self.vector)

    # --- arithmetic ---------------------------------------------------------------------------------

    def _write_reduced_sum(self, count: int) -> Value:
        """sum <- (sum + a b [+ c d] + m n) / R, its limbs not carried; m is kept.

        For each limb x of a: sum <- (sum + x b + m n) / 2^52, where this limb of m makes the lowest one vanish.
        """
        kinds = [_POINTER] * (2 * count + 3)
        function, to = self._function(f"reduced_sum_{count}", *kinds, _WORD, self.vector)
        *factors, total, kept, n, limbs, k = function.args
        at, zero = to.at, to.splat(0)
        right = [*factors[1::2], n]

        def row(i: Value, _: list[Value]) -> None:
            left = [to.load(a, i) for a in factors[::2]]
            lowest = [to.load(b, _WORD(0)) for b in right]
            low = to.load(total, _WORD(0))
            for x, b in zip(left, lowest, strict=False):
                low = at.call(self._low, [low, x, b])
            m = at.call(self._low, [zero, low, k])
            to.store(m, kept, i)
            carry = at.lshr(at.call(self._low, [low, m, lowest[-1]]), to.splat(LIMB_BITS))
            left.append(m)

            def limb(j: Value, state: list[Value]) -> list[Value]:
                carry, *below = state
                here = [to.load(b, j) for b in right]
                low, high = at.add(to.load(total, j), carry), zero
                for x, b, b_below in zip(left, here, below, strict=True):
                    low = at.call(self._low, [low, x, b])
                    high = at.call(self._high, [high, x, b_below])
                to.store(at.add(low, high), total, at.sub(j, _WORD(1)))
                return [zero, *here]

            to.repeat(1, at.add(limbs, _WORD(1)), limb, [carry, *lowest])

        to.repeat(0, limbs, row)
        at.ret_void()
        return function

    def _write_settle(self, factor: int) -> Value:
        """out <- factor * sum, every limb below 2^52."""
        function, to = self._function(f"settled_{factor}", _POINTER, _POINTER, _WORD)
        out, total, limbs = function.args
        at = to.at

        def limb(i: Value, state: list[Value]) -> list[Value]:
            value = at.add(at.mul(to.load(total, i), to.splat(factor)), state[0])
            to.store(at.and_(value, to.splat((1 << LIMB_BITS) - 1)), out, i)
            return [at.lshr(value, to.splat(LIMB_BITS))]

        to.repeat(0, limbs, limb, [to.splat(0)])
        at.ret_void()
        return function

    def _product(self) -> Value:
        """a <- a b / R; with r r' = r'' R - m n, this is r'' + n (r s' + s r' - m) / R."""
        function, to = self._function("product", _POINTER, _WORD, self.vector)
        workspace, limbs, k = function.args
        n, r, s, b_r, b_s, sum_r, sum_s, m, unread = to.halves(
            workspace, limbs, N, A, A + 1, B, B + 1, SUM_R, SUM_S, M, UNREAD
        )
        self._start_sum_r(to, workspace, limbs)
        to.call(self._one_product, r, b_r, sum_r, m, n, limbs, k)
        self._start_sum_s(to, workspace, limbs)
        to.call(self._two_products, r, b_s, s, b_r, sum_s, unread, n, limbs, k)
        return self._end(function, to)

    def _squaring(self) -> Value:
        """a <- a a / R, as `product`, with one product of r and 2 s in place of two."""
        function, to = self._function("squaring", _POINTER, _WORD, self.vector)
        workspace, limbs, k = function.args
        n, r, s, twice, sum_r, sum_s, m, unread = to.halves(
            workspace, limbs, N, A, A + 1, TWICE, SUM_R, SUM_S, M, UNREAD
        )
        to.call(self._settle_twice, twice, s, limbs)
        self._start_sum_r(to, workspace, limbs)
        to.call(self._one_product, r, r, sum_r, m, n, limbs, k)
        self._start_sum_s(to, workspace, limbs)
        to.call(self._one_product, r, twice, sum_s, unread, n, limbs, k)
        return self._end(function, to)

    def _start_sum_r(self, to: _Body, workspace: Value, limbs: Value) -> None:
        (total,) = to.halves(workspace, limbs, SUM_R)
        to.repeat(0, limbs, lambda i, _: to.store(to.splat(0), total, i))

    def _start_sum_s(self, to: _Body, workspace: Value, limbs: Value) -> None:
        """sum <- offset - m; the offset is a multiple of n."""
        offset, m, total = to.halves(workspace, limbs, OFFSET, M, SUM_S)
        to.repeat(0, limbs, lambda i, _: to.store(to.at.sub(to.load(offset, i), to.load(m, i)), total, i))

    def _end(self, function: Value, to: _Body) -> Value:
        workspace, limbs, _ = function.args
        r, s, sum_r, sum_s = to.halves(workspace, limbs, A, A + 1, SUM_R, SUM_S)
        to.call(self._settle, r, sum_r, limbs)
        to.call(self._settle, s, sum_s, limbs)
        to.at.ret_void()
        return function

    # --- rows ---------------------------------------------------------------------------------------

    def _write_spread(self) -> Value:
        """Write a function that copies one half into all lanes."""
        function, to = self._function("spread", _POINTER, _POINTER, _WORD)
        half, row, limbs = function.args
        to.repeat(0, limbs, lambda i, _: to.store(to.spread(to.load_word(row, i)), half, i))
        to.at.ret_void()
        return function

    def _write_gather(self) -> Value:
        """Write a function that copies the table's row indices_i into lane i of a number."""
        function, to = self._function("gather", _POINTER, _POINTER, _POINTER, _WORD)
        number, table, indices, limbs = function.args

        def lane(i: Value, _: list[Value]) -> None:
            row = self._row(to, table, to.load_word(indices, i), limbs)
            to.each_word(number, i, limbs, lambda place, j: to.store_word(to.load_word(row, j), place, _WORD(0)))

        to.repeat(0, _WORD(to.lanes), lane)
        to.at.ret_void()
        return function

    def _write_scatter(self) -> Value:
        """Write a function that copies lane i of a number into row i."""
        function, to = self._function("scatter", _POINTER, _POINTER, _WORD)
        number, table, limbs = function.args

        def lane(i: Value, _: list[Value]) -> None:
            row = self._row(to, table, i, limbs)
            to.each_word(number, i, limbs, lambda place, j: to.store_word(to.load_word(place, _WORD(0)), row, j))

        to.repeat(0, _WORD(to.lanes), lane)
        to.at.ret_void()
        return function

    @staticmethod
    def _row(to: _Body, table: Value, index: Value, limbs: Value) -> Value:
        return to.words(table, to.at.mul(to.at.mul(index, limbs), _WORD(2)))

    def _write_select(self) -> Value:
        """Write a function that selects the entry whose mask is all ones; it always reads every entry."""
        function, to = self._function("select", _POINTER, _POINTER, _POINTER, _WORD)
        number, table, masks, limbs = function.args
        at = to.at
        size = to.size(limbs)

        def vector(i: Value, _: list[Value]) -> None:
            def entry(e: Value, state: list[Value]) -> list[Value]:
                value = to.load(table, at.add(at.mul(e, size), i))
                return [at.or_(state[0], at.and_(value, to.spread(to.load_word(masks, e))))]

            (chosen,) = to.repeat(0, _WORD(TABLE_SIZE), entry, [to.splat(0)])
            to.store(chosen, number, i)

        to.repeat(0, size, vector)
        at.ret_void()
        return function

    # --- what is called -----------------------------------------------------------------------------

    def _horner(self) -> None:
        """Write horner(out, table, indices, groups, factors, squarings, ..): it multiplies the rows of each group.

        Before each next factor, it squares the product `squarings` times. The indices of a group's first factors come
        first, one for each lane.
        """
        to, own, place, _ = self._export("horner", _POINTER, _POINTER, _POINTER, _WORD, _WORD, _WORD)
        out, table, indices, groups, factors, squarings = own
        workspace, limbs, _ = place
        at, (a, b) = to.at, to.halves(workspace, limbs, A, B)

        def group(g: Value, _: list[Value]) -> None:
            first = at.mul(g, factors)

            def factor(f: Value, _: list[Value]) -> None:
                to.repeat(0, squarings, lambda *_: to.call(self._square, *place))
                to.call(self._gather, b, table, to.vectors(indices, at.add(first, f)), limbs)
                to.call(self._multiply, *place)

            to.call(self._gather, a, table, to.vectors(indices, first), limbs)
            to.repeat(1, factors, factor)
            to.call(self._scatter, a, self._row(to, out, at.mul(g, _WORD(to.lanes)), limbs), limbs)

        to.repeat(0, groups, group)
        at.ret_void()

    def _powers(self) -> None:
        """Write powers(out, table, indices, groups, digits, masks, ..): it raises each named row to one power.

        Masks are TABLE_SIZE words for each digit of the exponent, the highest digit first. The operations, and the
        places that are read and written, depend only on the number of digits.
        """
        to, own, place, constants = self._export("powers", _POINTER, _POINTER, _POINTER, _WORD, _WORD, _POINTER)
        out, table, indices, groups, digits, masks = own
        workspace, limbs, _ = place
        at, (a, b, one) = to.at, to.halves(workspace, limbs, A, B, TABLE)
        size = to.size(limbs)
        for half, part in zip(to.halves(workspace, limbs, TABLE, TABLE + 1), (2, 3), strict=True):
            to.call(self._spread_half, half, to.words(constants, at.mul(limbs, _WORD(part))), limbs)

        def copy(number: Value, target: Value) -> None:
            to.repeat(0, size, lambda i, _: to.store(to.load(number, i), target, i))

        def entry(e: Value, _: list[Value]) -> None:
            to.call(self._multiply, *place)
            copy(a, to.vectors(one, at.mul(e, size)))

        def digit(d: Value, _: list[Value]) -> None:
            to.repeat(0, _WORD(WINDOW_BITS), lambda *_: to.call(self._square, *place))
            to.call(self._select, b, one, to.words(masks, at.mul(d, _WORD(TABLE_SIZE))), limbs)
            to.call(self._multiply, *place)

        def group(g: Value, _: list[Value]) -> None:
            to.call(self._gather, b, table, to.vectors(indices, g), limbs)
            copy(one, a)
            to.repeat(1, _WORD(TABLE_SIZE), entry)
            to.call(self._select, a, one, masks, limbs)
            to.repeat(1, digits, digit)
            to.call(self._scatter, a, self._row(to, out, at.mul(g, _WORD(to.lanes)), limbs), limbs)

        to.repeat(0, groups, group)
        at.ret_void()

    def _export(self, name: str, *kinds: Value) -> tuple[_Body, list[Value], list[Value], Value]:
        """Return the body, its own arguments, the arguments of private functions, and the constants n, offset and 1."""
        function, to = self._function(name, *kinds, _POINTER, _POINTER, _WORD, _WORD, private=False)
        *own, workspace, constants, limbs, k = function.args
        for which, half in enumerate(to.halves(workspace, limbs, N, OFFSET)):
            to.call(self._spread_half, half, to.words(constants, to.at.mul(limbs, _WORD(which))), limbs)
        return to, own, [workspace, limbs, to.spread(k)], constants
