"""python-crfsuite's module over this package's chains: ``sys.modules["pycrfsuite"] = structsvm.interop.pycrfsuite``.

Names, arguments and files are those of python-crfsuite. `Tagger` opens CRFsuite's files, `Trainer` writes them.
"""

from __future__ import annotations

import contextlib
import os
import sys
import time
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from structsvm.export.rows import text_of
from structsvm.files.new_file import new_file
from structsvm.interop.crfsuite import header_of, read_crfsuite, to_bytes
from structsvm.interop.crfsuite_log import TrainLogParser
from structsvm.interop.crfsuite_parameters import ALGORITHMS, ALIASES, Parameter, Value, parameters_of

if TYPE_CHECKING:
    from structsvm.export import Lattice
    from structsvm.interop.chain_model import ChainModel

__all__ = ["CRFSUITE_VERSION", "BaseTrainer", "CRFSuiteError", "ItemSequence", "ParsedDump", "Tagger", "Trainer"]

CRFSUITE_VERSION = "0.12.2"  # whose files these are
MAX_DEPTH = 64  # nested dicts of features

Token: TypeAlias = Iterable[str | bytes] | Mapping[str | bytes, object]


class CRFSuiteError(Exception):
    """Training that could not be done; `code` is python-crfsuite's."""

    def __init__(self, code: object) -> None:
        super().__init__(str(code))
        self.code = code


class ItemSequence:
    """Sequence of tokens whose features are flattened once, for several uses.

    Parameters
    ----------
    pyseq : iterable of tokens, or ItemSequence
        A token is an iterable of attributes, or a dict: numbers and bools are values of the attribute ``name``, texts
        the attribute ``name:text``, lists, sets and dicts attributes below ``name:``. Bytes are texts in UTF-8.

    Attributes
    ----------
    tokens : list of dict
        Attributes of each token with their values; of those that stand there twice the sum.

    Examples
    --------
    >>> from structsvm.interop.pycrfsuite import ItemSequence
    >>> ItemSequence([["foo"], {"bar": {"baz": 1}}]).items()
    [{'foo': 1.0}, {'bar:baz': 1.0}]
    """

    def __init__(self, pyseq: Iterable[Token] | ItemSequence) -> None:
        self.tokens: list[dict[str, float]] = (
            pyseq.tokens if isinstance(pyseq, ItemSequence) else [_item(t, x) for t, x in enumerate(pyseq)]
        )

    def items(self) -> list[dict[str, float]]:
        """Attributes of each token with their values."""
        return [dict(item) for item in self.tokens]

    def __len__(self) -> int:
        return len(self.tokens)

    def __repr__(self) -> str:
        return f"<ItemSequence of size {len(self)}>"


def _item(t: int, token: Token) -> dict[str, float]:
    found: dict[str, float] = {}
    for name, value in _attributes(t, token, 0):
        found[name] = found.get(name, 0.0) + value
    return found


def _attributes(t: int, token: Token, depth: int) -> Iterator[tuple[str, float]]:
    """Attributes of a token and their values."""
    if isinstance(token, (str, bytes)):
        raise TypeError(f"token {t} is the text {token!r}; wanted a list of attributes or a dict of features")
    if depth > MAX_DEPTH:
        raise ValueError(f"token {t}: features are nested deeper than {MAX_DEPTH} levels")
    if not isinstance(token, Mapping):
        yield from ((_text(t, name), 1.0) for name in token)
        return
    for key, value in token.items():
        name = _text(t, key)
        if isinstance(value, (str, bytes)):
            yield f"{name}:{_text(t, value)}", 1.0
        elif isinstance(value, (Mapping, list, tuple, set, frozenset)):
            yield from ((f"{name}:{rest}", number) for rest, number in _attributes(t, value, depth + 1))
        else:
            yield name, _number(t, name, value)


def _text(t: int, name: object) -> str:
    return name if isinstance(name, str) else text_of(t, name)


def _number(t: int, name: str, value: Any) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise TypeError(f"token {t}: feature {name!r} must be a number, text, list or dict, got {value!r}") from None
    if not np.isfinite(number):
        raise ValueError(f"token {t}: feature {name!r} must be finite, got {value!r}")
    return number


# ---------------------------------------------------------------------------------------- tagging


class ParsedDump(NamedTuple):
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

    def probability(self, yseq: Sequence[str]) -> float:
        """Probability of labels for the sequence that was set last."""
        lattice = self._current()
        return self._opened().tagger.probability(lattice, yseq)

    def marginal(self, y: str, pos: int) -> float:
        """Probability of a label at a position of the sequence that was set last."""
        table = self.marginals()
        if y not in self._ids:
            raise ValueError(f"y is {y!r}, which is no label of the model")
        if not 0 <= pos < len(table):
            raise ValueError(f"pos must be between 0 and {len(table) - 1}, got {pos}")
        return float(table[pos, self._ids[y]])

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


# --------------------------------------------------------------------------------------- training


class Instances:
    """Sequences that a trainer was given: attributes and labels by number, in the order of their first use."""

    def __init__(self) -> None:
        self.attributes: dict[str, int] = {}
        self.labels: dict[str, int] = {}
        self.numbers, self.values, self.label_ids = array("i"), array("d"), array("i")
        self.token_ends, self.ends, self.groups = array("q", [0]), array("q", [0]), array("i")

    def append(self, tokens: Sequence[Mapping[str, float]], labels: Sequence[str], group: int) -> None:
        """Append a sequence."""
        for token in tokens:
            self.numbers.extend([self.attributes.setdefault(name, len(self.attributes)) for name in token])
            self.values.extend(token.values())
            self.token_ends.append(len(self.numbers))
        self.label_ids.extend([self.labels.setdefault(label, len(self.labels)) for label in labels])
        self.ends.append(len(self.label_ids))
        self.groups.append(group)


class BaseTrainer:
    """Collects sequences and trains a model from them, which is written to a file of CRFsuite.

    Parameters
    ----------
    algorithm : {"lbfgs", "l2sgd", "ap", "pa", "arow"}, default="lbfgs"
    params : dict, optional
    verbose : bool, default=True
        Whether messages are printed.
    """

    verbose: bool = True
    _algorithm: str
    _values: dict[str, Value]
    _instances: Instances

    def __new__(cls, *args: object, **params: object) -> Self:
        self = super().__new__(cls)  # subclasses need not call __init__
        self.clear()
        self.select("lbfgs")
        return self

    def __init__(
        self, algorithm: str | None = None, params: Mapping[str, object] | None = None, verbose: bool = True
    ) -> None:
        if algorithm is not None:
            self.select(algorithm)
        if params is not None:
            self.set_params(params)
        self.verbose = verbose

    def message(self, message: str) -> None:
        """Receive a line that training says; by default it is printed if `verbose`."""
        if self.verbose:
            sys.stdout.write(message)

    def append(self, xseq: Iterable[Token] | ItemSequence, yseq: Iterable[str], group: int = 0) -> None:
        """Append a sequence, its labels, and the number of its group."""
        tokens = ItemSequence(xseq).tokens
        labels = [label.decode("utf-8", "surrogateescape") if isinstance(label, bytes) else label for label in yseq]
        if len(tokens) != len(labels):
            raise ValueError(f"xseq has {len(tokens)} tokens, yseq {len(labels)} labels")
        for label in labels:
            if not isinstance(label, str):
                raise TypeError(f"labels must be str, got {label!r}")
        self._instances.append(tokens, labels, int(group))

    def clear(self) -> None:
        """Remove all sequences."""
        self._instances = Instances()

    def select(self, algorithm: str, type: str = "crf1d") -> None:  # noqa: A002 (the name there)
        """Select an algorithm, whose parameters get their defaults."""
        name = ALIASES.get(algorithm.lower(), algorithm.lower())
        if name not in ALGORITHMS or type != "crf1d":
            raise ValueError(
                f"algorithm must be one of {', '.join(ALGORITHMS)} and type 'crf1d', got {algorithm!r} and {type!r}"
            )
        self._algorithm = name
        self._values = {key: parameter.default for key, parameter in parameters_of(name).items()}

    def params(self) -> list[str]:
        """Names of the parameters of the selected algorithm."""
        return list(self._values)

    def set_params(self, params: Mapping[str, object]) -> None:
        """Set parameters by name."""
        for name, value in params.items():
            self.set(name, value)

    def get_params(self) -> dict[str, Value]:
        """Parameters by name."""
        return dict(self._values)

    def set(self, name: str, value: object) -> None:
        """Set a parameter, a number or its text."""
        self._values[name] = self._parameter(name).read(name, value)

    def get(self, name: str) -> Value:
        """Value of a parameter."""
        self._parameter(name)
        return self._values[name]

    def help(self, name: str) -> str:
        """Describe a parameter."""
        return self._parameter(name).help

    def _parameter(self, name: str) -> Parameter:
        known = parameters_of(self._algorithm)
        if name not in known:
            raise ValueError(f"{name!r} is no parameter of {self._algorithm}: there are {', '.join(known)}")
        return known[name]

    def train(self, model: str | os.PathLike[str], holdout: int = -1) -> None:
        """Train on the sequences and write the model.

        Parameters
        ----------
        model : path
            An empty text writes no file.
        holdout : int, default=-1
            Group that is not trained on, and assessed in each iteration. -1: none.

        Raises
        ------
        ValueError
            For no sequences to train on, and for parameters that ask for what there is not.
        """
        data = self.train_bytes(holdout)
        if os.fspath(model):
            with new_file(model) as file:
                file.write(data)

    def train_bytes(self, holdout: int = -1) -> bytes:
        """Train as `train` does, and return what it writes."""
        from structsvm.interop.crfsuite_training import trained

        self._before_train()
        chain = trained(self._instances, self._algorithm, self._values, holdout, self._say)
        return self._stored(chain)

    def _before_train(self) -> None:
        """Prepare for a training."""

    def _say(self, line: str, event: str | None = None, **figures: object) -> None:
        """Pass on a line of the training."""
        self.message(line)

    def _stored(self, chain: ChainModel) -> bytes:
        begin = time.perf_counter()
        between = np.zeros((0, 0)) if chain.transitions is None else chain.transitions
        n_weights = len(chain.states.weights) + int(np.count_nonzero(between))
        n_active = int(np.count_nonzero(np.diff(chain.states.starts)))
        self._say("Storing the model\n")
        self._say(f"Number of active features: {n_weights}\n")
        self._say(f"Number of active attributes: {n_active} ({len(chain.attributes)})\n")
        self._say(f"Number of active labels: {len(chain.labels)} ({len(chain.labels)})\n")
        data = to_bytes(chain)
        seconds = time.perf_counter() - begin
        self._say(f"Seconds required: {seconds:.3f}\n", storing_seconds=seconds)
        self._say("\n", "end")
        return data


class Trainer(BaseTrainer):
    """`BaseTrainer` whose messages are sorted: `logparser` has the figures, and each event has its method.

    Attributes
    ----------
    logparser : TrainLogParser or None
        Record of the last training.
    """

    logparser: TrainLogParser | None = None

    def _before_train(self) -> None:
        self.logparser = TrainLogParser()

    def _say(self, line: str, event: str | None = None, **figures: object) -> None:
        if self.logparser is not None:
            self.logparser.add(line, event, figures)
        super()._say(line, event)

    def message(self, message: str) -> None:
        """Receive a line that training says; by default the method of the event that it ends is called if `verbose`."""
        record = self.logparser
        if not self.verbose or record is None or record.event is None:
            return
        if record.event == "iteration":
            self.on_iteration(record.last_log, record.last_iteration)
        else:
            getattr(self, f"on_{record.event}")(record.last_log)

    def on_start(self, log: str) -> None:
        """Receive the first lines."""
        sys.stdout.write(log)

    def on_featgen_progress(self, log: str, percent: int) -> None:
        """Receive progress of the features, which are made at once here: never called."""
        sys.stdout.write(log)

    def on_featgen_end(self, log: str) -> None:
        """Receive the count of features."""
        sys.stdout.write(log)

    def on_prepared(self, log: str) -> None:
        """Receive the parameters, before the first iteration."""
        sys.stdout.write(log)

    def on_prepare_error(self, log: str) -> None:
        """Receive an error before training, which is an exception here: never called."""
        sys.stdout.write(log)

    def on_iteration(self, log: str, info: dict[str, Any] | None) -> None:
        """Receive an iteration, and its figures."""
        sys.stdout.write(log)

    def on_optimization_end(self, log: str) -> None:
        """Receive the end of the iterations."""
        sys.stdout.write(log)

    def on_end(self, log: str) -> None:
        """Receive what was stored."""
        sys.stdout.write(log)
