"""Training sets in files: encoded examples, the ids of their labels, an index, bounds of shards."""

from __future__ import annotations

import os
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from numbers import Integral
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from structsvm.features.tokens import Tokens
from structsvm.model_file import ModelFile, ModelFileError, read_model, unsound, write_model
from structsvm.shards.spread import here
from structsvm.shards.storage import Vector, Writer
from structsvm.shards.tokens import StoredTokens, shard_bounds
from structsvm.stored_values import Array, Count, Flag, checked_arrays

if TYPE_CHECKING:
    from structsvm.arrays import AnyArray

INDEX = "index"
DTYPES = {"offsets": "<i8", "indptr": "<i8", "indices": "<i4", "values": "<f4", "label_ids": "<i4"}
BOUNDS = {"bounds": Array("i8", ("n_shards+1",), rises_to="n_sequences"), "checksums": Array("i8", ("n_shards",))}

DEFAULT_MEMORY = 2**28
TOKEN_BYTES = 500  # room of a token while it is counted or encoded
MOST = 2**60  # bytes, or entries of a file
PIECE = 1 << 20  # entries of a file that are copied at once


class Shards(ABC):
    """Labelled examples in a folder of files that are mapped into memory.

    Attributes
    ----------
    folder : Path
    tokens : StoredTokens
    label_ids : int32 array of shape (n_tokens,)
        Indices into `labels`.
    labels : list
    """

    kind: ClassVar[str]
    reopen: Callable[[], Any]

    def __init__(self, folder: Path, tokens: StoredTokens, label_ids: Any, labels: Any) -> None:
        self.folder, self.tokens, self.label_ids, self.labels = folder, tokens, label_ids, labels

    def __len__(self) -> int:
        return len(self.tokens)

    def __reduce__(self) -> Any:
        return self.reopen, ()

    @property
    def n_shards(self) -> int:
        return len(self.tokens.bounds) - 1

    def check(self) -> None:
        """Read all files once, and compare their checksums with those of when they were made, as training does.

        Raises
        ------
        ModelFileError
            If they have changed.
        """
        changed = np.flatnonzero(self.tokens.checksums_now() != self.tokens.checksums)
        if len(changed):
            raise ModelFileError(
                f"{self.folder}: shard {changed[0]} has changed since it was made; make the shards anew"
            )

    @classmethod
    def open(cls, folder: str | os.PathLike[str], *, mmap: bool = True, **options: Any) -> Self:
        """Open a folder made by `make`.

        Parameters
        ----------
        folder : path
        mmap : bool, default=True
            Whether to map the files; otherwise they are read into memory as a whole.

        Raises
        ------
        ModelFileError
            If its index is incomplete or invalid, or a file does not have the size stated there.
        FileNotFoundError
            If it has no index.
        """
        folder = Path(folder)
        if not (folder / INDEX).exists():
            raise FileNotFoundError(f"{folder / INDEX} is not there: {folder} is no folder of shards")
        file = read_model(folder / INDEX, kind=cls.kind)
        with unsound(folder, cls.kind):
            shards = cls._opened(folder, file, mmap, **options)
        shards.reopen = partial(cls.open, folder.absolute(), mmap=mmap, **options)
        return shards

    @classmethod
    @abstractmethod
    def _opened(cls, folder: Path, file: ModelFile, mmap: bool, **options: Any) -> Self:
        """The shards whose index is a file; ValueError, KeyError or TypeError for what `make` cannot have written."""

    @staticmethod
    def _stored(folder: Path, file: ModelFile, mmap: bool, n_features: int) -> tuple[StoredTokens, NDArray[np.int32]]:
        """The tokens and label ids of a folder."""
        sizes = {name: Count(high=MOST).get(name, file.meta["sizes"]) for name in DTYPES}
        has_values = Flag().get("has_values", file.meta)
        if sizes["offsets"] < 2 or sizes["values"] != has_values * sizes["indices"]:
            raise ValueError(f"files of the sizes {sizes}")
        arrays = checked_arrays(file.arrays, BOUNDS, n_sequences=sizes["offsets"] - 1)
        if (np.diff(arrays["bounds"]) <= 0).any():
            raise ValueError("an empty shard")
        max_memory = Count(1, MOST).get("max_memory", file.meta)
        tokens = _in_files(folder, sizes, has_values, mmap, n_features, max_memory=max_memory, **arrays)
        return tokens, tokens.label_ids

    @classmethod
    def _join(
        cls, folder: Path, parts: Sequence[EncodedPart], meta: Any, arrays: Any, max_memory: int, each: Any = here
    ) -> None:
        """Put encoded parts into the files of a folder, one after the other, and write the index at last.

        `each`: `here`, or `spread`.
        """
        has_values = any(part.has_values for part in parts)
        lengths, entries = (np.concatenate([part.sizes[k] for part in parts]) for k in (0, 1))
        n_tokens, n_entries = int(lengths.sum()), int(entries.sum())
        sizes = {
            "offsets": len(lengths) + 1,
            "indptr": n_tokens + 1,
            "indices": n_entries,
            "values": has_values * n_entries,
            "label_ids": n_tokens,
        }
        for name, kind in DTYPES.items():
            if has_values or name != "values":
                with (folder / name).open("wb") as file:
                    file.truncate(sizes[name] * np.dtype(kind).itemsize)
        counts = [(part.sizes.shape[1], *part.sizes.sum(axis=1).tolist()) for part in parts]
        starts = np.cumsum([(0, 0, 0), *counts[:-1]], axis=0).tolist()
        each(_place, list(zip(parts, starts, strict=True)), folder, has_values)
        bounds = shard_bounds(12 * lengths + (8 if has_values else 4) * entries, max_memory)
        tokens = _in_files(
            folder, sizes, has_values, True, 0, max_memory=max_memory, bounds=bounds, checksums=np.zeros(0, np.int64)
        )
        meta = meta | {"sizes": sizes, "has_values": has_values, "max_memory": max_memory}
        arrays = arrays | {"bounds": bounds, "checksums": tokens.checksums_now(locally=each is here)}
        write_model(folder / INDEX, cls.kind, meta, arrays)


def _in_files(
    folder: Path, sizes: dict[str, int], has_values: bool, mmap: bool, n_features: int, **about: Any
) -> StoredTokens:
    """Tokens in the files of a folder, each of so many numbers."""
    vectors = {
        name: Vector(folder / name, dtype, sizes[name], is_mapped=mmap)
        for name, dtype in DTYPES.items()
        if name != "values" or has_values
    }
    return StoredTokens(
        vectors["offsets"].array,
        vectors["indptr"].array,
        vectors["indices"].array,
        vectors["values"].array if has_values else None,
        n_features,
        by_sequence=(vectors["offsets"],),
        by_token=(vectors["indptr"], vectors["label_ids"]),
        by_entry=(vectors["indices"], *([vectors["values"]] if has_values else [])),
        **about,
    )


class EncodedPart(NamedTuple):
    """Encoded examples in the files of a folder of their own.

    Attributes
    ----------
    folder : Path
    sizes : int64 array of shape (2, n_examples)
        Tokens of each, and entries of these.
    has_values : bool
    """

    folder: Path
    sizes: NDArray[np.int64]
    has_values: bool


def write_part(scratch: Path, pieces: Iterable[tuple[Tokens, AnyArray]]) -> EncodedPart:
    """Write encoded examples with their label ids, some at a time, into a new folder in `scratch`."""
    folder = Path(tempfile.mkdtemp(dir=scratch))
    sizes: list[NDArray[np.int64]] = []
    n_tokens = n_entries = 0
    has_values = False
    with Writer(folder, **DTYPES) as writer:
        for name in ("offsets", "indptr"):
            writer.append(name, np.zeros(1))
        for tokens, label_ids in pieces:
            if tokens.values is not None and not has_values:
                has_values = True
                _append_ones(writer, n_entries)
            writer.append("offsets", tokens.offsets[1:] + n_tokens)
            writer.append("indptr", tokens.indptr[1:] + n_entries)
            writer.append("indices", tokens.indices)
            writer.append("label_ids", label_ids)
            if tokens.values is not None:
                writer.append("values", tokens.values)
            elif has_values:
                _append_ones(writer, tokens.n_entries)
            sizes.append(np.stack([tokens.lengths, np.diff(tokens.indptr[tokens.offsets])]))
            n_tokens += tokens.n_tokens
            n_entries += tokens.n_entries
    return EncodedPart(folder, np.concatenate(sizes, axis=1), has_values)


def _place(item: tuple[EncodedPart, tuple[int, int, int]], folder: Path, has_values: bool) -> None:
    """Write a part to its place in the files of all, behind so many examples, tokens and entries."""
    part, (n_examples, n_tokens, n_entries) = item
    begins = {
        "offsets": (n_examples, n_tokens),
        "indptr": (n_tokens, n_entries),
        "indices": (n_entries, 0),
        "label_ids": (n_tokens, 0),
    }
    if has_values:
        begins["values"] = n_entries, 0
    for name, (start, shift) in begins.items():
        kind = np.dtype(DTYPES[name])
        with (folder / name).open("r+b") as out:
            out.seek(start * kind.itemsize)
            if name == "values" and not part.has_values:
                pieces = _ones(int(part.sizes[1].sum()))
            else:
                size = (part.folder / name).stat().st_size // kind.itemsize
                pieces = Vector(part.folder / name, DTYPES[name], size, is_mapped=True).pieces(PIECE)
            for piece in pieces:
                out.write((piece + shift).astype(kind).data)
            out.flush()
            os.fsync(out.fileno())


def checked_memory(max_memory: Any) -> int:
    """The parameter `max_memory`; ValueError if it is no positive int."""
    if isinstance(max_memory, bool) or not isinstance(max_memory, Integral) or max_memory < 1:
        raise ValueError(f"The 'max_memory' parameter must be an int of at least 1. Got {max_memory!r} instead.")
    return min(int(max_memory), MOST)


def _ones(n: int) -> Iterator[AnyArray]:
    for start in range(0, n, PIECE):
        yield np.ones(min(n - start, PIECE), dtype=np.float32)


def _append_ones(writer: Writer, n: int) -> None:
    for piece in _ones(n):
        writer.append("values", piece)
