"""Vectors in the files of a folder: appended to while they are made, mapped into memory later."""

from __future__ import annotations

import io
import mmap
import os
import pickle
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from structsvm.arrays import AnyArray, Scalar


@contextmanager
def new_folder(path: str | os.PathLike[str]) -> Iterator[Path]:
    """A folder that appears under its name whole, or not at all.

    Raises
    ------
    FileExistsError
        If there is something at `path` that is no empty folder.
    """
    target = Path(path)
    if target.exists() and not (target.is_dir() and not any(target.iterdir())):
        raise FileExistsError(f"{target}: is there already; shards are made in a new folder, or an empty one")
    temporary = Path(tempfile.mkdtemp(prefix=f".{target.name}-", dir=target.absolute().parent))
    try:
        yield temporary
        temporary.chmod(0o777 & ~_umask())
        os.replace(temporary, target)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise


@contextmanager
def scratch_folder(target: Path) -> Iterator[Path]:
    """A folder beside another one, for files that workers of a cluster may still write to when it goes."""
    with tempfile.TemporaryDirectory(dir=target.parent, ignore_cleanup_errors=True) as folder:
        yield Path(folder)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


class Writer:
    """Vectors to which arrays are appended.

    Parameters
    ----------
    folder : Path
    **dtypes : str
        The type of each vector's entries, by its name.

    Attributes
    ----------
    sizes : dict of str to int
        Entries so far.
    """

    def __init__(self, folder: Path, **dtypes: str) -> None:
        self.dtypes = dtypes
        self.sizes = dict.fromkeys(dtypes, 0)
        self._closing = ExitStack()
        self._files = {name: self._closing.enter_context((folder / name).open("wb")) for name in dtypes}

    def append(self, name: str, array: AnyArray) -> None:
        self._files[name].write(np.ascontiguousarray(array, dtype=self.dtypes[name]).data)
        self.sizes[name] += array.size

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        if error[0] is None:
            for file in self._files.values():
                file.flush()
                os.fsync(file.fileno())
        self._closing.close()


class Vector:
    """A vector in a file.

    Parameters
    ----------
    path : Path
    dtype : str
    size : int
        Entries that it must have; ValueError, naming the file, for another number.
    is_mapped : bool
        Whether its pages are read on access; otherwise all of it is in memory.
    """

    def __init__(self, path: Path, dtype: str, size: int, *, is_mapped: bool) -> None:
        kind = np.dtype(dtype)
        if path.stat().st_size != size * kind.itemsize:
            raise ValueError(f"{path}: has {path.stat().st_size} bytes, expected {size * kind.itemsize}")
        self._map: mmap.mmap | None = None
        if not is_mapped or not size:
            self.array = np.fromfile(path, dtype=kind)
            return
        self._map = map_file(path)
        self.array = np.frombuffer(self._map, dtype=kind)

    def check(self) -> None:
        """ValueError if the file has become shorter since it was mapped: what it lacks would end who reads it."""
        if self._map is not None and self._map.size() < len(self._map):
            raise ValueError(
                f"{PATHS[self._map]}: has {self._map.size()} bytes, and had {len(self._map)} when it was mapped"
            )

    def release(self, start: int, stop: int) -> None:
        """Release the pages of entries start .. stop - 1, as far as there are any; they are read again on access."""
        if self._map is None or not hasattr(mmap, "MADV_DONTNEED"):
            return
        start, stop = max(start, 0), min(stop, len(self.array))
        first = start * self.array.itemsize // mmap.PAGESIZE * mmap.PAGESIZE
        if stop * self.array.itemsize > first:
            self._map.madvise(mmap.MADV_DONTNEED, first, stop * self.array.itemsize - first)

    def pieces(self, size: int) -> Iterator[AnyArray]:
        """All of it, so many entries at a time."""
        for start in range(0, len(self.array), size):
            yield self.array[start : start + size]
            self.release(start, start + size)


def stored(path: Path, array: NDArray[Scalar]) -> NDArray[Scalar]:
    """A vector in a new file, mapped."""
    array.tofile(path)
    return Vector(path, array.dtype.str, array.size, is_mapped=True).array


def in_file(arrays: Iterable[AnyArray]) -> AnyArray:
    """Arrays of the same columns, one below the other, mapped from a file without a name (in ``TMPDIR``)."""
    with tempfile.TemporaryFile() as file:
        for array in arrays:
            file.write(np.ascontiguousarray(array).data)
        shape = -1, *array.shape[1:]
        if not file.tell():
            return np.zeros((0, *array.shape[1:]), dtype=array.dtype)
        file.flush()
        return np.asarray(np.memmap(file, array.dtype, "r")).reshape(shape)


# The files of all mappings that are in use.
PATHS: WeakKeyDictionary[mmap.mmap, Path] = WeakKeyDictionary()


def map_file(path: Path) -> mmap.mmap:
    """A file, mapped."""
    with open(path, "rb") as file:
        mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    PATHS[mapped] = path.absolute()
    return mapped


class _Pickler(pickle.Pickler):
    def reducer_override(self, item: Any) -> Any:
        if type(item) is not np.ndarray or not item.size or not item.flags.c_contiguous:
            return NotImplemented
        base: Any = item
        while isinstance(base, np.ndarray | memoryview):
            base = base.base if isinstance(base, np.ndarray) else base.obj
        if not isinstance(base, mmap.mmap) or base not in PATHS:
            return NotImplemented
        offset = item.ctypes.data - np.frombuffer(base, dtype=np.uint8).ctypes.data
        return mapped_array, (PATHS[base], item.dtype.str, offset, item.shape)


def dumps_references(item: Any) -> bytes:
    """A pickle in which arrays in mapped files are references to these: who loads it maps them anew."""
    out = io.BytesIO()
    _Pickler(out, pickle.HIGHEST_PROTOCOL).dump(item)
    return out.getvalue()


def mapped_array(path: Path, dtype: str, offset: int, shape: tuple[int, ...]) -> AnyArray:
    """A part of a file, mapped. ValueError, naming the file, if it is not there."""
    try:
        return np.frombuffer(map_file(path), dtype, int(np.prod(shape)), offset).reshape(shape)
    except OSError as error:
        raise ValueError(f"workers must find mapped shards under the same path: {error}") from None
