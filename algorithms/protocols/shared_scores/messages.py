"""What a prediction in shares sends beside the messages of a training in shares."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from blindfit.algorithms.messages import Integer, IntegerTensor, Real


@dataclass(frozen=True, slots=True, eq=False)
class ModelTold:
    """What the sender's part says of the model; all but `score_bits` is the same at all."""

    columns: IntegerTensor  # of each data party in shares; none where each has weights of its own
    kept_bits: Integer  # weights are in steps of 2^-kept_bits
    score_limit: Real  # a passive party's part of a score is clipped to it
    macs: Integer  # 1 where the weights have MACs
    score_bits: Integer  # that the sender's part of a score has at most; 0: it is neither clipped nor rounded

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
