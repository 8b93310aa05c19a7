"""Answers on disk: an append-only file of JSON lines, each flushed to the disk before it counts.

A record is complete or it is not there: what a killed process has left of one, a last line without its end, is left
out and said when the file is opened again, and gives way to the next record; and a record that cannot be written whole
(a full disk) is taken back. So a file that is none of answers stays as it is.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Self

from structsvm.files.strict_json import parse_json

Record = Mapping[str, object]
# A file of answers begins with this.
FIRST = b'{"structsvm": "annotate"'


class StoreError(ValueError):
    """A file of answers that is damaged, of another task, or in use; the message names it, and the line."""


class Store:
    """The records of a file of answers.

    Parameters
    ----------
    path : str
        It is made if it is not there.
    write : callable, optional
        ``write(descriptor, data)`` in place of `os.write`.

    Attributes
    ----------
    records : list of dict
    notes : list of str
        What was found amiss when the file was opened, and mended.

    Raises
    ------
    StoreError
        For a file that is none of answers, a line that is no record, or if another process has the file open.
    OSError
        If the file cannot be read and written.
    """

    def __init__(self, path: str, write: Callable[[int, bytes], int] = os.write) -> None:
        self.path, self._write = path, write
        self.records: list[Record] = []
        self.notes: list[str] = []
        self._n_torn = 0
        is_new = not os.path.exists(path)
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o666)
        try:
            self._lock()
            self._size = self._read()
            if is_new:
                _sync_folder(path)
        except BaseException:
            os.close(self._descriptor)
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the file; another process may then open it."""
        os.close(self._descriptor)

    def append(self, record: Record) -> None:
        """Add a record; when this returns, it is on the disk.

        Raises
        ------
        OSError
            If it cannot be written, or if the file has been moved, deleted, replaced or changed since it was opened.
            File and records are then as before.
        """
        self._check_file()
        data = json.dumps(record, ensure_ascii=False, allow_nan=False).encode("utf-8") + b"\n"
        if self._n_torn:
            os.ftruncate(self._descriptor, self._size)
            self._n_torn = 0
        try:
            self._write_whole(data)
            os.fsync(self._descriptor)
        except OSError:
            os.ftruncate(self._descriptor, self._size)
            raise
        self._size += len(data)
        self.records.append(record)

    def _check_file(self) -> None:
        """Raise OSError unless the file still stands under its name, with what was stored in it."""
        own = os.fstat(self._descriptor)
        try:
            is_there = os.path.samestat(own, os.stat(self.path))
        except (FileNotFoundError, NotADirectoryError):
            is_there = False
        if not is_there:
            raise OSError(f"{self.path!r} was moved, deleted or replaced: put it back, or start again")
        if own.st_size != self._size + self._n_torn:
            raise OSError(f"{self.path!r} was changed by another program: start again")

    def _write_whole(self, data: bytes) -> None:
        while data:
            written = self._write(self._descriptor, data)
            if not written:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), self.path)
            data = data[written:]

    def _lock(self) -> None:
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise StoreError(f"{self.path}: another structsvm annotate has it open; several may label in one") from None

    def _read(self) -> int:
        """Read all records, up to a last line without its end. Returns their size."""
        with open(os.dup(self._descriptor), "rb") as file:
            file.seek(0)
            data = file.read()
        end = data.rfind(b"\n") + 1
        torn = data[end:]
        if torn and not end and torn[: len(FIRST)] != FIRST[: len(torn)]:
            raise StoreError(f"{self.path}: is no file of answers")
        if torn:
            self.notes.append(
                f"{self.path}: {len(torn)} bytes at its end are an answer that was not written whole; dropped"
            )
            self._n_torn = len(torn)
        for number, line in enumerate(data[:end].split(b"\n")[:-1], 1):
            self.records.append(self._record(number, line))
        return end

    def _record(self, number: int, line: bytes) -> Record:
        try:
            record: object = parse_json(line)
        except (ValueError, RecursionError) as error:
            raise StoreError(f"{self.path}:{number}: no record of an answer: {error}") from None
        if not isinstance(record, dict):
            raise StoreError(f"{self.path}:{number}: no record of an answer: not an object")
        return record


def _sync_folder(path: str) -> None:
    """Flush the name of a new file to the disk."""
    descriptor = os.open(os.path.dirname(os.path.abspath(path)), os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
