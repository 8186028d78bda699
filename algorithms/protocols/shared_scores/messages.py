"""Messages of a prediction in shares, in addition to those of a training in shares."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from blindfit.algorithms.messages import Integer, IntegerTensor, Real


@dataclass(frozen=True, slots=True, eq=False)
class ModelTold:
    """Facts about the model in the sender's part; all but `score_bits` are the same at all parties."""

    columns: IntegerTensor  # of each data party in shares; empty if each party has its own weights
    kept_bits: Integer  # weights are in steps of 2^-kept_bits
    score_limit: Real  # a passive party's part of a score is clipped to it
    macs: Integer  # 1 where the weights have MACs
    score_bits: Integer  # most bits of the sender's part of a score; 0: it is neither clipped nor rounded

    @classmethod
    def of_open_weights(cls) -> ModelTold:
        return cls(np.zeros(0, dtype=np.int64), 0, 0.0, 0, 0)

    @property
    def is_shared(self) -> bool:
        return self.columns.size > 0

    def agrees_with(self, other: ModelTold) -> bool:
        return self._of_all() == other._of_all()

    def _of_all(self) -> tuple[list[int], int, float, int]:
        return self.columns.tolist(), self.kept_bits, self.score_limit, self.macs
