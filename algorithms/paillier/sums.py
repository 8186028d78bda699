"""Sums of products of plain numbers and encrypted ones: X^T [[w]] over rows and X [[w]] over columns."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from blindfit.algorithms.errors import RangeError
from blindfit.algorithms.fixed_point import Fixed
from blindfit.algorithms.paillier.ciphertexts import Ciphertext
from blindfit.algorithms.paillier.kernel import Counts, Kernel, Residues
from blindfit.algorithms.paillier.multi_exponentiation import IntegerMatrix, column_powers, row_powers
from blindfit.algorithms.paillier.vectors import EncryptedVector, check_fits
from blindfit.algorithms.workers import THIS_PROCESS, Workers, even_slices

LEAST_PRODUCTS = 4096  # for one task, about: fewer are not worth another process


def columns_dot(
    X: Fixed, w_enc: EncryptedVector[Ciphertext], *, workers: Workers = THIS_PROCESS
) -> EncryptedVector[Ciphertext]:
    """Return X^T [[w]]: for each column j the encrypted sum over rows of x_ij w_i.

    With numbers of 16 bits an element of X costs about 2 products, in the time of 1.5.

    Args:
        X: numbers of shape (rows, columns), magnitudes of value below 2^62.
        w_enc: encrypted numbers of shape (rows,).
        workers: processes that share the work, from `open_workers`; this process by default.

    Returns:
        Encrypted sums of shape (columns,), not re-randomised. Fraction bits are added. The bound is the largest column
        sum of magnitudes of x_ij, times the bound of w.

    Raises:
        RangeError: shapes do not fit, or a sum could pass half the modulus.

    Example:
        >>> w_enc = paillier.encrypt(paillier.Fixed.from_reals([0.5, -1.25], 16), randomisers)
        >>> X = paillier.Fixed.from_reals([[2.0, 0.0], [4.0, 1.0]], 12)
        >>> paillier.decrypt(paillier.columns_dot(X, w_enc), key).to_reals().tolist()
        [-4.0, -1.25]
    """
    matrix = _matrix(X, rows=len(w_enc))

    def sums(kernel: Kernel, slices: list[slice]) -> Residues:
        if len(slices) <= 1:
            return column_powers(kernel, w_enc.residues, matrix)
        tasks = [(type(kernel), int(kernel.n), w_enc.residues[part], matrix[part]) for part in slices]
        return _multiply(kernel, workers.map(_column_task, tasks))

    return _dot(X, w_enc, matrix, 0, workers, sums)


def rows_dot(
    X: Fixed, w_enc: EncryptedVector[Ciphertext], *, workers: Workers = THIS_PROCESS
) -> EncryptedVector[Ciphertext]:
    """Return X [[w]]: for each row i the encrypted sum over columns of x_ij w_j.

    The cost is a table of powers for each column, once, and about columns * (bits + 1) / 8 products a row.

    Args:
        X: numbers of shape (rows, columns), magnitudes of value below 2^62.
        w_enc: encrypted numbers of shape (columns,).
        workers: processes that share the work, from `open_workers`; this process by default.

    Returns:
        Encrypted sums of shape (rows,), not re-randomised. Fraction bits are added. The bound is the largest row sum of
        magnitudes of x_ij, times the bound of w.

    Raises:
        RangeError: shapes do not fit, or a sum could pass half the modulus.

    Example:
        >>> w_enc = paillier.encrypt(paillier.Fixed.from_reals([0.5, -1.25], 16), randomisers)
        >>> X = paillier.Fixed.from_reals([[2.0, 0.0], [4.0, 1.0]], 12)
        >>> paillier.decrypt(paillier.rows_dot(X, w_enc), key).to_reals().tolist()
        [1.0, 0.75]
    """
    matrix = _matrix(X, columns=len(w_enc))

    def sums(kernel: Kernel, slices: list[slice]) -> Residues:
        if len(slices) <= 1:
            return row_powers(kernel, w_enc.residues, matrix)
        tasks = [(type(kernel), int(kernel.n), w_enc.residues, matrix[part]) for part in slices]
        return Residues.concatenate(_collect(kernel, workers.map(_row_task, tasks)))

    return _dot(X, w_enc, matrix, 1, workers, sums)


def _dot(
    X: Fixed,
    w_enc: EncryptedVector[Ciphertext],
    matrix: IntegerMatrix,
    axis: int,
    workers: Workers,
    sums: Callable[[Kernel, list[slice]], Residues],
) -> EncryptedVector[Ciphertext]:
    """Return the sums along an axis, each part of the rows a task, with their bound checked first."""
    bound = _largest_sum(matrix, axis) * w_enc.bound
    check_fits(bound, w_enc.public_key)
    slices = even_slices(len(matrix), _parts(matrix, workers))
    found = sums(w_enc.public_key.kernel, slices)
    return EncryptedVector(Ciphertext(w_enc.public_key, found), X.frac_bits + w_enc.frac_bits, bound)


def _matrix(X: Fixed, *, rows: int | None = None, columns: int | None = None) -> IntegerMatrix:
    shape = X.shape
    if len(shape) != 2 or rows not in (None, shape[0]) or columns not in (None, shape[1]):
        wanted = f"({rows if rows is not None else 'any'}, {columns if columns is not None else 'any'})"
        raise RangeError(f"the matrix has shape {shape}; with this vector it must have {wanted}")
    if X.bound >= 2**62:
        raise RangeError("a number of the matrix has more than 62 bits")
    return X.values.astype(np.int64)


def _largest_sum(matrix: IntegerMatrix, axis: int) -> int:
    """Return the largest sum of magnitudes along an axis, exact."""
    if not matrix.size:
        return 0
    magnitudes = np.abs(matrix)
    if int(magnitudes.max()) * matrix.shape[axis] < 2**62:
        return int(magnitudes.sum(axis=axis).max())
    return int(magnitudes.astype(object).sum(axis=axis).max())


def _parts(matrix: IntegerMatrix, workers: Workers) -> int:
    return max(1, min(workers.count, 2 * matrix.size // LEAST_PRODUCTS, len(matrix)))


def _collect(kernel: Kernel, results: list[tuple[Residues, Counts]]) -> list[Residues]:
    for _, counts in results:
        kernel.counts.add(counts)
    return [residues for residues, _ in results]


def _multiply(kernel: Kernel, results: list[tuple[Residues, Counts]]) -> Residues:
    total, *rest = _collect(kernel, results)
    for part in rest:
        total = kernel.products(total, part)
    return total


# --- what workers run ------------------------------------------------------------------------------


def _column_task(kernel_type: type[Kernel], n: int, bases: Residues, matrix: IntegerMatrix) -> tuple[Residues, Counts]:
    kernel = kernel_type(n)
    return column_powers(kernel, bases, matrix), kernel.counts


def _row_task(kernel_type: type[Kernel], n: int, bases: Residues, matrix: IntegerMatrix) -> tuple[Residues, Counts]:
    kernel = kernel_type(n)
    return row_powers(kernel, bases, matrix), kernel.counts
