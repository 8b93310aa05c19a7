"""Zip archives of one file, unfolded as other compressed files are."""

from __future__ import annotations

import io
from typing import IO, Any

from structsvm.features.text.encodings import NotTextError


def open(file: Any) -> IO[bytes]:  # noqa: A001 (the name that gzip, lzma and bz2 have)
    """The member of an archive, a binary file; folders and what macOS adds are no members.

    Raises
    ------
    NotTextError
        For several members, or none.
    """
    from zipfile import ZipFile

    archive = ZipFile(io.BytesIO(file.read()))  # its table of contents is at the end
    members = [name for name in archive.namelist() if not name.endswith("/") and not name.startswith("__MACOSX/")]
    if len(members) != 1:
        raise NotTextError(
            f"a zip archive of {len(members)} files: {', '.join(members):.200}; unpack the one that is meant"
        )
    return archive.open(members[0])
