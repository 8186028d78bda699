"""`blindfit attack`: attack our own mechanisms and models before others do."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from blindfit.algorithms.errors import ConfigError
from blindfit.algorithms.privacy.label_mechanism_options import NAMES
from blindfit.coordinator.cli.common import open_console
from blindfit.coordinator.terminal.exit_codes import ExitCode
from blindfit.coordinator.terminal.json_output import Found

_OF_MECHANISMS = ("epsilon", "delta", "range", "half-width", "samples", "labels")
_OF_MODELS = ("members", "non-members", "label", "id", "sensitive")
_SAMPLES, _MECHANISM_CONFIDENCE, _MODEL_CONFIDENCE = 200_000, 0.999, 0.95


def attack(
    context: typer.Context,
    target: Annotated[
        str,
        typer.Argument(metavar="MECHANISM|MODEL.JSON", help=f"Mechanism ({', '.join(NAMES)}) or file of a model."),
    ],
    epsilon: Annotated[float | None, typer.Option(help="Epsilon to disprove, above 0.  [default: 1]")] = None,
    delta: Annotated[
        float | None, typer.Option(help="Delta to disprove.  [default: 1e-5 for gaussian, else 0]")
    ] = None,
    ends: Annotated[
        tuple[float, float] | None,
        typer.Option("--range", metavar="LO HI", help="Public range of the labels.  [default: 0 1]"),
    ] = None,
    half_width: Annotated[
        float | None, typer.Option(help="Half width of the rp mechanisms, in units of the label.")
    ] = None,
    samples: Annotated[
        int | None, typer.Option(help="Number of samples of each neighbour.  [default: 200,000]")
    ] = None,
    labels: Annotated[
        str | None,
        typer.Option(metavar="FILE.csv:COLUMN", help="Labels that neighbouring data sets share, with --range."),
    ] = None,
    members: Annotated[
        Path | None, typer.Option(metavar="FILE.csv", help="Rows on which the model was trained.")
    ] = None,
    non_members: Annotated[
        Path | None, typer.Option(metavar="FILE.csv", help="Rows on which the model was not trained.")
    ] = None,
    label: Annotated[str | None, typer.Option(help="Column of the label.  [default: label]")] = None,
    row_id: Annotated[str | None, typer.Option("--id", help="Column of the id.  [default: id]")] = None,
    sensitive: Annotated[
        str | None, typer.Option(help="Feature to guess.  [default: the one with the largest weight]")
    ] = None,
    confidence: Annotated[
        float | None,
        typer.Option(
            help="Confidence of the result, 0.5 to below 1.  [default: 0.999 for a mechanism, 0.95 for a model]"
        ),
    ] = None,
) -> Found:
    """Attack a label mechanism or a fitted model.

    The exit status is 1 if the epsilon of a mechanism does not hold.
    """
    given = dict[str, Any](
        epsilon=epsilon, delta=delta, range=ends, samples=samples, labels=labels, label=label, id=row_id
    )
    given |= {"half-width": half_width, "members": members, "non-members": non_members, "sensitive": sensitive}
    if target in NAMES:
        _refuse(given, _OF_MODELS, f"{target} is a mechanism")
        return _audit_mechanism(context, target, epsilon, delta, ends, half_width, samples, labels, confidence)
    from blindfit.coordinator.attack import model

    if not (target.endswith(".json") or Path(target).exists()):
        raise ConfigError(
            f"{target} is neither a mechanism nor a file", hint=f"name a mechanism ({', '.join(NAMES)}) or a model.json"
        )
    _refuse(given, _OF_MECHANISMS, f"{target} is a model")
    if members is None or non_members is None:
        raise ConfigError(
            "a model's audit needs --members and --non-members",
            hint="rows that were trained on, and rows that were not",
        )
    found = model.audit_model(
        Path(target),
        members,
        non_members,
        label=label or "label",
        row_id=row_id or "id",
        sensitive=sensitive,
        confidence=_MODEL_CONFIDENCE if confidence is None else confidence,
    )
    return Found(found.to_dict(), (model.table_of(found), *model.in_words(found)))


def _audit_mechanism(
    context: typer.Context,
    name: str,
    epsilon: float | None,
    delta: float | None,
    ends: tuple[float, float] | None,
    half_width: float | None,
    samples: int | None,
    labels: str | None,
    confidence: float | None,
) -> Found:
    from blindfit.coordinator.attack import mechanism

    if labels is not None and ends is None:
        raise ConfigError("--labels needs --range: the range is public, and not taken from the labels")
    settings = mechanism.mechanism_settings(
        name, 1.0 if epsilon is None else epsilon, delta, ends or (0.0, 1.0), half_width
    )
    if labels is not None and not settings.estimates_prior:
        raise ConfigError(f"--labels: {name} learns nothing from labels beforehand, so they do nothing; remove it")
    found = mechanism.audit_with_progress(
        settings,
        samples=_SAMPLES if samples is None else samples,
        confidence=_MECHANISM_CONFIDENCE if confidence is None else confidence,
        others=None if labels is None else mechanism.read_labels(labels),
        errors=open_console(context, stderr=True),
    )
    shown = mechanism.table_of(found), mechanism.verdict(found)
    return Found(found.to_dict(), shown, ExitCode.DONE if found.holds else ExitCode.FAILED)


def _refuse(given: dict[str, Any], names: tuple[str, ...], because: str) -> None:
    useless = [f"--{name}" for name in names if given[name] is not None]
    if useless:
        raise ConfigError(f"{', '.join(useless)} does nothing: {because}", hint="remove it")
