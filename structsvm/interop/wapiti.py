"""Model files of Wapiti: text, with patterns, labels, observations and the weights that are not zero."""

from __future__ import annotations

import gzip
import os
import re
from pathlib import Path

import numpy as np

from structsvm.features.patterns import PatternError, parse_wapiti
from structsvm.interop.chain_model import MOST_LABELS, ChainModel, ModelFileError, Weights

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


def read_wapiti(path: str | os.PathLike[str]) -> ChainModel:
    """Read a model of Wapiti; ``.gz`` is unpacked.

    The model tags as ``wapiti label`` does. Models of kind ``crf`` and ``maxent`` are read; ``memm`` is
    normalised per label and refused.

    Raises
    ------
    ModelFileError
        For a file that is damaged or of another kind; names file and line.
    """
    name = os.fspath(path)
    data = Path(path).read_bytes()
    if data.startswith(b"\x1f\x8b"):
        try:
            data = gzip.decompress(data)
        except (OSError, EOFError) as error:
            raise ModelFileError(f"{name}: damaged gzip data ({error})") from None
    reader = _Reader(data, name)
    n_weights = _model_header(reader)
    n_patterns, _, *rest = reader.header(
        rb"#rdr#([0-9]{1,9})/([0-9]{1,9})(?:/([01]))?", "'#rdr#', counts of patterns and columns"
    )
    independent = rest == [1]
    patterns = []
    for source in reader.strings(n_patterns, "patterns"):
        try:
            patterns.append(parse_wapiti(source.decode("utf-8", "surrogateescape"), f"{name}: pattern"))
        except PatternError as error:
            raise ModelFileError(str(error)) from None
    labels = _database(reader, "labels")
    if not labels or len(labels) > MOST_LABELS:
        raise reader.error(f"{len(labels):,} labels: wanted 1 to {MOST_LABELS:,}")
    states, pairs, n_codes = _blocks(reader, _database(reader, "observations"), len(labels))
    return ChainModel(
        [label.decode("utf-8", "surrogateescape") for label in labels],
        patterns,
        states,
        pairs,
        _weights(reader, n_weights, n_codes),
        "wapiti",
        independent=independent,
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


def _database(reader: _Reader, of: str) -> list[bytes]:
    (count,) = reader.header(rb"#qrk#([0-9]{1,18})", f"'#qrk#' and the count of {of}")
    strings = reader.strings(count, of)
    if len(set(strings)) < len(strings):
        raise reader.error(f"one of the {of} stands twice")
    return strings


def _blocks(reader: _Reader, observations: list[bytes], K: int) -> tuple[dict[bytes, int], dict[bytes, int], int]:
    """Starts of the blocks of weights: u has K of them, b has K * K, * has both."""
    states, pairs, end = {}, {}, 0
    for name in observations:
        if name[:1] not in (b"u", b"b", b"*"):
            raise reader.error(f"observation {name[:40]!r} does not start with 'u', 'b' or '*'")
        if name[:1] != b"b":
            states[name] = end
            end += K
        if name[:1] != b"u":
            pairs[name] = end
            end += K * K
    return states, pairs, end


def _weights(reader: _Reader, count: int, n_codes: int) -> Weights:
    if count > n_codes or count * len(b"0=0\n") > len(reader.data) - reader.at + 1:
        raise reader.error(f"{count:,} weights do not fit into the rest of the file, or exceed {n_codes:,} features")
    codes, values = np.zeros(count, dtype=np.int64), np.zeros(count)
    lines = reader.data[reader.at :].split(b"\n")
    if len([line for line in lines if line.strip()]) != count:
        raise reader.error(
            f"{count:,} weights were announced, {len([li for li in lines if li.strip()]):,} lines follow"
        )
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
    return Weights(codes, values)


def _number(text: bytes) -> float:
    number = text.decode()
    return float.fromhex(number) if "x" in number.lower() else float(number)


def write_wapiti(model: ChainModel, path: str | os.PathLike[str]) -> None:
    """Write a model as Wapiti's text, to be used with ``wapiti label -m``.

    Raises
    ------
    ValueError
        For a model whose templates are CRF++'s: boundaries of sequences have other names there.
    """
    if model.kind != "wapiti":
        raise ValueError(f"model: wanted one with Wapiti's patterns, got one of kind {model.kind!r}")
    names = sorted({*model.states, *model.pairs}, key=lambda name: model.states.get(name, model.pairs.get(name, 0)))
    weights = model.weights
    kept = weights.values != 0
    n_columns = max(0, model.n_columns - 1)
    lines = [f"#mdl#{0 if model.independent else 2}#{kept.sum()}\n".encode()]
    lines.append(f"#rdr#{len(model.patterns)}/{n_columns}/{int(model.independent)}\n".encode())
    lines += [_netstring(pattern.source.encode("utf-8", "surrogateescape")) for pattern in model.patterns]
    lines.append(b"#qrk#%d\n" % len(model.labels))
    lines += [_netstring(label.encode("utf-8", "surrogateescape")) for label in model.labels]
    lines.append(b"#qrk#%d\n" % len(names))
    lines += [_netstring(name) for name in names]
    lines += [
        f"{code}={value.hex()}\n".encode()
        for code, value in zip(weights.codes[kept].tolist(), weights.values[kept].tolist(), strict=True)
    ]
    Path(path).write_bytes(b"".join(lines))


def _netstring(string: bytes) -> bytes:
    return b"%d:%b,\n" % (len(string), string)
