"""Training of models that are written to files of CRFsuite."""

from __future__ import annotations

import os
import sys
import time
from array import array
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from structsvm.files.new_file import new_file
from structsvm.interop.crfsuite import check_names, to_bytes
from structsvm.interop.crfsuite_log import TrainLogParser
from structsvm.interop.crfsuite_parameters import ALGORITHMS, ALIASES, Parameter, Value, parameters_of
from structsvm.interop.pycrfsuite.items import ItemSequence, Token, label_of

if TYPE_CHECKING:
    from structsvm.interop.chain_model import ChainModel


class CRFSuiteError(Exception):
    """Training that could not be done; `code` is python-crfsuite's."""

    def __init__(self, code: object) -> None:
        super().__init__(str(code))
        self.code = code


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
        labels = [label_of(label) for label in yseq]
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

        check_names(self._instances.labels, "label")
        check_names(self._instances.attributes, "attribute")
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
