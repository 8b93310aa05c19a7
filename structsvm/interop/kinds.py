"""Kinds of model files of other programs: how they begin and end, and what reads and writes them."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from structsvm.interop.chain_model import PROGRAMS, ChainModel
from structsvm.interop.crfpp import read_crfpp, write_crfpp
from structsvm.interop.crfsuite import read_crfsuite, write_crfsuite
from structsvm.interop.own import own_model
from structsvm.interop.wapiti import read_wapiti, write_wapiti
from structsvm.model_file import ModelFileError

if TYPE_CHECKING:
    from structsvm.interop.trained import Trained

__all__ = ["KINDS", "Kind", "kind_by_content", "kind_by_name", "read_chain", "write_chain"]


class Kind(NamedTuple):
    """A kind of model file.

    Attributes
    ----------
    read, write : functions
        Of a path, and of a model and a path.
    begins : tuple of bytes
        How such files begin.
    endings : tuple of str
        How their names usually end.
    """

    read: Callable[[str | os.PathLike[str]], ChainModel]
    write: Callable[[ChainModel | Trained, str | os.PathLike[str]], None]
    begins: tuple[bytes, ...]
    endings: tuple[str, ...]


# A line per kind; the command line and conversions know those.
KINDS = {
    "wapiti": Kind(read_wapiti, write_wapiti, (b"#mdl#", b"\x1f\x8b"), (".wapiti", ".mod", ".mod.gz")),
    "crfsuite": Kind(read_crfsuite, write_crfsuite, (b"lCRF",), (".crfsuite",)),
    "crfpp": Kind(read_crfpp, write_crfpp, (b"version: ", b"\x64\0\0\0\0\0\0\0"), (".crfpp",)),
}


OWN = ".model"  # how the names of our files end


def kind_by_content(path: str | os.PathLike[str]) -> str | None:
    """The kind of a file by its first bytes, None if it is none of these."""
    with open(path, "rb") as file:
        head = file.read(max(len(begin) for kind in KINDS.values() for begin in kind.begins))
    return next((name for name, kind in KINDS.items() if head.startswith(kind.begins)), None)


def kind_by_name(path: str | os.PathLike[str]) -> str | None:
    """The kind that the end of a file's name tells, None if it tells none."""
    name = os.fspath(path).lower()
    if name.endswith(OWN):
        return "own"
    return next((kind for kind, of in KINDS.items() if name.endswith(of.endings)), None)


def read_chain(path: str | os.PathLike[str]) -> ChainModel:
    """Read a model of any of the kinds, by its content.

    Raises
    ------
    ModelFileError
        For any other file, and for a damaged one.
    """
    kind = kind_by_content(path)
    if kind is None:
        raise ModelFileError(f"{os.fspath(path)}: is no model file of {', '.join(PROGRAMS[name] for name in KINDS)}")
    return KINDS[kind].read(path)


def write_own(model: ChainModel | Trained, path: str | os.PathLike[str]) -> None:
    """Write a model that was read as one of ours."""
    if not isinstance(model, ChainModel):
        raise ValueError("model: it is one of ours already")
    own_model(model).save(path)


def write_chain(model: ChainModel | Trained, path: str | os.PathLike[str], kind: str | None = None) -> None:
    """Write a model as one of the kinds, by default the one that the end of the name tells; or as ours, ``"own"``.

    Raises
    ------
    ValueError
        If that tells none, and for a model that the program has no counterpart of.
    """
    kind = kind_by_name(path) if kind is None else kind
    if kind == "own":
        write_own(model, path)
        return
    if kind not in KINDS:
        ends = ", ".join(f"{of.endings[0]} ({PROGRAMS[name]})" for name, of in KINDS.items())
        raise ValueError(f"kind: must be one of {', '.join(KINDS)}, own, or the name must end in {ends}; got {kind!r}")
    KINDS[kind].write(model, path)
