"""Model files of CRF++: the text of ``crf_learn -t``, and the binary file that ``crf_test`` opens.

The binary file: version, kind, cost factor, count of weights, columns, and the sizes of a double array and of two
tables of strings, all little-endian; labels and templates ended by zero bytes; the double array, whose keys are
observations and whose values are the starts of their weights; the weights in float32.
"""

from __future__ import annotations

import os
import re
import struct
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from structsvm.features.functions.patterns import Pattern, PatternError, parse_crfpp
from structsvm.files.new_file import new_file
from structsvm.interop.chain_model import MOST_LABELS, ChainModel, ModelFileError, Weights, named_content
from structsvm.interop.trained import chain_of

if TYPE_CHECKING:
    from structsvm.interop.trained import Trained

__all__ = ["read_crfpp", "write_crfpp"]

_VERSION = 100
_HEAD = struct.Struct("<IidIIII")
_BYTES_PER_UNIT = 256  # limit for all prefixes of keys together; real files need far fewer
_ENTRY = re.compile(rb"([0-9]{1,10}) (.+)", re.DOTALL)


def read_crfpp(source: str | os.PathLike[str] | bytes, *, cost_factor: float = 1.0) -> ChainModel:
    """Read a model of CRF++, text or binary by its first bytes.

    Parameters
    ----------
    source : path or bytes
        The file, or what it contains.
    cost_factor : float
        Factor of all scores, as ``crf_test -c``, which likewise ignores the one in the file.

    Raises
    ------
    ModelFileError
        For a file that is damaged or of another kind; names file and line, or offset.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from structsvm.interop import read_crfpp, write_crfpp
    >>> from structsvm.tasks import SequenceLabeler
    >>> X, y = [["the", "cat"], ["a", "dog"]], [["D", "N"], ["D", "N"]]
    >>> labeler = SequenceLabeler(C=1.0, templates="crf++", random_state=0).fit(X, y)
    >>> path = Path(tempfile.mkdtemp()) / "model"
    >>> write_crfpp(labeler, path)
    >>> read_crfpp(path).predict([["the", "dog"]])
    [['D', 'N']]
    """
    if not (np.isfinite(cost_factor) and cost_factor > 0):
        raise ValueError(f"cost_factor must be a finite number above 0, got {cost_factor!r}")
    name, data = named_content(source)
    read = _read_text if data.startswith(b"version:") else _read_binary
    return read(data, name, cost_factor)


def _model(
    labels: list[bytes],
    patterns: list[Pattern],
    starts: dict[bytes, int],
    values: NDArray[np.float64],
    cost_factor: float,
    where: str,
) -> ChainModel:
    """Check what text and binary files share, and make the model, whose observations are in the order of weights."""
    K = len(labels)
    if not 1 <= K <= MOST_LABELS or len(set(labels)) < K:
        raise ModelFileError(f"{where}: {K:,} labels: wanted 1 to {MOST_LABELS:,}, each once")
    if not np.isfinite(values).all():
        raise ModelFileError(f"{where}: weight {int(np.argmin(np.isfinite(values)))} is not finite")
    keys, end = sorted(starts, key=starts.__getitem__), 0
    for key in keys:
        size, start = K if key.startswith(b"U") else K * K, starts[key]
        if key[:1] not in (b"U", b"B") or not end <= start <= len(values) - size:
            raise ModelFileError(
                f"{where}: {key[:40]!r} has its weights at {start:,} of {len(values):,}, wanted from {end:,} on"
            )
        end = start + size
    begins = np.array([starts[key] for key in keys], dtype=np.int64)
    is_state = np.array([key.startswith(b"U") for key in keys], dtype=bool)
    codes = np.flatnonzero(values)
    return ChainModel(
        "crfpp",
        [label.decode("utf-8", "surrogateescape") for label in labels],
        [key.decode("utf-8", "surrogateescape") for key in keys],
        Weights.of_blocks(np.where(is_state, begins, -1), K, codes, values[codes]),
        Weights.of_blocks(np.where(is_state, -1, begins), K * K, codes, values[codes]),
        patterns=patterns,
        cost_factor=cost_factor,
    )


def _patterns(lines: list[bytes], where: str) -> list[Pattern]:
    try:
        return [parse_crfpp(line.decode("utf-8", "surrogateescape"), where) for line in lines]
    except PatternError as error:
        raise ModelFileError(str(error)) from None


# -------------------------------------------------------------------------------------------- text


def _read_text(data: bytes, name: str, cost_factor: float) -> ChainModel:
    parts = data.replace(b"\r\n", b"\n").split(b"\n\n", 4)
    if len(parts) != 5:
        raise ModelFileError(f"{name}: wanted head, labels, templates, observations and weights, empty lines between")
    sections = [part.split(b"\n") for part in parts]
    first = np.cumsum([1, *(len(section) + 1 for section in sections)]).tolist()  # line of each section
    head = dict(line.split(b": ", 1) for line in sections[0] if b": " in line)
    if head.get(b"version", b"").strip() != b"%d" % _VERSION:
        raise ModelFileError(f"{name}:1: wanted 'version: {_VERSION}', got {sections[0][0][:40]!r}")
    starts: dict[bytes, int] = {}
    for number, line in enumerate(sections[3], first[3]):
        match = _ENTRY.fullmatch(line)
        if match is None or match[2] in starts:
            raise ModelFileError(f"{name}:{number}: wanted a number and an observation, each once, got {line[:40]!r}")
        starts[match[2]] = int(match[1])
    *lines, rest = sections[4]
    if rest:
        raise ModelFileError(f"{name}:{first[4] + len(lines)}: the file is cut off: its last line has no end")
    if head.get(b"maxid", b"").strip() != b"%d" % len(lines):
        raise ModelFileError(f"{name}:{first[4]}: {len(lines):,} weights, and a head that says {head.get(b'maxid')!r}")
    values = np.zeros(len(lines))
    for k, line in enumerate(lines):
        try:
            values[k] = float(line)
        except ValueError:
            raise ModelFileError(f"{name}:{first[4] + k}: wanted a weight, got {line[:40]!r}") from None
    patterns = _patterns(sections[2], f"{name}:{first[2]}")
    return _model(sections[1], patterns, starts, values, cost_factor, name)


def write_crfpp(model: ChainModel | Trained, path: str | os.PathLike[str]) -> None:
    """Write a model as CRF++'s text, which ``crf_learn -C`` makes binary.

    Parameters
    ----------
    model : ChainModel or SequenceLabeler
        One that was read from a file of CRF++, or one that was trained on columns by templates of ``%x`` alone.
    path : str or path

    Raises
    ------
    ValueError
        For a model that CRF++ has no counterpart of; the message names the cause.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from structsvm.interop import read_crfpp, write_crfpp
    >>> from structsvm.tasks import SequenceLabeler
    >>> X, y = [["the", "cat"], ["a", "dog"]], [["D", "N"], ["D", "N"]]
    >>> labeler = SequenceLabeler(C=1.0, templates="crf++", random_state=0).fit(X, y)
    >>> path = Path(tempfile.mkdtemp()) / "model"
    >>> write_crfpp(labeler, path)
    >>> read_crfpp(path).predict([["the", "dog"]])
    [['D', 'N']]
    """
    chain = chain_of(model, "crfpp")
    _check_lines(chain)
    K, pairs = len(chain.labels), chain.pairs
    sizes = np.array([K if name.startswith("U") else K * K for name in chain.attributes], dtype=np.int64)
    ends = np.cumsum(sizes)
    values = np.zeros(int(sizes.sum()))
    values[(ends - sizes)[chain.states.rows()] + chain.states.targets] = chain.states.weights
    if pairs is not None:
        values[(ends - sizes)[pairs.rows()] + pairs.targets] = pairs.weights
    starts = dict(zip(map(_bytes, chain.attributes), (ends - sizes).tolist(), strict=True))
    head = [
        f"version: {_VERSION}",
        f"cost-factor: {chain.cost_factor:g}",
        f"maxid: {len(values)}",
        f"xsize: {max(1, chain.n_columns)}",
    ]
    sections = [
        map(str.encode, head),
        map(_bytes, chain.labels),
        [_bytes(pattern.source) for pattern in chain.patterns],
        (b"%d %b" % (starts[key], key) for key in sorted(starts)),
        (b"%.16f" % value for value in values.tolist()),
    ]
    with new_file(path) as file:
        for number, section in enumerate(sections):
            file.write(b"\n" * (number > 0))
            file.writelines(line + b"\n" for line in section)


def _check_lines(chain: ChainModel) -> None:
    """Raise ValueError for what a line of the text cannot have, as CRF++ reads it: an observation ends at a blank."""
    for texts, parted in ((chain.labels, r"[\n\0]|\A\s*\Z"), (chain.attributes, r"[ \t\n\0]|\A\s*\Z")):
        broken = next((text for text in texts if re.search(parted, text)), None)
        if broken is not None:
            raise ValueError(
                f"model: {broken!r:.60} cannot stand on a line of CRF++'s text; train on columns and templates without "
                "blanks, which part columns there"
            )


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


# ------------------------------------------------------------------------------------------ binary


def _read_binary(data: bytes, name: str, cost_factor: float) -> ChainModel:
    if len(data) < _HEAD.size:
        raise ModelFileError(f"{name}: {len(data)} bytes are no model of CRF++")
    version, kind, _, n_weights, _, n_array, n_labels = _HEAD.unpack_from(data)
    if version != _VERSION or kind != 0:
        raise ModelFileError(f"{name}: offset 0: wanted version {_VERSION} and kind 0, got {version} and {kind}")
    at = _HEAD.size
    labels = _table(data, at, n_labels, name)
    at += n_labels
    if at + 4 > len(data):
        raise ModelFileError(f"{name}: offset {at}: the file ends before its templates")
    (n_templates,) = struct.unpack_from("<I", data, at)
    templates = [line for line in _table(data, at + 4, n_templates, name) if line]
    patterns = _patterns(templates, f"{name}: offset {at + 4}")
    at += 4 + n_templates
    if n_array % 8 or at + n_array + 4 * n_weights != len(data):
        raise ModelFileError(
            f"{name}: offset {at}: {n_array:,} bytes of observations and {n_weights:,} weights, "
            f"and {len(data) - at:,} bytes to the end"
        )
    starts = _double_array(data, at, n_array // 8, name)
    values = np.frombuffer(data, "<f4", n_weights, at + n_array).astype(np.float64)
    return _model(labels, patterns, starts, values, cost_factor, name)


def _table(data: bytes, at: int, size: int, name: str) -> list[bytes]:
    text = data[at : at + size]
    if len(text) < size or not text.endswith(b"\0"):
        raise ModelFileError(f"{name}: offset {at}: a table of {size:,} bytes does not end with a zero byte")
    return text[:-1].split(b"\0")


def _double_array(data: bytes, at: int, n_units: int, name: str) -> dict[bytes, int]:
    """Keys and values of a double array, by parents.

    A unit is (base, check). The child of a node with base b by byte c is unit b + c + 1 whose check is b; unit b
    itself, with check b and a base below 0, ends a key of value -base - 1. Bases of nodes differ, so a check names
    the parent.
    """
    units = np.frombuffer(data, "<i4", 2 * n_units, at).reshape(-1, 2)
    if not n_units:
        raise ModelFileError(f"{name}: offset {at}: no observations")
    base, check = units[:, 0].astype(np.int64), units[:, 1].astype(np.int64)
    children: dict[int, list[int]] = {}
    for unit in np.flatnonzero(check > 0).tolist():
        children.setdefault(int(check[unit]), []).append(unit)
    starts: dict[bytes, int] = {}
    stack = [(int(base[0]), b"")]
    seen: set[int] = set()
    left = _BYTES_PER_UNIT * (n_units + 256)
    while stack:
        node, key = stack.pop()
        if node in seen or left < 0:
            raise ModelFileError(f"{name}: offset {at}: the double array has a loop or endless keys at base {node}")
        seen.add(node)
        for unit in children.get(node, ()):
            byte = unit - node - 1
            if byte == -1 and base[unit] < 0:
                starts[key] = int(-base[unit] - 1)
            elif 1 <= byte <= 255 and base[unit] > 0:
                stack.append((int(base[unit]), key + bytes([byte])))
                left -= len(key)
            else:
                raise ModelFileError(f"{name}: offset {at + 8 * unit}: unit {unit} of the double array leads nowhere")
    return starts
