"""Model files of CRFsuite: labels and attributes in constant databases, weights, and which of them each attribute has.

All numbers are little-endian, 32-bit but for weights, which are float64:

    "lCRF", size of the file, "FOMC", 100, 0, number of labels, of attributes, offsets of the five chunks
    "FEAT", size, number of weights; each: 0 (a state) or 1 (a transition), attribute or label before, label, weight
    labels; attributes (`structsvm.interop.cqdb`)
    "LFRF", size, number of labels + 2, offsets; at each the number of transitions from this label, and their numbers
    "AFRF", size, number of attributes, offsets; at each the number of states of this attribute, and their numbers
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from structsvm._warnings import AdviceWarning, warn
from structsvm.files.new_file import new_file
from structsvm.interop.chain_model import MOST_LABELS, ChainModel, ModelFileError, Weights, named_content
from structsvm.interop.cqdb import database, names_in

if TYPE_CHECKING:
    from structsvm.interop.trained import Trained

__all__ = ["read_crfsuite", "write_crfsuite"]

_HEAD = struct.Struct("<4sI4s9I")
_CHUNK = struct.Struct("<4sII")
_MAGIC, _KIND, _VERSION = b"lCRF", b"FOMC", 100
_STATE, _TRANSITION = 0, 1
_FEATURE = np.dtype([("kind", "<u4"), ("source", "<u4"), ("target", "<u4"), ("weight", "<f8")])
_SENTINELS = 2  # lists of transitions that the program counts behind those of labels, and has not: their offset is 0

# Attributes of first and last tokens, as the program's own scripts name them.
FIRST, LAST = "__BOS__", "__EOS__"


def read_crfsuite(source: str | os.PathLike[str] | bytes) -> ChainModel:
    """Read a model of CRFsuite.

    Labels, scores, probabilities and marginals are those of the program, for tokens as python-crfsuite takes them.

    Parameters
    ----------
    source : path or bytes
        The file, or what it contains.

    Raises
    ------
    ModelFileError
        For a file that is damaged or of another kind; names file and offset.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from structsvm.interop import read_crfsuite, write_crfsuite
    >>> from structsvm.tasks import SequenceLabeler
    >>> X, y = [[["__BOS__", "w=the"], ["w=cat"]], [["__BOS__", "w=a"], ["w=dog"]]], [["D", "N"], ["D", "N"]]
    >>> path = Path(tempfile.mkdtemp()) / "model.crfsuite"
    >>> write_crfsuite(SequenceLabeler(C=1.0, random_state=0).fit(X, y), path)
    >>> read_crfsuite(path).predict([[["__BOS__", "w=the"], ["w=dog"]]])
    [['D', 'N']]
    """
    name, data = named_content(source)
    try:
        return _read(data)
    except ValueError as error:
        raise ModelFileError(f"{name}: {error}") from None


def _read(data: bytes) -> ChainModel:
    if data[:4] != _MAGIC:
        raise ValueError(f"no model of CRFsuite: wanted {_MAGIC!r} at its start, got {data[:4]!r}")
    if len(data) < _HEAD.size:
        raise ValueError(f"{len(data)} bytes are fewer than the {_HEAD.size} of a header")
    _, size, kind, version, _, n_labels, n_attributes, *offsets = _HEAD.unpack_from(data)
    if kind != _KIND or version != _VERSION:
        raise ValueError(f"offset 8: wanted kind {_KIND!r} and version {_VERSION}, got {kind!r} and {version}")
    if size > len(data):
        raise ValueError(f"the file is cut off: its header announces {size:,} bytes, there are {len(data):,}")
    if not 1 <= n_labels <= MOST_LABELS:
        raise ValueError(f"offset 20: {n_labels:,} labels: wanted 1 to {MOST_LABELS:,}")
    features = _features(data, offsets[0])
    labels = names_in(data, offsets[1], n_labels)
    attributes = names_in(data, offsets[2], n_attributes)
    sources, chosen = _lists(data, offsets[3], b"LFRF", n_labels, len(features))
    transitions = _checked(features[chosen], sources, _TRANSITION, n_labels)
    sources, chosen = _lists(data, offsets[4], b"AFRF", n_attributes, len(features))
    states = _checked(features[chosen], sources, _STATE, n_labels)
    between = np.zeros((n_labels, n_labels))
    between[transitions["source"], transitions["target"]] = transitions["weight"]
    return ChainModel(
        "crfsuite",
        [name.decode("utf-8", "surrogateescape") for name in labels],
        [name.decode("utf-8", "surrogateescape") for name in attributes],
        Weights.of_entries(
            sources, states["target"].astype(np.int64), states["weight"].astype(np.float64), n_attributes
        ),
        transitions=between,
    )


def header_of(data: bytes) -> dict[str, str]:
    """Fields of the header of a model that can be read, as the program shows them."""
    _, size, _, version, n_features, n_labels, n_attributes, *offsets = _HEAD.unpack_from(data)
    counts = {"size": size, "type": _KIND.decode(), "version": version, "num_features": n_features}
    counts |= {"num_labels": n_labels, "num_attrs": n_attributes}
    names = ("features", "labels", "attrs", "labelrefs", "attrrefs")
    places = {f"off_{name}": f"0x{offset:X}" for name, offset in zip(names, offsets, strict=True)}
    return {"magic": _MAGIC.decode(), **{name: str(value) for name, value in counts.items()}, **places}


def _chunk(data: bytes, at: int, magic: bytes) -> int:
    """Check the head of a chunk; return its count."""
    if at + _CHUNK.size > len(data):
        raise ValueError(f"offset {at:,}: wanted {magic!r}, the file has {len(data):,} bytes")
    got, _, count = _CHUNK.unpack_from(data, at)
    if got != magic:
        raise ValueError(f"offset {at:,}: wanted {magic!r}, got {got!r}")
    return int(count)


def _features(data: bytes, at: int) -> NDArray[np.void]:
    count, first = _chunk(data, at, b"FEAT"), at + _CHUNK.size
    if first + count * _FEATURE.itemsize > len(data):
        raise ValueError(f"offset {at:,}: {count:,} weights do not fit into the rest of the file")
    features = np.frombuffer(data, _FEATURE, count, first)
    is_finite = np.isfinite(features["weight"])
    if not is_finite.all():
        raise ValueError(f"offset {first + int(is_finite.argmin()) * _FEATURE.itemsize:,}: a weight is not finite")
    return features


def _lists(data: bytes, at: int, magic: bytes, n: int, n_features: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Sources 0 .. n - 1, each repeated for its weights, and the numbers of these weights."""
    count, first = _chunk(data, at, magic), at + _CHUNK.size
    if count < n or first + 4 * n > len(data):
        raise ValueError(f"offset {at:,}: {n:,} lists of weights are wanted, {count:,} announced, or the file ends")
    view = np.frombuffer(data, np.uint8)
    offsets = np.frombuffer(data, "<u4", n, first).astype(np.int64)
    if (offsets > len(data) - 4).any():
        raise ValueError(f"offset {first + 4 * int(offsets.argmax()):,}: a list of weights is beyond the file")
    sizes = _words(view, offsets)
    # Each weight is in one list at most, so that lists need no more memory than the file.
    if (offsets + 4 + 4 * sizes > len(data)).any() or sizes.sum() > n_features:
        raise ValueError(f"offset {at:,}: the lists name more weights than the {n_features:,} of the file, or it ends")
    sources = np.repeat(np.arange(n), sizes)
    places = np.arange(len(sources)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    numbers = _words(view, offsets[sources] + 4 + 4 * places)
    if (numbers >= n_features).any():
        raise ValueError(f"offset {at:,}: a list names weight {numbers.max():,} of {n_features:,}")
    return sources, numbers


def _words(view: NDArray[np.uint8], offsets: NDArray[np.int64]) -> NDArray[np.int64]:
    """Unsigned integers of 32 bits at offsets that need not be aligned."""
    return view[offsets[:, None] + np.arange(4)].view("<u4")[:, 0].astype(np.int64)


def _checked(features: NDArray[np.void], sources: NDArray[np.int64], kind: int, n_labels: int) -> NDArray[np.void]:
    """Weights of lists, if they are of the kind, of the lists' sources, and each once."""
    wrong = (features["kind"] != kind) | (features["source"] != sources) | (features["target"] >= n_labels)
    pairs = sources * max(n_labels, 1) + features["target"]
    if wrong.any() or len(np.unique(pairs)) < len(pairs):
        what = "transition" if kind == _TRANSITION else "state"
        raise ValueError(f"the list of number {int(sources[wrong.argmax()])} has a weight that is no {what} of its own")
    return features


# ---------------------------------------------------------------------------------------- writing


def write_crfsuite(
    model: ChainModel | Trained, path: str | os.PathLike[str], *, first: str = FIRST, last: str = LAST
) -> None:
    """Write a model that CRFsuite and its wrappers open, with the same labels, probabilities and marginals.

    Parameters
    ----------
    model : ChainModel or SequenceLabeler
        A chain of labels with exact inference, on dicts, lists of attributes or templates, whose expanded lines are
        then the attributes.
    path : path
    first, last : str
        Attributes that all first and all last tokens have, and no others. The file has no weights of first and last
        labels: they become weights of these attributes.

    Raises
    ------
    ValueError
        For a model that the file cannot express; names what it has, and the remedy.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from structsvm.interop import read_crfsuite, write_crfsuite
    >>> from structsvm.tasks import SequenceLabeler
    >>> X, y = [[["__BOS__", "w=the"], ["w=cat"]], [["__BOS__", "w=a"], ["w=dog"]]], [["D", "N"], ["D", "N"]]
    >>> path = Path(tempfile.mkdtemp()) / "model.crfsuite"
    >>> write_crfsuite(SequenceLabeler(C=1.0, random_state=0).fit(X, y), path)
    >>> read_crfsuite(path).predict([[["__BOS__", "w=the"], ["w=dog"]]])
    [['D', 'N']]
    """
    from structsvm.interop.trained import chain_of  # it imports templates

    data = to_bytes(with_ends(chain_of(model, "crfsuite"), first, last))
    with new_file(path) as file:
        file.write(data)


def with_ends(model: ChainModel, first: str, last: str) -> ChainModel:
    """The model with weights of first and last labels as those of attributes."""
    if model.independent or (model.pairs is not None and len(model.pairs.weights)):
        raise ValueError(
            "model: CRFsuite has no counterpart of weights of attributes with pairs of labels, nor of tokens by "
            "themselves; train without them"
        )
    attributes, rows = list(model.attributes), model.states.rows()
    targets, weights = model.states.targets.astype(np.int64), model.states.weights
    for name, what, ends in ((first, "first", model.start), (last, "last", model.end)):
        if ends is None or not ends.any():
            continue
        if name not in attributes:
            warn(
                f"{what}={name!r}: the model has weights of {what} labels, which the file gives to this attribute: "
                f"give it to all {what} tokens, or name one that they have",
                AdviceWarning,
            )
            attributes.append(name)
        number = attributes.index(name)
        rows = np.concatenate([rows, np.full(len(ends), number)])
        targets = np.concatenate([targets, np.arange(len(ends))])
        weights = np.concatenate([weights, ends])
    codes, inverse = np.unique(rows * len(model.labels) + targets, return_inverse=True)
    sums = np.bincount(inverse, weights).astype(np.float64)
    states = Weights.of_entries(codes // len(model.labels), codes % len(model.labels), sums, len(attributes))
    return replace(model, attributes=attributes, states=states, start=None, end=None)


def to_bytes(model: ChainModel) -> bytes:
    """The file of a model without weights of ends and of attributes with pairs; attributes without weights go."""
    labels, states = _encoded(model.labels, "label"), model.states
    sizes = np.diff(states.starts)
    kept = np.flatnonzero(sizes)
    attributes = _encoded([model.attributes[k] for k in kept.tolist()], "attribute")
    between = np.zeros((len(labels),) * 2) if model.transitions is None else model.transitions
    before, after = np.nonzero(between)
    features = np.zeros(len(states.targets) + len(before), dtype=_FEATURE)
    own, others = features[: len(states.targets)], features[len(states.targets) :]
    own["source"], own["target"], own["weight"] = np.repeat(np.arange(len(kept)), sizes[kept]), *states[1:]
    others["kind"], others["source"], others["target"] = _TRANSITION, before, after
    others["weight"] = between[before, after]

    chunks, offsets, at = [], [], _HEAD.size
    lists = [(b"LFRF", np.bincount(before, minlength=len(labels)), len(own), _SENTINELS), (b"AFRF", sizes[kept], 0, 0)]
    head = _CHUNK.pack(b"FEAT", _CHUNK.size + features.nbytes, len(features))
    for chunk in (head + features.tobytes(), database(labels), database(attributes)):
        offsets.append(at)
        chunks.append(chunk)
        at += len(chunk)
    for magic, counts, number, n_more in lists:
        at += -at % 4
        chunk = _listed(magic, counts, number, n_more, at)
        offsets.append(at)
        chunks += [bytes(-sum(map(len, chunks)) % 4), chunk]
        at += len(chunk)
    if at >= 2**32:
        raise ValueError(f"model: a file of CRFsuite has at most 4 GiB, this one would have {at:,} bytes: prune it")
    return b"".join([_HEAD.pack(_MAGIC, at, _KIND, _VERSION, 0, len(labels), len(attributes), *offsets), *chunks])


def _listed(magic: bytes, sizes: NDArray[np.int64], first: int, n_more: int, at: int) -> bytes:
    """Chunk at an offset: lists of so many consecutive weights each, from number `first` on, and `n_more` missing."""
    n, bounds = len(sizes), np.concatenate([[0], np.cumsum(sizes)])
    offsets = at + _CHUNK.size + 4 * (n + n_more) + 4 * (np.arange(n) + bounds[:-1])
    lists = np.insert(first + np.arange(bounds[-1]), bounds[:-1], sizes)  # each with its length before it
    words = np.concatenate([offsets, np.zeros(n_more, dtype=np.int64), lists])
    return _CHUNK.pack(magic, _CHUNK.size + 4 * len(words), n + n_more) + words.astype("<u4").tobytes()


def check_names(names: Iterable[str], what: str) -> None:
    """Raise ValueError for a name that the file cannot have."""
    for name in names:
        if "\0" in name:
            its = name.encode("utf-8", "surrogateescape")
            raise ValueError(f"model: the {what} {its!r} has a zero byte, with which names in the file end")


def _encoded(names: Sequence[str], what: str) -> list[bytes]:
    check_names(names, what)
    return [name.encode("utf-8", "surrogateescape") for name in names]
