"""Columns of tokens in pieces, from column files, Parquet and Arrow files, and Arrow tables of any size."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

from structsvm.features.columns import ColumnFileError, ColumnPieces, Columns
from structsvm.features.sources import unfolding_limit, unfolds_to_more
from structsvm.features.tables.forms import Reading
from structsvm.features.tables.frames import frame_keys

# How files begin: Parquet, Arrow's files, and Arrow's streams of messages.
PARQUET, ARROW, MESSAGES = b"PAR1", b"ARROW1", b"\xff\xff\xff\xff"
END = MESSAGES + bytes(4)  # how streams end
CELL = 8  # bytes of a cell, at least, beside its characters


def column_pieces(
    source: Any,
    n_rows: int,
    columns: Sequence[Any] | None = None,
    sequence: Any = None,
    names: Mapping[str, Sequence[str]] | None = None,
    label: Any = None,
    sentence_end: Sequence[str] = (),
) -> Iterator[Columns]:
    """The sequences of a source, about `n_rows` at a time; see `SequenceShards.make`."""
    batches = arrow_batches(source, n_rows)
    if batches is not None:
        name = os.fspath(source) if isinstance(source, (str, os.PathLike)) else "<table>"
        if sentence_end:
            raise ValueError(f"The 'sentence_end' parameter is for column files, and {name} is a table")
        for piece in _of_batches(name, batches, columns, sequence, names or {}, label):
            yield replace(piece, name=name)
        return
    if names is not None:
        raise ValueError(f"The 'names' parameter is for tables, and {source!r:.80} is a column file")
    reading = Reading(None if columns is None else tuple(columns), label, sequence, tuple(sentence_end))
    pieces = ColumnPieces(source, n_rows, reading)
    yield from map(pieces.parse, pieces)


def paths_of(sources: Sequence[Any]) -> list[str]:
    """Absolute paths of several files; ValueError if there are none, TypeError for what is no path."""
    if not sources:
        raise ValueError("there are no files")
    for source in sources:
        if not isinstance(source, (str, os.PathLike)):
            raise TypeError(f"several sources must be paths, got {type(source).__name__}")
    return [os.path.abspath(source) for source in sources]


def arrow_batches(source: Any, n_rows: int) -> Iterator[Any] | None:
    """Batches of rows of a Parquet or Arrow file, or of an Arrow table, reader or data set; None for other sources."""
    if hasattr(source, "to_batches") or hasattr(source, "read_next_batch"):
        return iter(source.to_batches() if hasattr(source, "to_batches") else source)
    if not isinstance(source, (str, os.PathLike)) or (os.path.exists(source) and not os.path.isfile(source)):
        return None  # a pipe, which can be read once
    with open(source, "rb") as file:
        head = file.read(len(ARROW))
    kinds = (PARQUET, ARROW, MESSAGES)  # also of a file that is cut off in these bytes
    kind = next((kind for kind in kinds if head.startswith(kind) or (head[2:] and kind.startswith(head))), None)
    return None if kind is None else _file_batches(os.fspath(source), n_rows, kind)


def _file_batches(path: str, n_rows: int, kind: bytes) -> Iterator[Any]:
    """The batches of a Parquet or Arrow file; ValueError, naming the file, for one that is not sound."""
    try:
        import pyarrow as pa
        from pyarrow import parquet
    except ImportError:
        raise ImportError(
            f"{path}: Parquet and Arrow files need pyarrow, which is not installed: pip install 'structured-svm[data]'"
        ) from None
    try:
        with pa.OSFile(path) as file:
            limit = unfolding_limit(os.path.getsize(path))
            batches: Iterator[Any]
            if kind == PARQUET:
                table = parquet.ParquetFile(file)
                schema, strings = table.schema_arrow, [column.path for column in table.schema]
                groups = map(table.metadata.row_group, range(table.num_row_groups))
                for group in groups:  # its columns may not be asked: pyarrow aborts at forged ones
                    _check_size(abs(group.total_byte_size), limit)
                folded = parquet.ParquetFile(file, read_dictionary=strings)
                batches = (
                    batch for k in range(table.num_row_groups) for batch in _group_batches(folded, table, k, n_rows)
                )
            elif kind == MESSAGES:
                reader = pa.ipc.open_stream(file)
                schema, batches = reader.schema, iter(reader)
            else:
                table = pa.ipc.open_file(file)
                schema, batches = table.schema, map(table.get_batch, range(table.num_record_batches))
            for batch in batches:
                batch.validate(full=True)  # Arrow follows offsets of a file without a look at where they lead
                _check_size(sum(map(_cell_bytes, batch.columns)), limit)
                yield batch.cast(schema)
            if kind == MESSAGES:
                file.seek(file.tell() - len(END))
                if file.read(len(END)) != END:
                    raise ValueError("ends without the mark of its end; it may be cut off")
    except (pa.ArrowException, ValueError, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:  # an error of the system, not of the contents
            raise
        raise ValueError(f"{path}: {error}") from None


def _group_batches(folded: Any, plain: Any, group: int, n_rows: int) -> Iterator[Any]:
    """Batches of a group of rows, each string as often as it occurs where pyarrow cannot help it.

    That is where lists have more than one dictionary, or a part without one.
    """
    import pyarrow as pa

    n_read = 0
    try:
        for batch in folded.iter_batches(batch_size=n_rows, row_groups=[group]):
            yield batch
            n_read += 1
    except pa.ArrowNotImplementedError:
        yield from islice(plain.iter_batches(batch_size=n_rows, row_groups=[group]), n_read, None)


def _cell_bytes(column: Any) -> int:
    """Bytes of the cells of a column, each string as often as it is named: a dictionary holds it once."""
    import pyarrow as pa
    from pyarrow import compute

    while pa.types.is_list(column.type) or pa.types.is_large_list(column.type):
        column = column.flatten()
    size = CELL * len(column) + int(column.nbytes)
    if not pa.types.is_dictionary(column.type) or column.type.value_type not in (pa.string(), pa.large_string()):
        return size
    lengths = compute.binary_length(column.dictionary)
    return size + int(compute.sum(lengths.take(column.indices)).as_py() or 0)


def _check_size(size: int, limit: float) -> None:
    """ValueError where cells take more than is allowed."""
    if size > limit:
        raise ValueError(unfolds_to_more("a group of rows unfolds", limit))


def _of_batches(
    name: str, batches: Iterator[Any], columns: Any, sequence: str | None, names: Any, label: str | None
) -> Iterator[Columns]:
    """Batches as columns; ValueError, naming the table and where the batch begins, for one that is not sound."""
    import pyarrow as pa

    held: list[Any] = []
    done: set[Any] = set()
    first = 0  # the first of the rows at hand
    try:
        for batch in batches:
            if not batch.num_rows:
                continue
            if sequence is None:
                yield Columns.from_dataframe(pa.Table.from_batches([batch]), columns, names=names, label=label)
                first += batch.num_rows
                continue
            held.append(batch)  # the last sequence of a batch may go on in the next one
            rows = pa.Table.from_batches(held)
            keys = frame_keys(rows, sequence)
            cut = next((k for k in range(len(keys) - 1, 0, -1) if keys[k] is not None and keys[k] != keys[k - 1]), 0)
            if cut and keys[cut - 1] is None:  # the row before belongs to a sequence that is named further up
                before = next((key for key in reversed(keys[:cut]) if key is not None), None)
                cut = cut if before != keys[cut] else 0
            if cut:
                yield from _whole(rows.slice(0, cut), columns, sequence, names, label, done)
                held, first = rows.slice(cut).to_batches(), first + cut
        if held and sequence is not None:
            yield from _whole(pa.Table.from_batches(held), columns, sequence, names, label, done)
    except ValueError as error:
        if type(error) not in (ValueError, ColumnFileError) or str(error).startswith(f"{name}: "):
            raise
        where = f"of the rows from {first} on, " if first else ""
        raise type(error)(f"{name}: {where}{error}") from None


def _whole(rows: Any, columns: Any, sequence: str, names: Any, label: str | None, done: set[Any]) -> Iterator[Columns]:
    """Rows of whole sequences; ValueError for one of which earlier rows had a part."""
    found = {key for key in frame_keys(rows, sequence) if key is not None}
    for key in found & done:
        raise ValueError(f"sequence {key!r:.40} of column {sequence!r} goes on after others; sort the table")
    done |= found
    yield Columns.from_dataframe(rows, columns, sequence=sequence, names=names, label=label)
