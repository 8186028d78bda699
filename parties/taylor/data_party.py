"""A data party of a vertical job, active or passive: aligns, checks what its rows would give away, trains, evaluates.

What it keeps is its own part of the model and its own report; of the others' rows it never has more than which are
common.
"""

from __future__ import annotations

import asyncio
import math
import secrets
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from blindfit.algorithms.errors import ConfigError, DataError, PolicyRefused
from blindfit.algorithms.fixed_point import clip_integer_rows
from blindfit.algorithms.messages import ParameterValue
from blindfit.algorithms.paillier.keys import PublicKey
from blindfit.algorithms.paillier.randomisers import RandomiserPool
from blindfit.algorithms.protocols import predict, ready, taylor
from blindfit.algorithms.protocols.ready import Ready
from blindfit.algorithms.protocols.taylor import DataSeat, Progress, TaylorParameters
from blindfit.algorithms.randomness import keyed_normals, system_uniform
from blindfit.algorithms.statistics import gradient_leaks
from blindfit.algorithms.statistics.evaluation import evaluate_classes, evaluate_values
from blindfit.algorithms.statistics.scaling import Standardiser, append_constant
from blindfit.algorithms.statistics.taylor import LOSSES, Optimiser, signed_labels
from blindfit.algorithms.statistics.taylor_plan import Grid, RowPlan
from blindfit.algorithms.statistics.vertical_model import FEATURE_BITS, VerticalModelPart
from blindfit.algorithms.workers import Workers
from blindfit.parties.files import written as models
from blindfit.parties.vertical.checkpoints import Checkpoints, common_epoch, refuse_unknown
from blindfit.parties.work.clock import Clock
from blindfit.parties.job.parameters import JobParameters
from blindfit.parties.vertical.model_store import ModelStore
from blindfit.parties.sessions.sessions import Member, Session
from blindfit.parties.settings import PartySettings
from blindfit.parties.files.signing import SigningKey
from blindfit.parties.data.source import Source
from blindfit.parties.data.source import open_source
from blindfit.parties.store.store import Store
from blindfit.parties.training.budget import Charge, charge, event_of, population_of
from blindfit.parties.vertical.alignment import Aligned, align_rows, restored_mask, stored_mask
from blindfit.parties.taylor.engine import check_engine, randomisers_of, receive_key
from blindfit.parties.taylor.idle import IdleChannel
from blindfit.parties.training.rows import PartyRows, read_rows
from blindfit.parties.vertical.seats import Seats

Floats = NDArray[np.float64]
NORM_PER_ROOT = 1.25  # a standardised row's norm is about the root of its columns
FEATURE_BOUND = 8.0
CLASS_WEIGHT_BITS = 8
LARGEST_CLASS_WEIGHT = 64
POOL_BATCHES = 2  # randomisers made while a party waits, in batches of rows


@dataclass(frozen=True, repr=False)
class Tested:
    """What the active party learns of the test rows."""

    evaluation: dict[str, Any]
    predictions: Floats  # (test rows,) probabilities, or values of a linear model


@dataclass(frozen=True, repr=False)
class Begun:
    """What holds from a training's beginning to its end, also when it is resumed."""

    aligned: Aligned
    jitter_key: bytes


@dataclass(frozen=True, repr=False)
class Prepared:
    """A party's aligned rows, scaled on its training rows."""

    rows: PartyRows
    plan: RowPlan
    standardiser: Standardiser
    columns: Floats  # (n, k) standardised, the intercept last; training rows that stood out are shrunk
    rows_shrunk: int
    y: Floats | None  # as the loss takes it
    label_mean: float
    label_scale: float


class VerticalParty:
    def __init__(self, settings: PartySettings, base_dir: Path, store: Store, workers: Workers) -> None:
        self._settings, self._base_dir, self._store, self._workers = settings, base_dir, store, workers

    def check(self, job: JobParameters, me: Member) -> None:
        """What can be refused before a session starts: the dataset must open, with features, and a label where due."""
        check_engine(job, me.name)
        source = self._source(me)
        if me.role == "active" and source.settings.label is None:
            raise ConfigError(f"datasets.{me.dataset}.label is missing: the active party has the labels")
        if me.role == "active" and (source.settings.label_kind == "binary") != (job.taylor.model == "logistic"):
            raise ConfigError(f'datasets.{me.dataset}.label_kind does not go with taylor.model = "{job.taylor.model}"')
        if me.role == "active" and job.privacy is not None:
            population_of(self._settings.datasets[me.dataset], me.dataset)
        refuse_unknown(self._base_dir / self._settings.data_dir, job, me.name)

    def _source(self, me: Member) -> Source:
        source = open_source(self._settings.datasets[me.dataset], self._base_dir, me.dataset)
        if not source.feature_names:
            raise ConfigError(
                f"datasets.{me.dataset}: a data party's dataset needs features", hint='such as features = "rest"'
            )
        return source

    async def run_taylor(self, session: Session) -> dict[str, ParameterValue]:
        seats, job, clock = Seats.of(session), session.job, Clock()
        active = seats.me == seats.chain[0]
        source = self._source(session.me)
        rows = await asyncio.to_thread(read_rows, source, labels=active, report=session.report)
        clock.lap("read_s")
        public_key = await receive_key(session, seats)
        checkpoints = Checkpoints(self._base_dir / self._settings.data_dir, job.taylor.resume or session.id)
        begun = await self._begin(session, seats, source, rows, public_key, checkpoints)
        clock.lap("align_s")
        prepared = await asyncio.to_thread(
            prepare, rows.take(begun.aligned.positions), source.feature_names, job, active=active
        )
        leaks = own_leaks(prepared, job)
        refuse_leaks(leaks, job, seats.me)
        flags = tuple(sorted({leak.flag for leak in leaks}))
        mine = Ready(prepared.columns.shape[1], flags, ",".join(map(str, checkpoints.epochs())))
        told = await ready.run_party(mine, seats.me, seats.others, session.channel)
        parameters = parameters_of(job, seats, told)
        refuse_leaks(shared_leaks(parameters, prepared.plan, job), job, seats.me)
        is_charged = job.privacy is not None and active
        charged = charge(session, self._settings, self._store, source.fingerprint() or "") if is_charged else None
        seat = self._seat(prepared, parameters, job, public_key, begun)
        resumed = common_epoch({name: said.checkpoint for name, said in told.items()})
        if resumed:
            seat.optimiser.restore(arrays_of(checkpoints.at(resumed)))
        clock.lap("prepare_s")
        epochs = await taylor.run_data_party(
            seat,
            prepared.plan,
            parameters,
            IdleChannel(session.channel, seat.randomisers),
            first_epoch=checkpoints.first_epoch(resumed, parameters.epochs),
            progress=Progress(
                report=lambda step, done, total: session.report(step, done, total, "batches"),
                keep=lambda epoch, go_on: checkpoints.keep(epoch, go_on, lists_of(seat.optimiser.state())),
            ),
            in_thread=asyncio.to_thread,
        )
        clock.lap("train_s")
        part = model_part(session, prepared, seat, self._row_bound(prepared, parameters, job))
        tested = await self._evaluate(session, seats, prepared, part)
        clock.lap("evaluate_s")
        report = _report(session, source, prepared, told, epochs, tested, charged) | {"timing": clock.laps}
        self._write(session, prepared, part, tested, report)
        ModelStore(self._base_dir / self._settings.data_dir).keep(part, session.id)
        await ready.run_stored(epochs, seats.others, session.channel)
        checkpoints.remove()
        return _summary(report)

    async def _begin(
        self,
        session: Session,
        seats: Seats,
        source: Source,
        rows: PartyRows,
        public_key: PublicKey,
        checkpoints: Checkpoints,
    ) -> Begun:
        """Aligns, or takes up the order and the secret of the training that is resumed."""
        version = source.fingerprint() or ""
        if session.job.taylor.resume:
            base = checkpoints.base(session.job)
            if base["dataset_version"] != version:
                raise DataError(f"{source.name} has changed since the training {checkpoints.session} began")
            positions = np.array(base["positions"], dtype=np.int64)
            mask_enc = await asyncio.to_thread(restored_mask, base["mask_enc"], public_key, len(positions), seats.me)
            return Begun(Aligned(positions, mask_enc), bytes.fromhex(base["jitter_key"]))
        begun = Begun(await align_rows(session, seats, source, rows, public_key), secrets.token_bytes(32))
        base = {
            "positions": begun.aligned.positions.tolist(),
            "mask_enc": stored_mask(begun.aligned.mask_enc),
            "jitter_key": begun.jitter_key.hex(),
            "dataset_version": version,
        }
        checkpoints.begin(session.job, base)
        return begun

    def _seat(
        self,
        prepared: Prepared,
        parameters: TaylorParameters,
        job: JobParameters,
        public_key: PublicKey,
        begun: Begun,
    ) -> DataSeat:
        grid = parameters.grid
        optimiser = Optimiser(
            job.taylor.optimiser_settings(),
            np.zeros(prepared.columns.shape[1]),
            intercept=prepared.y is not None and job.taylor.intercept,
            n_batches=len(prepared.plan.batches),
        )
        features = grid.features(prepared.columns)
        if (bound := self._row_bound(prepared, parameters, job)) is not None:
            features = clip_integer_rows(features, bound)
        rows = max(map(len, prepared.plan.batches))
        seat = DataSeat(
            parameters.data_parties[0] if prepared.y is not None else self._settings.name,
            features,
            optimiser,
            RandomiserPool(randomisers_of(job, public_key, rows, self._workers), POOL_BATCHES * rows),
            system_uniform,
            mask_enc=begun.aligned.mask_enc,
            workers=self._workers,
        )
        if prepared.y is not None:
            seat.y = prepared.y
            jitter = 0.0 if job.privacy else job.taylor.jitter
            drawn = jitter * keyed_normals(begun.jitter_key, "jitter", len(prepared.y))
            seat.label_terms = grid.label_terms(prepared.y, drawn)
            seat.factors = class_factors(prepared) if parameters.encrypted_factors else None
        return seat

    def _row_bound(self, prepared: Prepared, parameters: TaylorParameters, job: JobParameters) -> int | None:
        """In steps of the features' grid, rounded down; None without label DP."""
        if job.privacy is None:
            return None
        return int(row_bound(job, sum(parameters.columns), prepared.columns.shape[1]) * 2**FEATURE_BITS)

    async def _evaluate(
        self, session: Session, seats: Seats, prepared: Prepared, part: VerticalModelPart
    ) -> Tested | None:
        """On the test rows: the active party learns their scores, the others nothing."""
        test = prepared.plan.test
        if not len(test):
            return None
        session.report("evaluate")
        own = part.score_parts(prepared.rows.features[test])
        if prepared.rows.labels is None:
            await predict.run_passive(own, seats.me, seats.passives, seats.chain[0], session.channel)
            return None
        scores = await predict.run_active(own, seats.passives, session.channel)
        predictions, labels = part.predictions(scores), prepared.rows.labels[test]
        if part.model == "linear":
            return Tested(evaluate_values(labels, predictions), predictions)
        return Tested(evaluate_classes(labels, predictions, session.job.taylor.threshold), predictions)

    def _write(
        self,
        session: Session,
        prepared: Prepared,
        part: VerticalModelPart,
        tested: Tested | None,
        report: dict[str, Any],
    ) -> None:
        directory = self._settings.output_dir or self._settings.data_dir / "models" / session.id
        directory = self._base_dir / directory
        key = SigningKey.load_or_create(self._base_dir / self._settings.data_dir / "model_key.pem")
        models.write_signed_json(directory / "model.json", {**part.to_dict(), "session": session.id}, key)
        models.write_json(directory / "report.json", report)
        if tested is not None:
            name = "probability" if part.model == "logistic" else "prediction"
            ids = prepared.rows.ids.take(pa.array(prepared.plan.test))
            models.write_table(directory / "test_scores.csv", {"id": ids, name: tested.predictions})


# --- preparing -----------------------------------------------------------------------------------------


def prepare(rows: PartyRows, names: tuple[str, ...], job: JobParameters, *, active: bool) -> Prepared:
    """Splits publicly, scales on the training rows alone, appends the intercept at the active party."""
    settings = job.taylor
    plan = RowPlan.draw(
        len(rows.features),
        test_fraction=job.test_fraction,
        validation_fraction=job.hold_out_fraction,
        batch_rows=settings.batch_rows,
        seed=job.seed,
    )
    fitted_on = _with_rows(rows, plan.train)
    standardiser = Standardiser.fit([rows.features[fitted_on]], names, constant_columns=settings.constant_columns)
    columns = standardiser.transform(rows.features)
    if active and settings.intercept:
        columns = append_constant(columns)
    columns[~rows.there] = 0.0  # slots of linkage in which this party has no row
    shrunk = 0
    if shrinks_rows(job):
        clipped = np.clip(columns, -FEATURE_BOUND, FEATURE_BOUND)
        columns, shrunk = gradient_leaks.shorten_rows(clipped, plan.batches, match_rate=match_rate(job))
    y, mean, scale = (None, 0.0, 1.0) if rows.labels is None else _labels(rows, plan, job)
    return Prepared(rows, plan, standardiser, columns, shrunk, y, mean, scale)


def match_rate(job: JobParameters) -> float:
    """A masked row hides nothing of its batch: after linkage fewer rows share what leaks."""
    return job.align.match_rate if job.align.method == "linkage" else 1.0


def shrinks_rows(job: JobParameters) -> bool:
    """Under label DP the noise covers rows that stand out."""
    return job.taylor.leverage == "shrink" and "leverage" not in job.taylor.unsafe and job.privacy is None


def _labels(rows: PartyRows, plan: RowPlan, job: JobParameters) -> tuple[Floats, float, float]:
    """As the loss takes them, and what turns a linear model's predictions back; slots without a row get 0."""
    labels = np.zeros(0) if rows.labels is None else rows.labels
    train = labels[_with_rows(rows, plan.train)]
    if job.taylor.model == "logistic":
        signed_labels(train)  # one class alone in training is refused
        if len(plan.test):
            _refuse_one_class(labels[plan.test])
        y = np.zeros(len(labels))
        y[rows.there] = signed_labels(labels[rows.there])
        return y, 0.0, 1.0
    mean, scale = float(train.mean()), float(train.std())
    if scale == 0:
        raise DataError("every label is the same: there is nothing to learn")
    return np.where(rows.there, (labels - mean) / scale, 0.0), mean, scale


def _refuse_one_class(labels: Floats) -> None:
    """Before the training, not after it: the model could not be evaluated."""
    if len(np.unique(labels)) < 2:
        raise DataError(
            "the test rows are all of one class, so the model could not be evaluated",
            hint="choose a larger split.test_fraction, or 0",
        )


def _with_rows(rows: PartyRows, positions: NDArray[np.int64]) -> NDArray[np.int64]:
    """Without the slots of linkage in which this party has no row."""
    return positions[rows.there[positions]]


def class_factors(prepared: Prepared) -> NDArray[np.int64]:
    """n / (2 n_class) of each row, in steps of 2^-8; from the training rows."""
    if prepared.y is None:
        raise ConfigError("only the active party knows the classes")
    train = prepared.y[_with_rows(prepared.rows, prepared.plan.train)] > 0
    share = float(train.mean())
    weights = np.where(prepared.y > 0, 0.5 / share, 0.5 / (1 - share))
    if float(weights.max()) > LARGEST_CLASS_WEIGHT:
        raise DataError(
            f"a class is so rare that its weight would pass {LARGEST_CLASS_WEIGHT}",
            hint='set taylor.class_weights = "none"',
        )
    factors: NDArray[np.int64] = np.rint(weights * 2**CLASS_WEIGHT_BITS).astype(np.int64)
    return factors


def parameters_of(job: JobParameters, seats: Seats, told: Mapping[str, Ready]) -> TaylorParameters:
    """The same at every party: from the job and what everyone said of itself."""
    settings = job.taylor
    columns = tuple(told[name].columns for name in seats.chain)
    weighted = settings.class_weights == "balanced"
    grid = Grid(settings.model, len(seats.chain), feature_bits=FEATURE_BITS)
    if weighted:
        grid = replace(grid, factor_bits=CLASS_WEIGHT_BITS, factor_bound=LARGEST_CLASS_WEIGHT << CLASS_WEIGHT_BITS)
    return TaylorParameters(
        data_parties=seats.chain,
        key_node=seats.key_node,
        columns=columns,
        grid=grid,
        key_bits=settings.key_bits,
        epochs=settings.epochs,
        patience=settings.patience,
        tolerance=settings.tolerance,
        encrypted_factors=weighted,
        noise_std=settings.gradient_noise if job.privacy is None else label_noise_std(job, sum(columns)),
        noise_kept=job.privacy is not None,
        masked=job.align.method == "linkage",
        hold_out_loss=job.hold_out_fraction > 0,
    )


# --- label DP ------------------------------------------------------------------------------------------


def row_bound(job: JobParameters, all_columns: int, columns: int) -> float:
    """R sqrt(k_p / k): a party's own part of the bound R on a row, so that the squares add up to R^2."""
    bound = NORM_PER_ROOT * math.sqrt(all_columns) if job.taylor.norm_bound == "auto" else job.taylor.norm_bound
    return bound * math.sqrt(columns / all_columns)


def label_noise_std(job: JobParameters, columns: int) -> float:
    """Of the key node's kept noise: the multiplier times what one label changes in X^T (b y)."""
    label_range = 2.0  # from -1 to 1
    sensitivity = LOSSES[job.taylor.model].cross * label_range * row_bound(job, columns, columns)
    return event_of(job.required_privacy).noise_multiplier * sensitivity


# --- what would leak -----------------------------------------------------------------------------------


def own_leaks(prepared: Prepared, job: JobParameters) -> list[gradient_leaks.Leak]:
    """What this party's own columns would give away; under label DP the noise covers the labels."""
    if job.privacy is not None:
        return []
    columns, batches = prepared.columns, prepared.plan.batches
    return [
        *gradient_leaks.check_leverage(columns, batches, match_rate=match_rate(job)),
        *gradient_leaks.check_rows_against_features(min(map(len, batches)), columns.shape[1]),
        *gradient_leaks.check_noise(job.taylor.gradient_noise, gradient_leaks.narrow_columns(columns)),
        *gradient_leaks.check_hold_out(len(prepared.plan.validation)),
    ]


def shared_leaks(parameters: TaylorParameters, plan: RowPlan, job: JobParameters) -> list[gradient_leaks.Leak]:
    """What all passive columns together would tell of a batch's labels."""
    if job.privacy is not None:
        return []
    smallest = min(map(len, plan.batches))
    return gradient_leaks.check_label_bits(sum(parameters.columns[1:]), smallest, job.taylor.jitter)


def refuse_leaks(leaks: list[gradient_leaks.Leak], job: JobParameters, party: str) -> None:
    """Raises PolicyRefused: something would leak that no flag of the job allows."""
    for leak in leaks:
        if leak.flag not in job.taylor.unsafe:
            reason = f'{leak.text}; taylor.unsafe = ["{leak.flag}"] allows it'
            raise PolicyRefused(party=party, field=leak.rule, reason=reason)


# --- checkpoints ---------------------------------------------------------------------------------------


def lists_of(state: Mapping[str, Floats]) -> dict[str, Any]:
    return {name: array.tolist() for name, array in state.items()}


def arrays_of(stored: Mapping[str, Any]) -> dict[str, Floats]:
    """Raises DataError: the checkpoint does not hold numbers."""
    try:
        return {name: np.array(numbers, dtype=np.float64) for name, numbers in stored.items()}
    except (TypeError, ValueError):
        raise DataError("a checkpoint of the training is damaged", hint="run the job without taylor.resume") from None


# --- what is kept and told ------------------------------------------------------------------------------


def model_part(session: Session, prepared: Prepared, seat: DataSeat, bound: int | None) -> VerticalModelPart:
    weights, has_intercept = seat.optimiser.weights, seat.optimiser.intercept
    return VerticalModelPart(
        party=session.me.name,
        role=session.me.role,
        model=session.job.taylor.model,
        data_parties=Seats.of(session).chain,
        standardiser=prepared.standardiser,
        weights=weights[:-1] if has_intercept else weights,
        intercept=float(weights[-1]) if has_intercept else None,
        row_bound=bound,
        label_mean=prepared.label_mean,
        label_scale=prepared.label_scale,
    )


def _report(
    session: Session,
    source: Source,
    prepared: Prepared,
    told: Mapping[str, Ready],
    epochs: int,
    tested: Tested | None,
    charged: Charge | None,
) -> dict[str, Any]:
    plan = prepared.plan
    return {
        "session": session.id,
        "party": session.me.name,
        "role": session.me.role,
        "job": dict(session.parameters),
        "members": {name: member.role for name, member in session.members.items()},
        "rows": {
            "common": len(prepared.rows.features),
            "trained": len(plan.train),
            "validation": len(plan.validation),
            "test": len(plan.test),
            "batches": len(plan.batches),
            "features": len(prepared.standardiser.kept),
            "shrunk": prepared.rows_shrunk,
            "dropped_columns": list(prepared.standardiser.dropped),
        },
        "fit": {"epochs": epochs, "unsafe": sorted({flag for party in told.values() for flag in party.unsafe})},
        "evaluation": None if tested is None else tested.evaluation,
        "privacy": None if charged is None else asdict(charged),
        "dataset": source.name,
    }


def _summary(report: dict[str, Any]) -> dict[str, ParameterValue]:
    """What the coordinator may see: no weight, no score; under label DP no figure that was made from labels either."""
    summary: dict[str, ParameterValue] = {
        f"{part}.{name}": tuple(value) if isinstance(value, list) else value
        for part in ("rows", "fit", "privacy", "timing")
        for name, value in (report[part] or {}).items()
    }
    evaluation = (not report["privacy"] and report["evaluation"]) or {}
    for name, value in evaluation.items():
        if isinstance(value, int | float):
            summary[f"evaluation.{name}"] = value
    for name, value in evaluation.get("confusion", {}).items():
        summary[f"evaluation.confusion.{name}"] = value
    return summary
