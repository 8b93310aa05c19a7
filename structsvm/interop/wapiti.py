"""Model files of Wapiti: text, with patterns, labels, observations and the weights that are not zero."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from structsvm.features.functions.patterns import PatternError, parse_wapiti
from structsvm.features.sources import decompress
from structsvm.features.text.encodings import NotTextError
from structsvm.files.new_file import new_file
from structsvm.interop.chain_model import MOST_LABELS, ChainModel, ModelFileError, Weights, named_content
from structsvm.interop.trained import chain_of

if TYPE_CHECKING:
    from structsvm.interop.trained import Trained

__all__ = ["read_wapiti", "write_wapiti"]

_KINDS = {0: "maxent", 1: "memm", 2: "crf"}
_LENGTH = re.compile(rb"([0-9]{1,9}):")
_WEIGHT = re.compile(rb"([0-9]{1,18})=([+-]?(?:0[xX][0-9a-fA-F.]+(?:[pP][+-]?[0-9]+)?|[0-9.]+(?:[eE][+-]?[0-9]+)?))$")
_SHORTEST = len(b"1:u,\n")


class _Reader:
    """Text of a file and the place up to which it is read."""

    def __init__(self, data: bytes, name: str) -> None:
        self.data, self.name, self.at = data, name, 0

    def error(self, message: str) -> ModelFileError:
        line = self.data.count(b"\n", 0, self.at) + 1
        return ModelFileError(f"{self.name}:{line}: {message}")

    def header(self, form: bytes, wanted: str) -> list[int]:
        match = re.compile(form + rb"\n").match(self.data, self.at)
        if match is None:
            raise self.error(f"wanted {wanted}, got {self.data[self.at : self.at + 30].splitlines()[:1]!r}")
        numbers = [int(number) for number in match.groups() if number is not None]
        self.at = match.end()
        return numbers

    def strings(self, count: int, of: str) -> list[bytes]:
        """Read `count` netstrings, a line each."""
        if count * _SHORTEST > len(self.data) - self.at:
            raise self.error(f"{count:,} {of} do not fit into the rest of the file")
        return [self.string(of) for _ in range(count)]

    def string(self, of: str) -> bytes:
        match = _LENGTH.match(self.data, self.at)
        if match is None:
            raise self.error(f"wanted a length and ':' before one of the {of}")
        start, end = match.end(), match.end() + int(match[1])
        if self.data[end : end + 2] != b",\n":
            raise self.error(f"one of the {of} has {int(match[1]):,} bytes, and no ',' and end of line after them")
        if start == end or b"\0" in self.data[start:end]:
            raise self.error(f"one of the {of} is empty or has a zero byte")
        self.at = end + 2
        return self.data[start:end]


def read_wapiti(source: str | os.PathLike[str] | bytes) -> ChainModel:
    """Read a model of Wapiti; ``.gz`` is unpacked.

    The model tags as ``wapiti label`` does. Models of kind ``crf`` and ``maxent`` are read; ``memm`` is
    normalised per label and refused.

    Parameters
    ----------
    source : path or bytes
        The file, or what it contains.

    Raises
    ------
    ModelFileError
        For a file that is damaged or of another kind; names file and line.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from structsvm.interop import read_wapiti, write_wapiti
    >>> from structsvm.tasks import SequenceLabeler
    >>> X, y = [["the", "cat"], ["a", "dog"]], [["D", "N"], ["D", "N"]]
    >>> labeler = SequenceLabeler(C=1.0, templates="*:%x[0,0]", random_state=0).fit(X, y)
    >>> path = Path(tempfile.mkdtemp()) / "model"
    >>> write_wapiti(labeler, path)
    >>> read_wapiti(path).predict([["the", "dog"]])
    [['D', 'N']]
    """
    name, data = named_content(source)
    if data.startswith(b"\x1f\x8b"):
        try:
            data = decompress(data, name)
        except NotTextError as error:
            raise ModelFileError(str(error)) from None
    reader = _Reader(data, name)
    n_weights = _model_header(reader)
    n_patterns, _, *rest = reader.header(
        rb"#rdr#([0-9]{1,9})/([0-9]{1,9})(?:/([01]))?", "'#rdr#', counts of patterns and columns"
    )
    patterns = []
    for source in reader.strings(n_patterns, "patterns"):
        try:
            patterns.append(parse_wapiti(source.decode("utf-8", "surrogateescape"), f"{name}: pattern"))
        except PatternError as error:
            raise ModelFileError(str(error)) from None
    labels = _database(reader, "labels")
    K = len(labels)
    if not labels or K > MOST_LABELS:
        raise reader.error(f"{K:,} labels: wanted 1 to {MOST_LABELS:,}")
    attributes = _database(reader, "observations")
    states, pairs, n_codes = _blocks(reader, attributes, K)
    codes, values = _weights(reader, n_weights, n_codes)
    return ChainModel(
        "wapiti",
        labels,
        attributes,
        Weights.of_blocks(states, K, codes, values),
        Weights.of_blocks(pairs, K * K, codes, values),
        patterns=patterns,
        independent=rest == [1],
    )


def _model_header(reader: _Reader) -> int:
    """Check the kind of the model; return the count of weights."""
    numbers = reader.header(rb"#mdl#(?:([0-9]{1,2})#)?([0-9]{1,18})", "'#mdl#', kind and count of weights")
    kind = _KINDS.get(numbers[0] if len(numbers) == 2 else 0)
    if kind is None or (kind == "memm"):
        reader.at = 0
        what = "a memm, which is normalised per label: train a crf" if kind else f"of kind {numbers[0]}"
        raise reader.error(f"the model is {what} (there are 0 maxent and 2 crf)")
    return numbers[-1]


def _database(reader: _Reader, of: str) -> list[str]:
    (count,) = reader.header(rb"#qrk#([0-9]{1,18})", f"'#qrk#' and the count of {of}")
    strings = reader.strings(count, of)
    if len(set(strings)) < len(strings):
        raise reader.error(f"one of the {of} stands twice")
    return [string.decode("utf-8", "surrogateescape") for string in strings]


def _sizes(attributes: list[str], K: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Counts of weights of labels, and of pairs, per observation: u has K, b has K * K, * has both."""
    kinds = np.array([name[:1] for name in attributes], dtype="U1")
    return np.where(kinds != "b", K, 0), np.where(kinds != "u", K * K, 0)


def _blocks(reader: _Reader, attributes: list[str], K: int) -> tuple[NDArray[np.int64], NDArray[np.int64], int]:
    """First numbers of the weights of labels, and of pairs, per observation, -1: none; and the count of all."""
    strange = next((name for name in attributes if name[0] not in "ub*"), None)
    if strange is not None:
        raise reader.error(f"observation {strange[:40]!r} does not start with 'u', 'b' or '*'")
    of_states, of_pairs = _sizes(attributes, K)
    ends = np.cumsum(of_states + of_pairs)
    begins = ends - of_states - of_pairs
    states, pairs = np.where(of_states > 0, begins, -1), np.where(of_pairs > 0, begins + of_states, -1)
    return states, pairs, int(ends[-1]) if len(ends) else 0


def _weights(reader: _Reader, count: int, n_codes: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Numbers of weights, ascending, and the weights."""
    if count > n_codes or count * len(b"0=0\n") > len(reader.data) - reader.at + 1:
        raise reader.error(f"{count:,} weights do not fit into the rest of the file, or exceed {n_codes:,} features")
    if not reader.data.endswith(b"\n"):
        reader.at = len(reader.data)
        raise reader.error("the file is cut off: its last line has no end")
    codes, values = np.zeros(count, dtype=np.int64), np.zeros(count)
    lines = reader.data[reader.at :].split(b"\n")
    n_lines = sum(1 for line in lines if line.strip())
    if n_lines != count:
        raise reader.error(f"{count:,} weights were announced, {n_lines:,} lines follow")
    for k, line in enumerate(lines[:count]):
        match = _WEIGHT.match(line)
        try:
            code, value = int(match[1]), _number(match[2])  # type: ignore[index]
        except (TypeError, ValueError, OverflowError):
            raise reader.error(f"wanted number=weight, got {line[:40]!r}") from None
        if not code < n_codes or not np.isfinite(value):
            raise reader.error(f"weight {line[:40]!r}: wanted a number below {n_codes:,} and a finite weight")
        codes[k], values[k] = code, value
        reader.at += len(line) + 1
    order = np.argsort(codes, kind="stable")
    codes, values = codes[order], values[order]
    if (np.diff(codes) == 0).any():
        raise reader.error("two weights have the same number")
    return codes, values


def _number(text: bytes) -> float:
    number = text.decode()
    return float.fromhex(number) if "x" in number.lower() else float(number)


# ---------------------------------------------------------------------------------------- writing


def write_wapiti(model: ChainModel | Trained, path: str | os.PathLike[str]) -> None:
    """Write a model as Wapiti's text, to be used with ``wapiti label -m``.

    Parameters
    ----------
    model : ChainModel or SequenceLabeler
        One that was read from a Wapiti file, or a trained one. Of a model that was trained on columns the templates
        become patterns; of one trained on dicts or lists of attributes there are none, and a line of data has the
        token's observations: "u" and the attribute ("*" and the attribute for those with weights of pairs), "b" at
        each token, "u__BOS__" and "u__EOS__" at the first and the last one (`ChainModel.attributes`).
    path : str or path

    Raises
    ------
    ValueError
        For a model that Wapiti has no counterpart of; the message names the cause.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from structsvm.interop import read_wapiti, write_wapiti
    >>> from structsvm.tasks import SequenceLabeler
    >>> X, y = [["the", "cat"], ["a", "dog"]], [["D", "N"], ["D", "N"]]
    >>> labeler = SequenceLabeler(C=1.0, templates="*:%x[0,0]", random_state=0).fit(X, y)
    >>> path = Path(tempfile.mkdtemp()) / "model"
    >>> write_wapiti(labeler, path)
    >>> read_wapiti(path).predict([["the", "dog"]])
    [['D', 'N']]
    """
    chain = chain_of(model, "wapiti")
    K, attributes = len(chain.labels), chain.attributes
    of_states, of_pairs = _sizes(attributes, K)
    ends = np.cumsum(of_states + of_pairs)
    begins = ends - of_states - of_pairs
    states, pairs = chain.states, chain.pairs
    codes, values = begins[states.rows()] + states.targets, states.weights
    if pairs is not None:
        codes = np.concatenate([codes, (begins + of_states)[pairs.rows()] + pairs.targets])
        values = np.concatenate([values, pairs.weights])
    order = np.argsort(codes, kind="stable")
    n_columns = max(0, chain.n_columns - 1)
    with new_file(path) as file:
        file.write(b"#mdl#%d#%d\n" % (0 if chain.independent else 2, len(codes)))
        file.write(b"#rdr#%d/%d/%d\n" % (len(chain.patterns), n_columns, chain.independent))
        file.writelines(_netstring(pattern.source) for pattern in chain.patterns)
        for names in (chain.labels, attributes):
            file.write(b"#qrk#%d\n" % len(names))
            file.writelines(map(_netstring, names))
        file.writelines(
            f"{code}={value.hex()}\n".encode()
            for code, value in zip(codes[order].tolist(), values[order].tolist(), strict=True)
        )


def _netstring(text: str) -> bytes:
    string = text.encode("utf-8", "surrogateescape")
    return b"%d:%b,\n" % (len(string), string)
