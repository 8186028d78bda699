"""The table of systems, one entry for each: a party process uses it, and code that reads jobs, models and files.

A function imports its system's job; the code of a role is imported only when a party plays the role.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, get_args

from pydantic import Field, create_model

from blindfit.algorithms.errors import ConfigError, DataError, RangeError
from blindfit.algorithms.workers import OpenWorkers, in_this_process
from blindfit.parties.job.parameters import PROPOSED, JobParameters, nest
from blindfit.parties.sessions.system import ModelReader, Role, Seat, System
from blindfit.parties.settings import PartySettings, PolicySettings
from blindfit.parties.tables import read_values, validate

if TYPE_CHECKING:
    import grpc

    from blindfit.algorithms.messages import ParameterValue
    from blindfit.algorithms.protocols.table import Table
    from blindfit.algorithms.statistics.models import Model
    from blindfit.parties.dp_lr.settings import DPLRJob
    from blindfit.parties.evaluate.settings import EvaluateJob
    from blindfit.parties.falcon.settings import FalconJob
    from blindfit.parties.files.vault import Vault
    from blindfit.parties.label_dp.settings import LabelDPJob
    from blindfit.parties.predict.settings import PredictJob
    from blindfit.parties.sessions.party import Party
    from blindfit.parties.snapshots.snapshots import Writer
    from blindfit.parties.taylor.settings import TaylorJob
    from blindfit.parties.walr.settings import WalrJob

MOST_PASSIVE = 16
MOST_PASSIVE_IN_SHARES = 7
# Options of a measurement server, and of a data party that aligns rows by ids, or also by similar fields.
ANSWERS = frozenset({"policy.min_rows", "policy.max_failed_uploads", "policy.max_kept_mib"})
ALIGNS = frozenset({"policy.min_common"})
LINKS = ALIGNS | {"policy.taylor.min_linked"}
USERS = {"active": "an active party", "passive": "a passive party", "measurement": "a measurement server"}


def walr() -> System[WalrJob]:
    from blindfit.parties.measurement.trust import UNCHECKED_ROWS
    from blindfit.parties.walr.settings import WalrJob

    def consumer(party: Party) -> Seat[WalrJob]:
        from blindfit.parties.walr.consumer import Consumer

        return Consumer(party)

    def holder(party: Party) -> Seat[WalrJob]:
        from blindfit.parties.walr.passive import ColumnHolder

        return ColumnHolder(party)

    def server(party: Party) -> Seat[WalrJob]:
        from blindfit.parties.walr.server import WalrServer

        return WalrServer(party)

    def tables() -> Sequence[Table]:
        from blindfit.algorithms.protocols import draw
        from blindfit.algorithms.protocols.walr import several_parties

        return (*_tables_of_two_servers(), several_parties.TABLE, draw.TABLE)

    def models() -> Mapping[str, ModelReader]:
        from blindfit.algorithms.statistics.walr.model import FORMAT, WALRModel

        return {FORMAT: WALRModel.from_dict}

    return System(
        WalrJob,
        {
            "active": Role(1, 1, consumer),
            "passive": Role(0, MOST_PASSIVE, holder),
            "measurement": Role(1, 2, server),
            "key-node": Role(0, 1, _mask_dealer),
        },
        tables=tables,
        options={"measurement": ANSWERS | {"policy.unsafe"}},
        unsafe=frozenset({UNCHECKED_ROWS}),
        recorded=False,  # its messages use separate calls; the ledger and receipts keep a record
        models=models,
    )


def label_dp() -> System[LabelDPJob]:
    from blindfit.parties.label_dp.settings import LabelDPJob
    from blindfit.parties.measurement.policy import LabelDPPolicy

    def consumer(party: Party) -> Seat[LabelDPJob]:
        from blindfit.parties.label_dp.consumer import LabelRegression

        return LabelRegression(party)

    def models() -> Mapping[str, ModelReader]:
        from blindfit.algorithms.statistics.label_dp.model import FORMAT, LabelRegressionModel

        return {FORMAT: LabelRegressionModel.from_dict}

    return System(
        LabelDPJob,
        {"active": Role(1, 1, consumer), "measurement": Role(1, 1, _measurement)},
        models=models,
        options={"measurement": ANSWERS | {"policy.label-dp.mechanisms"}},
        policy=LabelDPPolicy,
    )


def dp_lr() -> System[DPLRJob]:
    from blindfit.parties.dp_lr.settings import DPLRJob

    def trainer(party: Party) -> Seat[DPLRJob]:
        from blindfit.parties.dp_lr.trainer import Trainer

        return Trainer(party)

    def models() -> Mapping[str, ModelReader]:
        from blindfit.algorithms.statistics.dp_lr.model import FORMAT, DPLogisticModel

        return {FORMAT: DPLogisticModel.from_dict}

    return System(
        DPLRJob,
        {"active": Role(1, 1, trainer)},
        models=models,
        options={"active": frozenset({"policy.min_rows"})},
    )


def taylor() -> System[TaylorJob]:
    from blindfit.parties.taylor.settings import TaylorJob, TaylorPolicy, UnsafeFlag

    def data_party(party: Party) -> Seat[TaylorJob]:
        from blindfit.parties.taylor.data_party import open_data_party

        return open_data_party(party)

    def key_node(party: Party) -> Seat[TaylorJob]:
        from blindfit.parties.taylor.key_node import KeyNode

        return KeyNode(party)

    def tables() -> Sequence[Table]:
        from blindfit.algorithms.protocols import align, draw, link, predict, ready, receipts, taylor

        return tuple(p.TABLE for p in (taylor, draw, align, link, ready, receipts, predict))

    def models() -> Mapping[str, ModelReader]:
        from blindfit.algorithms.statistics.vertical.model import FORMAT, VerticalModelPart

        return {FORMAT: VerticalModelPart.from_dict}

    return System(
        TaylorJob,
        _vertical_roles(data_party, key_node),
        tables=tables,
        models=models,
        options={
            "active": LINKS | {"policy.unsafe"},
            "passive": LINKS | {"policy.unsafe"},
            "key-node": frozenset({"policy.unsafe"}),
        },
        policy=TaylorPolicy,
        unsafe=frozenset(get_args(UnsafeFlag)),
    )


def falcon() -> System[FalconJob]:
    from blindfit.parties.falcon.settings import FalconJob, UnsafeFlag

    def data_party(party: Party) -> Seat[FalconJob]:
        from blindfit.parties.falcon.data_party import open_data_party

        return open_data_party(party)

    def dealer(party: Party) -> Seat[FalconJob]:
        from blindfit.parties.falcon.key_node import Dealer

        return Dealer(party)

    def tables() -> Sequence[Table]:
        from blindfit.algorithms.protocols import align, draw, falcon, ready, receipts

        return tuple(p.TABLE for p in (falcon, draw, align, ready, receipts))

    data_options = ALIGNS | {"policy.unsafe"}
    return System(  # its parties write parts of a model as taylor's do, so the readers are in taylor's entry
        FalconJob,
        _vertical_roles(data_party, dealer, max_passive=MOST_PASSIVE_IN_SHARES),
        tables=tables,
        options={"active": data_options, "passive": data_options, "key-node": frozenset({"policy.unsafe"})},
        unsafe=frozenset(get_args(UnsafeFlag)),
    )


def predict() -> System[PredictJob]:
    from blindfit.parties.predict.settings import PredictJob

    def data_party(party: Party) -> Seat[PredictJob]:
        from blindfit.parties.predict.prediction import JointPrediction

        return JointPrediction(party)

    def key_node(party: Party) -> Seat[PredictJob]:
        from blindfit.parties.predict.key_node import KeyNode

        return KeyNode(party)

    def tables() -> Sequence[Table]:
        from blindfit.algorithms.protocols import align, predict, shared_scores

        return (align.TABLE, predict.TABLE, shared_scores.TABLE)

    return System(
        PredictJob,
        _vertical_roles(data_party, key_node),
        tables=tables,
        options={"active": ALIGNS | {"[scores]"}, "passive": ALIGNS},
    )


def evaluate() -> System[EvaluateJob]:
    from blindfit.parties.evaluate.settings import EvaluateJob
    from blindfit.parties.measurement.trust import UNCHECKED_ROWS

    def consumer(party: Party) -> Seat[EvaluateJob]:
        from blindfit.parties.evaluate.consumer import Evaluation

        return Evaluation(party)

    return System(
        EvaluateJob,
        {"active": Role(1, 1, consumer), "measurement": Role(1, 2, _measurement), "key-node": Role(0, 1, _mask_dealer)},
        tables=_tables_of_two_servers,
        options={"measurement": ANSWERS | {"policy.unsafe"}},
        unsafe=frozenset({UNCHECKED_ROWS}),
        recorded=False,  # as in walr
    )


SYSTEMS: dict[str, Callable[[], System[Any]]] = {
    "walr": walr,
    "label-dp": label_dp,
    "dp-lr": dp_lr,
    "taylor": taylor,
    "falcon": falcon,
    "predict": predict,
    "evaluate": evaluate,
}


def _tables_of_two_servers() -> Sequence[Table]:
    from blindfit.algorithms.protocols.walr import shared_rows, two_servers

    return (two_servers.TABLE, shared_rows.TABLE)


def _measurement(party: Party) -> Seat[JobParameters]:
    from blindfit.parties.measurement.seat import MeasurementSeat

    return MeasurementSeat(party)


def _mask_dealer(party: Party) -> Seat[JobParameters]:
    from blindfit.parties.measurement.ways.shared_rows import MaskDealer

    return MaskDealer(party)


def _vertical_roles(
    data_party: Callable[[Party], Seat[Any]],
    key_node: Callable[[Party], Seat[Any]],
    *,
    max_passive: int = MOST_PASSIVE,
) -> dict[str, Role[Any]]:
    return {
        "active": Role(1, 1, data_party),
        "passive": Role(1, max_passive, data_party),
        "key-node": Role(1, 1, key_node),
    }


# --- queries of the table ----------------------------------------------------------------------------


@cache
def system(protocol: str) -> System[Any]:
    return SYSTEMS[protocol]()


def job_class(values: Mapping[str, Any], source: str) -> type[JobParameters]:
    """Return the class that reads the tables of a job.

    Raises:
        ConfigError: the protocol is missing or unknown; or a table belongs to another system.
    """
    protocol = values.get("protocol")
    if protocol is None:
        raise ConfigError(f"{source}: protocol is missing", hint=f"it is one of {', '.join(SYSTEMS)}")
    if not isinstance(protocol, str):
        raise ConfigError(f"{source}: protocol is not a text")
    if protocol not in SYSTEMS:
        raise ConfigError(f"{source}: protocol: {protocol[:64]!r} is not one of {', '.join(SYSTEMS)}")
    chosen: type[JobParameters] = system(protocol).job
    strangers = [name for name in values if name not in chosen.model_fields and name in _all_tables()]
    if "select" in strangers:
        raise ConfigError(f"{source}: select: {chosen.no_selection}")
    if strangers:
        option = f"[{strangers[0]}]" if isinstance(values[strangers[0]], Mapping) else strangers[0]
        raise ConfigError(f"{source}: {option} does nothing in a {protocol} job, remove it")
    return chosen


@cache
def _all_tables() -> frozenset[str]:
    return frozenset().union(*(system(name).job.model_fields for name in SYSTEMS))


def read_proposed(parameters: Mapping[str, ParameterValue]) -> JobParameters:
    """Read a proposed job. Raise ConfigError if its parameters do not describe a job."""
    tables = nest(parameters)
    return validate(tables, job_class(tables, PROPOSED), source=PROPOSED)


def seats_of(party: Party) -> dict[str, Seat[Any]]:
    """Return this party's role in every system that its policy allows."""
    allowed = [name for name in SYSTEMS if name in party.settings.policy.systems]
    roles = {name: system(name).roles.get(party.settings.role) for name in allowed}
    return {name: role.open(party) for name, role in roles.items() if role is not None}


AddService = Callable[["Party", "grpc.aio.Server"], str]


def services_of(role: str) -> Sequence[AddService]:
    """Return the services of a role in addition to sessions, for clients that may not be parties of a job."""
    if role != "measurement":
        return ()
    from blindfit.parties.measurement.seat import add_service

    return (add_service,)


def snapshot_writer(role: str, vault: Vault, open_workers: OpenWorkers = in_this_process) -> Writer:
    """Return the writer of a role's part of its datasets.

    Args:
        open_workers: opener of the workers of its own cluster, if it has one.
    """
    if role != "measurement":
        from blindfit.parties.snapshots.rows_file import write_rows

        return write_rows
    from blindfit.parties.measurement.label_index import write_index

    return partial(write_index, vault=vault, open_workers=open_workers)


def load_party(path: Path, overrides: Sequence[str] = ()) -> PartySettings:
    """Read a party's file.

    Raises:
        ConfigError: a field has an error, or an option does nothing in this party's systems; the message names file and
            field.
    """
    return read_party(read_values(path, overrides), str(path))


def read_party(values: Mapping[str, Any], source: str) -> PartySettings:
    """Read the tables of a party's file. Raise ConfigError as `load_party` does."""
    policy = values.get("policy")
    said = policy if isinstance(policy, Mapping) else {}
    taken = said.get("systems", PolicySettings().systems)
    named = tuple(name for name in SYSTEMS if name in said or (isinstance(taken, list) and name in taken))
    settings = validate(values, party_class(named), source=source)
    _check_options_of_systems(settings, source)
    return settings


@cache
def party_class(systems: Sequence[str]) -> type[PartySettings]:
    """Return the class of a party's file whose [policy] has a table for each of these systems that has one."""
    policy: Any = policy_class(systems)
    return create_model(PartySettings.__name__, __base__=PartySettings, policy=(policy, policy()))


@cache
def policy_class(systems: Sequence[str]) -> type[PolicySettings]:
    """Return the class of [policy] with a table for each of these systems that has one."""
    kinds = {name: kind for name in systems if (kind := system(name).policy) is not None}
    tables: dict[str, Any] = {n.replace("-", "_"): (kind, Field(kind(), alias=n)) for n, kind in kinds.items()}
    return create_model(PolicySettings.__name__, __base__=PolicySettings, **tables)


def _check_options_of_systems(settings: PartySettings, source: str) -> None:
    """Raise ConfigError if this party's systems do not use an option in its role, or do not know a flag."""
    systems, role = settings.policy.systems, settings.role
    if unknown := [name for name in systems if name not in SYSTEMS]:
        raise ConfigError(f"{source}: policy.systems: {unknown[0][:64]!r} is not one of {', '.join(SYSTEMS)}")
    used = {option for name in systems for option in system(name).options.get(role, ())}
    if in_vain := settings.options_of_some_systems() - used:
        _refuse_option(min(in_vain), role, source)
    known = [flag for name in systems for flag in sorted(system(name).unsafe)]
    if unlisted := [flag for flag in settings.policy.unsafe if flag not in known]:
        raise ConfigError(f"{source}: policy.unsafe: {unlisted[0]!r} is not one of {', '.join(known)}")


def _refuse_option(option: str, role: str, source: str) -> NoReturn:
    users = {name: [r for r, of_role in system(name).options.items() if option in of_role] for name in SYSTEMS}
    if systems := [name for name, roles in users.items() if role in roles]:
        raise ConfigError(f"{source}: without the protocol {' or '.join(systems)}, {option} does nothing, remove it")
    owners = dict.fromkeys(USERS.get(r, r) for roles in users.values() for r in roles)
    raise ConfigError(f"{source}: {option} is an option of {' or '.join(owners)}, remove it")


def load_model(path: str | Path) -> Model:
    """Read a model.json of any system: a whole model, or one party's part of a vertical one.

    Args:
        path: the file.

    Returns:
        A WALRModel (walr), LabelRegressionModel (label-dp), DPLogisticModel (dp-lr) or VerticalModelPart (taylor,
        falcon). All have `feature_names_in_` and `to_dict`. All but a VerticalModelPart predict by themselves.

    Raises:
        DataError: the file is missing, or is not a model; the message names the file and the field.

    Example:
        >>> result = blindfit.run("job.toml", progress=False)
        >>> model = blindfit.load_model(result.model_files[0])
        >>> isinstance(model, blindfit.WALRModel), model.feature_names_in_.tolist()
        (True, ['f0', 'f1', 'f2', 'f3'])
    """
    from blindfit.parties.files.written import read_json
    from blindfit.parties.vertical.model_store import SHARES

    if Path(path).name == SHARES:  # this file may be locked
        raise DataError(
            f"{path} has one party's shares of a model that no party holds as a whole: it cannot be exported",
            hint="`blindfit predict` scores rows with it, together with the other parties",
        )
    content = read_json(Path(path))
    kind = str(content.get("format")) if isinstance(content, dict) else ""
    for name in SYSTEMS:
        reader = system(name).models().get(kind)
        if reader is not None:
            try:
                return reader(content)
            except (DataError, RangeError) as error:
                raise DataError(f"{path}: {error.message}", hint=error.hint) from None
    formats = [known for name in SYSTEMS for known in system(name).models()]
    raise DataError(f"{path} is not a model: its format is not one of {', '.join(formats)}")
