"""Arrays that live in files: the process holds only the pages that it uses now."""

from __future__ import annotations

import mmap
import os
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from blindfit.algorithms.errors import ConfigError


def _allocate(descriptor: int, size: int) -> None:
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(descriptor, 0, size)
    else:  # macOS, where the file stays sparse
        os.truncate(descriptor, size)


class MappedArray:
    """A one-dimensional array mapped from a file."""

    def __init__(self, descriptor: int, dtype: DTypeLike, *, writable: bool) -> None:
        access = mmap.ACCESS_WRITE if writable else mmap.ACCESS_READ
        self._map = mmap.mmap(descriptor, 0, access=access)
        self.array: NDArray[Any] = np.frombuffer(self._map, dtype)

    @classmethod
    def open(cls, path: Path, dtype: DTypeLike) -> MappedArray:
        """Open an existing file that is not empty, for reading."""
        with path.open("rb") as file:
            return cls(file.fileno(), dtype, writable=False)

    @classmethod
    def temporary(cls, length: int, dtype: DTypeLike, directory: Path) -> MappedArray:
        """Return an array of zeros in an unnamed file on disk. The file is removed when the process ends, in any way.

        Raises:
            ConfigError: the disk is full. (A sparse file would report this only at a later write through the map, by a
                signal that ends the process.)
        """
        size = length * np.dtype(dtype).itemsize
        with tempfile.TemporaryFile(dir=directory) as file:
            try:
                _allocate(file.fileno(), size)
            except OSError as error:
                raise ConfigError(
                    f"{directory} has no space for {size} bytes of working files: {error.strerror}",
                    hint="make space on its disk",
                ) from None
            return cls(file.fileno(), dtype, writable=True)

    @property
    def size_bytes(self) -> int:
        return self.array.nbytes

    def release(self) -> None:
        """Give the pages back to the system; the file keeps their content."""
        self._map.madvise(mmap.MADV_DONTNEED)

    def close(self) -> None:
        self.array = self.array[:0].copy()  # the map cannot close under an array
        self._map.close()
