from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class DescribeDatasetRequest(_message.Message):
    __slots__ = ("dataset",)
    DATASET_FIELD_NUMBER: _ClassVar[int]
    dataset: str
    def __init__(self, dataset: _Optional[str] = ...) -> None: ...

class DatasetDescription(_message.Message):
    __slots__ = ("dataset", "snapshot", "population", "unit", "max_rows_per_person", "unknown_rows", "min_rows", "max_epsilon", "receipt_key", "mechanisms", "label_kind", "label_lo", "label_hi", "certificate", "receipt_key_signature")
    DATASET_FIELD_NUMBER: _ClassVar[int]
    SNAPSHOT_FIELD_NUMBER: _ClassVar[int]
    POPULATION_FIELD_NUMBER: _ClassVar[int]
    UNIT_FIELD_NUMBER: _ClassVar[int]
    MAX_ROWS_PER_PERSON_FIELD_NUMBER: _ClassVar[int]
    UNKNOWN_ROWS_FIELD_NUMBER: _ClassVar[int]
    MIN_ROWS_FIELD_NUMBER: _ClassVar[int]
    MAX_EPSILON_FIELD_NUMBER: _ClassVar[int]
    RECEIPT_KEY_FIELD_NUMBER: _ClassVar[int]
    MECHANISMS_FIELD_NUMBER: _ClassVar[int]
    LABEL_KIND_FIELD_NUMBER: _ClassVar[int]
    LABEL_LO_FIELD_NUMBER: _ClassVar[int]
    LABEL_HI_FIELD_NUMBER: _ClassVar[int]
    CERTIFICATE_FIELD_NUMBER: _ClassVar[int]
    RECEIPT_KEY_SIGNATURE_FIELD_NUMBER: _ClassVar[int]
    dataset: str
    snapshot: str
    population: str
    unit: str
    max_rows_per_person: int
    unknown_rows: str
    min_rows: int
    max_epsilon: float
    receipt_key: bytes
    mechanisms: _containers.RepeatedScalarFieldContainer[str]
    label_kind: str
    label_lo: float
    label_hi: float
    certificate: bytes
    receipt_key_signature: bytes
    def __init__(self, dataset: _Optional[str] = ..., snapshot: _Optional[str] = ..., population: _Optional[str] = ..., unit: _Optional[str] = ..., max_rows_per_person: _Optional[int] = ..., unknown_rows: _Optional[str] = ..., min_rows: _Optional[int] = ..., max_epsilon: _Optional[float] = ..., receipt_key: _Optional[bytes] = ..., mechanisms: _Optional[_Iterable[str]] = ..., label_kind: _Optional[str] = ..., label_lo: _Optional[float] = ..., label_hi: _Optional[float] = ..., certificate: _Optional[bytes] = ..., receipt_key_signature: _Optional[bytes] = ...) -> None: ...

class BudgetRequest(_message.Message):
    __slots__ = ("dataset",)
    DATASET_FIELD_NUMBER: _ClassVar[int]
    dataset: str
    def __init__(self, dataset: _Optional[str] = ...) -> None: ...

class BudgetDescription(_message.Message):
    __slots__ = ("population", "epsilon", "delta", "spent_epsilon", "releases")
    POPULATION_FIELD_NUMBER: _ClassVar[int]
    EPSILON_FIELD_NUMBER: _ClassVar[int]
    DELTA_FIELD_NUMBER: _ClassVar[int]
    SPENT_EPSILON_FIELD_NUMBER: _ClassVar[int]
    RELEASES_FIELD_NUMBER: _ClassVar[int]
    population: str
    epsilon: float
    delta: float
    spent_epsilon: float
    releases: int
    def __init__(self, population: _Optional[str] = ..., epsilon: _Optional[float] = ..., delta: _Optional[float] = ..., spent_epsilon: _Optional[float] = ..., releases: _Optional[int] = ...) -> None: ...

class AggregateRequest(_message.Message):
    __slots__ = ("open", "rows", "end", "encrypted", "masked")
    OPEN_FIELD_NUMBER: _ClassVar[int]
    ROWS_FIELD_NUMBER: _ClassVar[int]
    END_FIELD_NUMBER: _ClassVar[int]
    ENCRYPTED_FIELD_NUMBER: _ClassVar[int]
    MASKED_FIELD_NUMBER: _ClassVar[int]
    open: AggregateOpen
    rows: WeightRows
    end: RowsEnd
    encrypted: EncryptedRows
    masked: MaskedRows
    def __init__(self, open: _Optional[_Union[AggregateOpen, _Mapping]] = ..., rows: _Optional[_Union[WeightRows, _Mapping]] = ..., end: _Optional[_Union[RowsEnd, _Mapping]] = ..., encrypted: _Optional[_Union[EncryptedRows, _Mapping]] = ..., masked: _Optional[_Union[MaskedRows, _Mapping]] = ...) -> None: ...

class AggregateOpen(_message.Message):
    __slots__ = ("protocol_version", "request_id", "dataset", "snapshot", "n_rows", "n_columns", "frac_bits", "norm_bound", "max_rows_per_person", "epsilon", "delta", "mechanism", "content_sha256", "receipt", "session", "content_salt", "key", "public_key", "slot_bits", "in_shares", "blocks")
    PROTOCOL_VERSION_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    DATASET_FIELD_NUMBER: _ClassVar[int]
    SNAPSHOT_FIELD_NUMBER: _ClassVar[int]
    N_ROWS_FIELD_NUMBER: _ClassVar[int]
    N_COLUMNS_FIELD_NUMBER: _ClassVar[int]
    FRAC_BITS_FIELD_NUMBER: _ClassVar[int]
    NORM_BOUND_FIELD_NUMBER: _ClassVar[int]
    MAX_ROWS_PER_PERSON_FIELD_NUMBER: _ClassVar[int]
    EPSILON_FIELD_NUMBER: _ClassVar[int]
    DELTA_FIELD_NUMBER: _ClassVar[int]
    MECHANISM_FIELD_NUMBER: _ClassVar[int]
    CONTENT_SHA256_FIELD_NUMBER: _ClassVar[int]
    RECEIPT_FIELD_NUMBER: _ClassVar[int]
    SESSION_FIELD_NUMBER: _ClassVar[int]
    CONTENT_SALT_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    PUBLIC_KEY_FIELD_NUMBER: _ClassVar[int]
    SLOT_BITS_FIELD_NUMBER: _ClassVar[int]
    IN_SHARES_FIELD_NUMBER: _ClassVar[int]
    BLOCKS_FIELD_NUMBER: _ClassVar[int]
    protocol_version: str
    request_id: str
    dataset: str
    snapshot: str
    n_rows: int
    n_columns: int
    frac_bits: int
    norm_bound: int
    max_rows_per_person: int
    epsilon: float
    delta: float
    mechanism: str
    content_sha256: bytes
    receipt: SignedReceipt
    session: str
    content_salt: bytes
    key: str
    public_key: bytes
    slot_bits: int
    in_shares: int
    blocks: str
    def __init__(self, protocol_version: _Optional[str] = ..., request_id: _Optional[str] = ..., dataset: _Optional[str] = ..., snapshot: _Optional[str] = ..., n_rows: _Optional[int] = ..., n_columns: _Optional[int] = ..., frac_bits: _Optional[int] = ..., norm_bound: _Optional[int] = ..., max_rows_per_person: _Optional[int] = ..., epsilon: _Optional[float] = ..., delta: _Optional[float] = ..., mechanism: _Optional[str] = ..., content_sha256: _Optional[bytes] = ..., receipt: _Optional[_Union[SignedReceipt, _Mapping]] = ..., session: _Optional[str] = ..., content_salt: _Optional[bytes] = ..., key: _Optional[str] = ..., public_key: _Optional[bytes] = ..., slot_bits: _Optional[int] = ..., in_shares: _Optional[int] = ..., blocks: _Optional[str] = ...) -> None: ...

class WeightRows(_message.Message):
    __slots__ = ("ids", "weights", "bits")
    IDS_FIELD_NUMBER: _ClassVar[int]
    WEIGHTS_FIELD_NUMBER: _ClassVar[int]
    BITS_FIELD_NUMBER: _ClassVar[int]
    ids: _containers.RepeatedScalarFieldContainer[str]
    weights: bytes
    bits: int
    def __init__(self, ids: _Optional[_Iterable[str]] = ..., weights: _Optional[bytes] = ..., bits: _Optional[int] = ...) -> None: ...

class EncryptedRows(_message.Message):
    __slots__ = ("ids", "width_bytes", "rows")
    IDS_FIELD_NUMBER: _ClassVar[int]
    WIDTH_BYTES_FIELD_NUMBER: _ClassVar[int]
    ROWS_FIELD_NUMBER: _ClassVar[int]
    ids: _containers.RepeatedScalarFieldContainer[str]
    width_bytes: int
    rows: bytes
    def __init__(self, ids: _Optional[_Iterable[str]] = ..., width_bytes: _Optional[int] = ..., rows: _Optional[bytes] = ...) -> None: ...

class MaskedRows(_message.Message):
    __slots__ = ("ids", "values")
    IDS_FIELD_NUMBER: _ClassVar[int]
    VALUES_FIELD_NUMBER: _ClassVar[int]
    ids: _containers.RepeatedScalarFieldContainer[str]
    values: bytes
    def __init__(self, ids: _Optional[_Iterable[str]] = ..., values: _Optional[bytes] = ...) -> None: ...

class RowsEnd(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class AggregateResponse(_message.Message):
    __slots__ = ("opened", "answer", "kept")
    OPENED_FIELD_NUMBER: _ClassVar[int]
    ANSWER_FIELD_NUMBER: _ClassVar[int]
    KEPT_FIELD_NUMBER: _ClassVar[int]
    opened: Opened
    answer: NoisySum
    kept: RowsKept
    def __init__(self, opened: _Optional[_Union[Opened, _Mapping]] = ..., answer: _Optional[_Union[NoisySum, _Mapping]] = ..., kept: _Optional[_Union[RowsKept, _Mapping]] = ...) -> None: ...

class Opened(_message.Message):
    __slots__ = ("send_rows",)
    SEND_ROWS_FIELD_NUMBER: _ClassVar[int]
    send_rows: bool
    def __init__(self, send_rows: bool = ...) -> None: ...

class RowsKept(_message.Message):
    __slots__ = ("bits",)
    BITS_FIELD_NUMBER: _ClassVar[int]
    bits: bytes
    def __init__(self, bits: _Optional[bytes] = ...) -> None: ...

class NoisySum(_message.Message):
    __slots__ = ("sums", "noise_std", "sensitivity", "event", "unit", "neighbours", "rows_kept", "rows_scaled", "receipt", "min_rows", "max_epsilon", "max_delta", "budget_epsilon", "budget_delta", "entry", "ciphertexts", "rows_unknown")
    SUMS_FIELD_NUMBER: _ClassVar[int]
    NOISE_STD_FIELD_NUMBER: _ClassVar[int]
    SENSITIVITY_FIELD_NUMBER: _ClassVar[int]
    EVENT_FIELD_NUMBER: _ClassVar[int]
    UNIT_FIELD_NUMBER: _ClassVar[int]
    NEIGHBOURS_FIELD_NUMBER: _ClassVar[int]
    ROWS_KEPT_FIELD_NUMBER: _ClassVar[int]
    ROWS_SCALED_FIELD_NUMBER: _ClassVar[int]
    RECEIPT_FIELD_NUMBER: _ClassVar[int]
    MIN_ROWS_FIELD_NUMBER: _ClassVar[int]
    MAX_EPSILON_FIELD_NUMBER: _ClassVar[int]
    MAX_DELTA_FIELD_NUMBER: _ClassVar[int]
    BUDGET_EPSILON_FIELD_NUMBER: _ClassVar[int]
    BUDGET_DELTA_FIELD_NUMBER: _ClassVar[int]
    ENTRY_FIELD_NUMBER: _ClassVar[int]
    CIPHERTEXTS_FIELD_NUMBER: _ClassVar[int]
    ROWS_UNKNOWN_FIELD_NUMBER: _ClassVar[int]
    sums: _containers.RepeatedScalarFieldContainer[int]
    noise_std: float
    sensitivity: float
    event: str
    unit: str
    neighbours: str
    rows_kept: int
    rows_scaled: int
    receipt: SignedReceipt
    min_rows: int
    max_epsilon: float
    max_delta: float
    budget_epsilon: float
    budget_delta: float
    entry: str
    ciphertexts: bytes
    rows_unknown: int
    def __init__(self, sums: _Optional[_Iterable[int]] = ..., noise_std: _Optional[float] = ..., sensitivity: _Optional[float] = ..., event: _Optional[str] = ..., unit: _Optional[str] = ..., neighbours: _Optional[str] = ..., rows_kept: _Optional[int] = ..., rows_scaled: _Optional[int] = ..., receipt: _Optional[_Union[SignedReceipt, _Mapping]] = ..., min_rows: _Optional[int] = ..., max_epsilon: _Optional[float] = ..., max_delta: _Optional[float] = ..., budget_epsilon: _Optional[float] = ..., budget_delta: _Optional[float] = ..., entry: _Optional[str] = ..., ciphertexts: _Optional[bytes] = ..., rows_unknown: _Optional[int] = ...) -> None: ...

class ReleaseLabelsRequest(_message.Message):
    __slots__ = ("open", "ids", "end")
    OPEN_FIELD_NUMBER: _ClassVar[int]
    IDS_FIELD_NUMBER: _ClassVar[int]
    END_FIELD_NUMBER: _ClassVar[int]
    open: LabelsOpen
    ids: LabelIds
    end: LabelIdsEnd
    def __init__(self, open: _Optional[_Union[LabelsOpen, _Mapping]] = ..., ids: _Optional[_Union[LabelIds, _Mapping]] = ..., end: _Optional[_Union[LabelIdsEnd, _Mapping]] = ...) -> None: ...

class LabelsOpen(_message.Message):
    __slots__ = ("protocol_version", "request_id", "dataset", "snapshot", "n_rows", "max_rows_per_person", "release", "mechanism", "content_sha256", "receipt", "session")
    PROTOCOL_VERSION_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    DATASET_FIELD_NUMBER: _ClassVar[int]
    SNAPSHOT_FIELD_NUMBER: _ClassVar[int]
    N_ROWS_FIELD_NUMBER: _ClassVar[int]
    MAX_ROWS_PER_PERSON_FIELD_NUMBER: _ClassVar[int]
    RELEASE_FIELD_NUMBER: _ClassVar[int]
    MECHANISM_FIELD_NUMBER: _ClassVar[int]
    CONTENT_SHA256_FIELD_NUMBER: _ClassVar[int]
    RECEIPT_FIELD_NUMBER: _ClassVar[int]
    SESSION_FIELD_NUMBER: _ClassVar[int]
    protocol_version: str
    request_id: str
    dataset: str
    snapshot: str
    n_rows: int
    max_rows_per_person: int
    release: str
    mechanism: LabelMechanismSettings
    content_sha256: bytes
    receipt: SignedReceipt
    session: str
    def __init__(self, protocol_version: _Optional[str] = ..., request_id: _Optional[str] = ..., dataset: _Optional[str] = ..., snapshot: _Optional[str] = ..., n_rows: _Optional[int] = ..., max_rows_per_person: _Optional[int] = ..., release: _Optional[str] = ..., mechanism: _Optional[_Union[LabelMechanismSettings, _Mapping]] = ..., content_sha256: _Optional[bytes] = ..., receipt: _Optional[_Union[SignedReceipt, _Mapping]] = ..., session: _Optional[str] = ...) -> None: ...

class LabelMechanismSettings(_message.Message):
    __slots__ = ("name", "lo", "hi", "cells", "epsilon", "delta", "prior", "epsilon_prior", "prior_mechanism", "cell_width", "half_width", "half_width_auto", "optimal_for", "rounding", "output_cells", "output_reach")
    NAME_FIELD_NUMBER: _ClassVar[int]
    LO_FIELD_NUMBER: _ClassVar[int]
    HI_FIELD_NUMBER: _ClassVar[int]
    CELLS_FIELD_NUMBER: _ClassVar[int]
    EPSILON_FIELD_NUMBER: _ClassVar[int]
    DELTA_FIELD_NUMBER: _ClassVar[int]
    PRIOR_FIELD_NUMBER: _ClassVar[int]
    EPSILON_PRIOR_FIELD_NUMBER: _ClassVar[int]
    PRIOR_MECHANISM_FIELD_NUMBER: _ClassVar[int]
    CELL_WIDTH_FIELD_NUMBER: _ClassVar[int]
    HALF_WIDTH_FIELD_NUMBER: _ClassVar[int]
    HALF_WIDTH_AUTO_FIELD_NUMBER: _ClassVar[int]
    OPTIMAL_FOR_FIELD_NUMBER: _ClassVar[int]
    ROUNDING_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_CELLS_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_REACH_FIELD_NUMBER: _ClassVar[int]
    name: str
    lo: float
    hi: float
    cells: int
    epsilon: float
    delta: float
    prior: LabelPrior
    epsilon_prior: float
    prior_mechanism: str
    cell_width: float
    half_width: float
    half_width_auto: bool
    optimal_for: str
    rounding: float
    output_cells: int
    output_reach: float
    def __init__(self, name: _Optional[str] = ..., lo: _Optional[float] = ..., hi: _Optional[float] = ..., cells: _Optional[int] = ..., epsilon: _Optional[float] = ..., delta: _Optional[float] = ..., prior: _Optional[_Union[LabelPrior, _Mapping]] = ..., epsilon_prior: _Optional[float] = ..., prior_mechanism: _Optional[str] = ..., cell_width: _Optional[float] = ..., half_width: _Optional[float] = ..., half_width_auto: bool = ..., optimal_for: _Optional[str] = ..., rounding: _Optional[float] = ..., output_cells: _Optional[int] = ..., output_reach: _Optional[float] = ...) -> None: ...

class LabelPrior(_message.Message):
    __slots__ = ("edges", "masses")
    EDGES_FIELD_NUMBER: _ClassVar[int]
    MASSES_FIELD_NUMBER: _ClassVar[int]
    edges: _containers.RepeatedScalarFieldContainer[float]
    masses: _containers.RepeatedScalarFieldContainer[float]
    def __init__(self, edges: _Optional[_Iterable[float]] = ..., masses: _Optional[_Iterable[float]] = ...) -> None: ...

class LabelIds(_message.Message):
    __slots__ = ("ids",)
    IDS_FIELD_NUMBER: _ClassVar[int]
    ids: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, ids: _Optional[_Iterable[str]] = ...) -> None: ...

class LabelIdsEnd(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ReleaseLabelsResponse(_message.Message):
    __slots__ = ("opened", "release", "labels")
    OPENED_FIELD_NUMBER: _ClassVar[int]
    RELEASE_FIELD_NUMBER: _ClassVar[int]
    LABELS_FIELD_NUMBER: _ClassVar[int]
    opened: LabelsOpened
    release: FittedRelease
    labels: NoisyLabels
    def __init__(self, opened: _Optional[_Union[LabelsOpened, _Mapping]] = ..., release: _Optional[_Union[FittedRelease, _Mapping]] = ..., labels: _Optional[_Union[NoisyLabels, _Mapping]] = ...) -> None: ...

class LabelsOpened(_message.Message):
    __slots__ = ("made_before",)
    MADE_BEFORE_FIELD_NUMBER: _ClassVar[int]
    made_before: bool
    def __init__(self, made_before: bool = ...) -> None: ...

class FittedRelease(_message.Message):
    __slots__ = ("parameters", "epsilon", "delta", "epsilon_prior", "prior_mechanism", "share_outside", "event", "unit", "neighbours", "receipt")
    PARAMETERS_FIELD_NUMBER: _ClassVar[int]
    EPSILON_FIELD_NUMBER: _ClassVar[int]
    DELTA_FIELD_NUMBER: _ClassVar[int]
    EPSILON_PRIOR_FIELD_NUMBER: _ClassVar[int]
    PRIOR_MECHANISM_FIELD_NUMBER: _ClassVar[int]
    SHARE_OUTSIDE_FIELD_NUMBER: _ClassVar[int]
    EVENT_FIELD_NUMBER: _ClassVar[int]
    UNIT_FIELD_NUMBER: _ClassVar[int]
    NEIGHBOURS_FIELD_NUMBER: _ClassVar[int]
    RECEIPT_FIELD_NUMBER: _ClassVar[int]
    parameters: str
    epsilon: float
    delta: float
    epsilon_prior: float
    prior_mechanism: str
    share_outside: float
    event: str
    unit: str
    neighbours: str
    receipt: SignedReceipt
    def __init__(self, parameters: _Optional[str] = ..., epsilon: _Optional[float] = ..., delta: _Optional[float] = ..., epsilon_prior: _Optional[float] = ..., prior_mechanism: _Optional[str] = ..., share_outside: _Optional[float] = ..., event: _Optional[str] = ..., unit: _Optional[str] = ..., neighbours: _Optional[str] = ..., receipt: _Optional[_Union[SignedReceipt, _Mapping]] = ...) -> None: ...

class NoisyLabels(_message.Message):
    __slots__ = ("steps", "withheld")
    STEPS_FIELD_NUMBER: _ClassVar[int]
    WITHHELD_FIELD_NUMBER: _ClassVar[int]
    steps: _containers.RepeatedScalarFieldContainer[int]
    withheld: bytes
    def __init__(self, steps: _Optional[_Iterable[int]] = ..., withheld: _Optional[bytes] = ...) -> None: ...

class SignedReceipt(_message.Message):
    __slots__ = ("statement", "signature")
    STATEMENT_FIELD_NUMBER: _ClassVar[int]
    SIGNATURE_FIELD_NUMBER: _ClassVar[int]
    statement: bytes
    signature: bytes
    def __init__(self, statement: _Optional[bytes] = ..., signature: _Optional[bytes] = ...) -> None: ...
