"""Models fitted to public rows, from which a job may start."""

from __future__ import annotations

from pathlib import Path

from blindfit.algorithms.errors import ConfigError, DataError
from blindfit.algorithms.statistics.linear.pretraining import Pretrained
from blindfit.parties.data.source import Source
from blindfit.parties.files.written import read_json
from blindfit.parties.settings import PartySettings


def load_pretrained(path: str | Path) -> Pretrained:
    """Read a pretrained.json: a model that was fitted to public rows.

    Args:
        path: the file.

    Returns:
        The model; `init=` of the estimators takes it.

    Raises:
        DataError: the file is missing, or is not such a model; the message names the file and the field.

    Example:
        >>> names = ["a", "b", "c"]
        >>> fitted = blindfit.pretrain(pd.DataFrame(X, columns=names), y)
        >>> _ = Path("pretrained.json").write_text(fitted.to_json())
        >>> blindfit.load_pretrained("pretrained.json").columns
        ('a', 'b', 'c')
    """
    content = read_json(Path(path))
    try:
        return Pretrained.from_dict(content)
    except DataError as error:
        raise DataError(f"{path}: {error.message}", hint=error.hint) from None


def read_public_model(option: str, given: str, base_dir: Path, source: Source) -> Pretrained:
    """Return a model fitted to public rows, from this party's own directory.

    Raises:
        ConfigError: the path leads out of the directory: a job may not choose among all files of a party.
            DataError: there is an error in the file; the message names the file.
    """
    path = within(option, given, base_dir)
    init = load_pretrained(path)
    try:
        init.check_columns(source.model_columns, source.record)
    except DataError as error:
        raise DataError(f"{path}: {error.message}", hint=error.hint) from None
    return init


def dataset_declared_public(model: Pretrained, settings: PartySettings) -> str:
    """Return the party's own dataset that the model was fitted to, if the party's file declares it public; else "".

    A model's file names the dataset that it was fitted to. Only the owner's own party file declares that dataset
    public. Another party's declaration does not count, because this party cannot prove it.
    """
    rows = model.public
    if rows is None or rows.party != settings.name:
        return ""
    described = settings.datasets.get(rows.dataset)
    return rows.dataset if described is not None and described.public else ""


def within(option: str, given: str, base_dir: Path) -> Path:
    """Return the path. Raise ConfigError if it leads out of the directory."""
    path = Path(given)
    if path.is_absolute() or ".." in path.parts:
        raise ConfigError(f"{option}: {path} is not within the directory of the active party's file")
    return base_dir / path
