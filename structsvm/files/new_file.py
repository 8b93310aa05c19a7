"""Files that appear under their name complete, or not at all."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import IO, Any


class NotAFileError(OSError):
    """The path of a file to be written is that of a directory, a device, a pipe or a socket."""


@contextmanager
def new_file(path: str | os.PathLike[str], mode: str = "wb", **options: Any) -> Iterator[IO[Any]]:
    """Open a temporary file beside `path`; at the end of the block it is flushed to the disk and renamed.

    If anything fails, the previous file stays as it was and the temporary one is removed. Permissions are those that
    a plain ``open`` gives: the umask's for a new file, unchanged for an old one. A symbolic link stays, its target is
    replaced. `options` are those of ``open``.

    Raises
    ------
    OSError
        If the file cannot be written; `NotAFileError` if `path` is there and no regular file.
    """
    path = os.fsdecode(path)
    target, permissions = _target(path)
    temporary = _beside(target)
    try:
        with open(temporary, mode.replace("w", "x"), **options) as file:
            if permissions is not None and hasattr(os, "fchmod"):
                os.fchmod(file.fileno(), permissions)
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, target)
    except BaseException as error:
        with suppress(OSError):
            os.unlink(temporary)
        if isinstance(error, OSError) and error.filename == temporary:
            error.filename, error.filename2 = path, None  # the user does not know the temporary file
        raise
    _sync_directory(os.path.dirname(target))


def check_new_file(path: str | os.PathLike[str]) -> None:
    """Before the work that a file will store: raise OSError if `new_file` could not write it.

    A temporary file is made and removed.
    """
    path = os.fsdecode(path)
    target, _ = _target(path)
    temporary = _beside(target)
    try:
        with open(temporary, "xb") as file:
            file.write(b"\0")
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        error.filename = path
        raise
    finally:
        with suppress(OSError):
            os.unlink(temporary)


def _target(path: str) -> tuple[str, int | None]:
    """The final path of the file, and the permissions of the one that it replaces (None: there is none)."""
    target = os.path.realpath(path)
    try:
        mode = os.stat(target).st_mode
    except FileNotFoundError:
        folder = os.path.dirname(target)
        if path and not os.path.isdir(folder):
            raise FileNotFoundError(errno.ENOENT, f"there is no folder {folder}", path) from None
        return target, None
    except OSError as error:
        error.filename = path
        raise
    if not stat.S_ISREG(mode):  # the rename would replace a device by a file
        raise NotAFileError(f"{path}: exists and is not a regular file")
    if not os.access(target, os.W_OK):  # the rename would succeed
        raise PermissionError(errno.EACCES, "Permission denied (the file is read-only)", path)
    return target, stat.S_IMODE(mode) & 0o777


def _beside(target: str) -> str:
    return os.path.join(os.path.dirname(target), f".structsvm-{os.urandom(8).hex()}.tmp")


def _sync_directory(directory: str) -> None:
    """Flush the rename too, where the system supports it; the file is complete without it."""
    if os.name == "posix":
        with suppress(OSError):
            descriptor = os.open(directory, os.O_RDONLY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
