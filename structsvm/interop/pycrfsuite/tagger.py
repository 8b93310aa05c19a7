"""Tagging by a model in a CRFsuite file."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from operator import index
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from structsvm.files.new_file import new_file
from structsvm.interop.crfsuite import header_of, read_crfsuite
from structsvm.interop.pycrfsuite.items import ItemSequence, Token, label_of

if TYPE_CHECKING:
    from structsvm.export import Lattice
    from structsvm.interop.chain_model import ChainModel


@dataclass(eq=False)
class ParsedDump:
    """Contents of a model.

    Attributes
    ----------
    header : dict
        Fields of the file's header, as texts.
    labels, attributes : dict
        The number of each, as a text, by name.
    transitions : dict
        Weights that are not 0 by (label before, label).
    state_features : dict
        Weights that are not 0 by (attribute, label).
    """

    header: dict[str, str]
    labels: dict[str, str]
    attributes: dict[str, str]
    transitions: dict[tuple[str, str], float]
    state_features: dict[tuple[str, str], float]


class Tagger:
    """Labels of sequences by a model in a CRFsuite file."""

    def __init__(self) -> None:
        self._model: ChainModel | None = None
        self._header: dict[str, str] = {}
        self._lattice: Lattice | None = None
        self._marginals: NDArray[np.float64] | None = None
        self._ids: dict[str, int] = {}

    def open(self, name: str | os.PathLike[str]) -> contextlib.closing[Tagger]:
        """Open a model file. Raises OSError if it cannot be read, ValueError if it is damaged."""
        with open(name, "rb") as file:
            return self._open(file.read(), f"{os.fspath(name)}: ")

    def open_inmemory(self, value: bytes) -> contextlib.closing[Tagger]:
        """Open what a model file contains."""
        return self._open(value, "")

    def _open(self, data: bytes, where: str) -> contextlib.closing[Tagger]:
        try:
            model = read_crfsuite(data)
        except ValueError as error:
            raise type(error)(f"{where}{error}") from None
        self.close()
        self._model, self._header = model, header_of(data)
        self._ids = {label: k for k, label in enumerate(model.labels)}
        return contextlib.closing(self)

    def close(self) -> None:
        """Close the model."""
        self._model = self._lattice = self._marginals = None

    def _opened(self, error: type[Exception] = ValueError) -> ChainModel:
        if self._model is None:
            raise error("the tagger has no model: call open first")
        return self._model

    def _current(self) -> Lattice:
        self._opened()
        if self._lattice is None:
            raise ValueError("the tagger has no sequence: call set or tag first")
        return self._lattice

    def labels(self) -> list[str]:
        """Labels of the model."""
        return list(self._opened().labels)

    def set(self, xseq: Iterable[Token] | ItemSequence) -> None:
        """Set the sequence that `tag`, `probability` and `marginal` are about."""
        tokens = xseq.tokens if isinstance(xseq, ItemSequence) else xseq
        self._lattice = self._opened().tagger.lattice(tokens)
        self._marginals = None

    def tag(self, xseq: Iterable[Token] | ItemSequence | None = None) -> list[str]:
        """Labels of a sequence, or of the one that was set last."""
        if xseq is not None:
            self.set(xseq)
        lattice = self._current()
        return self._opened().tagger.tag(lattice)

    def probability(self, yseq: Iterable[str | bytes]) -> float:
        """Probability of labels for the sequence that was set last."""
        lattice = self._current()
        return self._opened().tagger.probability(lattice, [label_of(y) for y in yseq])

    def marginal(self, y: str | bytes, pos: int) -> float:
        """Probability of a label at a position of the sequence that was set last."""
        table = self.marginals()
        name, place = label_of(y), index(pos)
        if name not in self._ids:
            raise ValueError(f"y is {y!r}, which is no label of the model")
        if not 0 <= place < len(table):
            raise ValueError(f"pos must be between 0 and {len(table) - 1}, got {pos}")
        return float(table[place, self._ids[name]])

    def marginals(self, xseq: Iterable[Token] | ItemSequence | None = None) -> NDArray[np.float64]:
        """Probabilities of all labels at all positions, array (n_tokens, n_labels): python-crfsuite has it not."""
        if xseq is not None:
            self.set(xseq)
        lattice = self._current()
        if self._marginals is None:
            self._marginals = self._opened().tagger.marginals(lattice)
        return self._marginals

    def info(self) -> ParsedDump:
        """Header, labels, attributes and weights of the model."""
        model = self._opened(RuntimeError)
        between = model.transitions if model.transitions is not None else np.zeros((0, 0))
        labels, attributes = model.labels, model.attributes
        rows, (_, targets, weights) = model.states.rows(), model.states
        return ParsedDump(
            self._header,
            {name: str(k) for k, name in enumerate(labels)},
            {name: str(k) for k, name in enumerate(attributes)},
            {(labels[a], labels[b]): float(between[a, b]) for a, b in np.argwhere(between).tolist()},
            {
                (attributes[row], labels[y]): weight
                for row, y, weight in zip(rows.tolist(), targets.tolist(), weights.tolist(), strict=True)
            },
        )

    def dump(self, filename: str | os.PathLike[str] | None = None) -> None:
        """Write the model as text, to the standard output if there is no name."""
        text = "".join(_dumped(self.info()))
        if filename is None:
            sys.stdout.write(text)
            return
        with new_file(filename) as file:
            file.write(text.encode("utf-8", "surrogateescape"))


def _dumped(info: ParsedDump) -> Iterator[str]:
    yield "FILEHEADER = {\n" + "".join(f"  {name}: {value}\n" for name, value in info.header.items()) + "}\n\n"
    for title, names in (("LABELS", info.labels), ("ATTRIBUTES", info.attributes)):
        yield f"{title} = {{\n"
        yield from (f"  {number:>5}: {name}\n" for name, number in names.items())
        yield "}\n\n"
    for title, kind, weights in (("TRANSITIONS", 1, info.transitions), ("STATE_FEATURES", 0, info.state_features)):
        yield f"{title} = {{\n"
        yield from (f"  ({kind}) {source} --> {target}: {weight:f}\n" for (source, target), weight in weights.items())
        yield "}\n\n"
