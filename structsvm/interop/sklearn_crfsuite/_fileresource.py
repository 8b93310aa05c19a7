"""File of an estimator's model; pickles of sklearn-crfsuite have theirs by this name."""

from __future__ import annotations

import os
import tempfile
import weakref

__all__ = ["FileResource"]


class FileResource:
    """Model as a file.

    Parameters
    ----------
    filename : path, optional
        The file; None: a temporary one, written once its name is asked for.
    data : bytes, optional
        What the temporary file contains; None: there is no model.
    keep_tempfiles : bool
        Whether the temporary file is left when this object is gone.
    """

    def __init__(
        self, filename: str | os.PathLike[str] | None = None, data: bytes | None = None, keep_tempfiles: bool = False
    ) -> None:
        self._filename, self.data, self.keep_tempfiles = filename, data, keep_tempfiles

    @property
    def name(self) -> str | None:
        """Path of the file; None if there is no model."""
        if self._filename is None and self.data is not None:
            descriptor, path = tempfile.mkstemp(".crfsuite", "model")
            try:
                with os.fdopen(descriptor, "wb") as file:
                    file.write(self.data)
            except BaseException:
                os.remove(path)
                raise
            self._filename = path
            if not self.keep_tempfiles:
                weakref.finalize(self, _remove, self._filename)
        return None if self._filename is None else os.fspath(self._filename)

    def __setstate__(self, state: dict[str, object]) -> None:
        """Restore sklearn-crfsuite's: the bytes of a temporary file, or the name of another one."""
        name, data = state.get("name"), state.get("__FILE_RESOURCE_DATA__")
        self._filename = name if isinstance(name, str) else None
        self.data = data if isinstance(data, bytes) else None
        self.keep_tempfiles = bool(state.get("keep_tempfiles"))

    def __reduce__(self) -> tuple[type[FileResource], tuple[object, ...]]:
        return FileResource, (None if self.data is not None else self._filename, self.data, self.keep_tempfiles)


def _remove(path: str) -> None:
    if os.path.exists(path):
        os.remove(path)
