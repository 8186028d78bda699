"""The messages of a release of labels (release.py)."""

from __future__ import annotations

from dataclasses import dataclass

from blindfit.algorithms.messages import Integer, IntegerTensor, Octets, Real, Text, Texts
from blindfit.algorithms.privacy.label_mechanisms import MechanismSettings


@dataclass(frozen=True, slots=True)
class LabelsOpen:
    protocol_version: Text
    request_id: Text
    dataset: Text
    snapshot: Text
    n_rows: Integer
    max_rows_per_person: Integer  # 0: the unit is a row
    release: Text  # another name requests another draw, and is charged
    settings: MechanismSettings  # epsilon and delta are for one row
    content_sha256: Octets
    receipt: Octets  # empty: the active party has no receipt of this server
    receipt_signature: Octets
    session: Text = ""

    @property
    def rows_per_unit(self) -> int:
        return max(1, self.max_rows_per_person)


@dataclass(frozen=True, slots=True)
class LabelsOpened:
    made_before: Integer  # 1: the release is remembered, and costs nothing


@dataclass(frozen=True, slots=True, repr=False)
class LabelIds:
    ids: Texts


@dataclass(frozen=True, slots=True)
class LabelIdsEnd:
    pass


@dataclass(frozen=True, slots=True)
class FittedRelease:
    """The part of an answer that every request of one release shares; all of it is public."""

    parameters: Text  # JSON: LabelMechanism.parameters()
    epsilon: Real  # of one unit, with the prior's part
    delta: Real
    epsilon_prior: Real  # of one row
    prior_mechanism: Text  # empty: no prior was estimated
    share_outside: Real | None  # share of the labels, by the prior, outside the interval to which they are clipped
    event: Text
    unit: Text
    neighbours: Text
    receipt: Octets
    receipt_signature: Octets


@dataclass(frozen=True, slots=True, repr=False)
class NoisyLabels:
    """The noisy labels of the next rows."""

    steps: IntegerTensor  # on the mechanism's grid; 0 where withheld
    withheld: Octets  # a bit a row, the first in the highest bit; empty: no row is
