"""Find or download the files of a data set, check them, and read them; what data sets of two parts share.

A data set is a folder of files in the data folder. The hash is that of a file's *content* (the text inside a ``.gz``,
the arrays inside an ``.npz``), so compressors and their settings do not matter, and a file made from its public origin
must have the same hash as a copied one. The archives at the origins have no hash of their own here: what is extracted
from them is checked before anything is written.
"""

from __future__ import annotations

import hashlib
import io
import os
import tempfile
from collections.abc import Callable, Iterable, Sized
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

import numpy as np

from structsvm.datasets._sources import SOURCES, Source
from structsvm.features.sources import decompress
from structsvm.files.new_file import new_file

if TYPE_CHECKING:
    from structsvm.arrays import CheckedArray

DataHome = str | os.PathLike[str] | None
Examples = TypeVar("Examples")
Labels = TypeVar("Labels", bound=Sized)


class DatasetUnavailableError(OSError):
    """A data set is not on this machine and cannot be downloaded, or one of its files is damaged.

    The message names the file, what was wanted, where to put it, its origin and its licence.

    Examples
    --------
    >>> from structsvm.datasets import DatasetUnavailableError, fetch_prefab
    >>> try:
    ...     fetch_prefab("/nowhere")
    ... except DatasetUnavailableError as error:
    ...     print("STRUCTSVM_DATA" in str(error))
    True
    """


class File(NamedTuple):
    """A checked file of a data set; `content` is unpacked if the file is a ``.gz``."""

    path: Path
    content: bytes

    def lines(self) -> list[str]:
        return self.content.decode("utf-8").splitlines()

    def rows(self) -> list[list[str]]:
        """Columns of each line of a tab-separated table."""
        return [line.split("\t") for line in self.lines()]

    def arrays(self) -> dict[str, CheckedArray]:
        """Arrays of an ``.npz`` by name."""
        return _arrays(self.content)


def fetch(name: str, data_home: DataHome = None) -> dict[str, File]:
    """Return the files of a data set, in place if the data folder has them, else downloaded to it.

    Parameters
    ----------
    name : str
        Key of ``SOURCES``.
    data_home : path-like, optional
        The data folder; by default that of the environment variable ``STRUCTSVM_DATA``, else that of `default_home`.

    Returns
    -------
    dict of str to File

    Raises
    ------
    DatasetUnavailableError
        A file is missing and cannot be downloaded, or has another hash.
    """
    source = SOURCES[name]
    home = data_home or os.environ.get("STRUCTSVM_DATA") or default_home()
    folder = Path(home).expanduser() / source.folder
    missing = [file for file in source.sha256 if not (folder / file).is_file()]
    if missing:
        try:
            _download(source, folder, missing)
        except DatasetUnavailableError:
            raise
        except Exception as error:  # noqa: BLE001 - whatever network, archive or disk may raise
            reason = str(error) if isinstance(error, (ImportError, LookupError)) else type(error).__name__
            raise DatasetUnavailableError(
                f"data set {name!r}: {', '.join(missing)} not found in {folder}, and downloading failed ({reason}).\n"
                f"Put the file there, or name a data folder that contains {source.folder}/ "
                "with data_home= or the environment variable STRUCTSVM_DATA.\n"
                f"Origin: {source.url}\n"
                f"Licence: {source.licence}"
            ) from None
    paths = [folder / file for file in source.sha256]
    advice = " Remove it to download it again."
    return {p.name: File(p, _checked(source, p.name, p.read_bytes(), str(p), advice)) for p in paths}


def default_home() -> Path:
    """The system's folder for caches (``~/.cache/structsvm``); ``~/structsvm_data`` where there is one, or no pooch."""
    before = Path.home() / "structsvm_data"
    if before.is_dir():
        return before
    try:
        import pooch
    except ImportError:
        return before
    return Path(pooch.os_cache("structsvm"))


def _download(source: Source, folder: Path, files: Iterable[str]) -> None:
    if source.convert is None:
        raise LookupError("its origin has it in another form")
    try:
        import pooch
    except ImportError:
        raise ImportError("pooch is not installed: pip install pooch") from None

    with tempfile.TemporaryDirectory() as scratch:
        archive = pooch.retrieve(source.url, known_hash=None, fname="archive", path=scratch)
        made = source.convert(Path(archive))
    for file in files:
        _checked(source, file, made[file], f"{file} made from {source.url}")
    folder.mkdir(parents=True, exist_ok=True)
    for file in files:
        with new_file(folder / file) as whole:
            whole.write(made[file])


def _checked(source: Source, file: str, raw: bytes, where: str, advice: str = "") -> bytes:
    """Content of a file's bytes; DatasetUnavailableError if its hash is wrong."""
    try:
        content = decompress(raw, file)
        arrays = _arrays(content) if file.endswith(".npz") else None
    except Exception as error:  # noqa: BLE001 - whatever the decoders of gzip, zip, numpy raise
        raise DatasetUnavailableError(f"{where} is damaged ({error}).{advice}") from None
    hashed = [content] if arrays is None else [arrays[key].tobytes() for key in sorted(arrays)]
    got, wanted = hashlib.sha256(b"".join(hashed)).hexdigest(), source.sha256[file]
    if got != wanted:
        raise DatasetUnavailableError(
            f"{where} is not the file wanted: the sha256 of its content is {got}, it should be {wanted}.{advice}"
        )
    return content


def _arrays(content: bytes) -> dict[str, CheckedArray]:
    with np.load(io.BytesIO(content)) as arrays:
        return dict(arrays)


# ---- parts ---------------------------------------------------------------------------------------


@dataclass(frozen=True, repr=False)
class Split(Generic[Examples, Labels]):
    """Examples and labels of both parts."""

    X_train: Examples
    y_train: Labels
    X_test: Examples
    y_test: Labels

    def _sizes(self) -> dict[str, int]:
        return {"n_train": len(self.y_train), "n_test": len(self.y_test)}

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={size}' for name, size in self._sizes().items())})"


def fields(read: Callable[[str], tuple[Any, ...]], *parts: str, names: tuple[str, ...] = ("X", "y")) -> dict[str, Any]:
    """Return ``X_train``, ``y_train`` and so on, given a function that returns X and y of a part."""
    return {
        f"{name}_{part}": value
        for part in parts or ("train", "test")
        for name, value in zip(names, read(part), strict=True)
    }
