"""A trained label-sequence model without scikit-learn: encoded features, labels, oracle, weights.

`SequenceLabeler` wraps it for Python users; the command line uses it as it is, because importing
scikit-learn takes longer than training a chunker.
"""

from __future__ import annotations

import zlib
from concurrent.futures import ThreadPoolExecutor
from itertools import chain

import numpy as np

from structsvm.columns import Columns
from structsvm.features import FeatureEncoder
from structsvm.model_file import ModelFileError, read_model, write_model
from structsvm.oracles.greedy import GreedyOracle
from structsvm.oracles.viterbi import ViterbiOracle
from structsvm.result import Result
from structsvm.solvers import LaRank, PassiveAggressive, Perceptron, Solver

KIND = "sequence"


class SequenceModel:
    """Features, labels, oracle and weights of a label-sequence model.

    Attributes
    ----------
    encoder : FeatureEncoder
    labels : list
        The labels; an oracle's label k is ``labels[k]``.
    oracle : ViterbiOracle or GreedyOracle
    weights : ndarray of shape (oracle.n_features,), float32
    result : Result or None
    state : dict of ndarray, or None
        The training state from which `resume` goes on.
    fingerprint : int
        Tells the training data of `state` from others.
    params : dict
        The estimator's parameters, as far as JSON can hold them.
    """

    def __init__(self, encoder, labels, oracle, *, weights=None, params=None):
        self.encoder, self.labels, self.oracle = encoder, labels, oracle
        self.params = {} if params is None else params
        self.weights = np.zeros(oracle.n_features, dtype=np.float32) if weights is None else weights
        self.result = self.state = None
        self.fingerprint = 0

    # ---- training -------------------------------------------------------------------------------

    def train(self, tokens, labels, solver, *, sample_weight=None, monitor=None, resume=False, base=None,
              passes=None):
        """Fit the weights to encoded sequences; returns the `Run`, which may have been interrupted.

        Parameters
        ----------
        tokens : Tokens
        labels : ndarray of shape (n_tokens,), int32
        solver : Solver
        sample_weight : ndarray of shape (n_sequences,), optional
        resume : bool
            Go on from `state`; ValueError if it belongs to other data.
        base, monitor, passes : see `Solver.solve`
        """
        solver.validate()
        problem = self.oracle.bind(tokens, labels, **solver.formulation())
        if sample_weight is not None and problem.n_samples == tokens.n_tokens and problem.groups is not None:
            sample_weight = np.repeat(sample_weight, tokens.lengths)
        fingerprint = data_fingerprint(tokens, labels)
        run = None
        if resume:
            if fingerprint != self.fingerprint:
                raise ValueError("the training data differ from those that the model was trained on; go on with "
                                 "the same data, or use partial_fit for new ones")
            run = solver.start(problem, sample_weight=sample_weight)
            run.set_state(self.state)
        run = solver.solve(problem, sample_weight=sample_weight, base=base, run=run, monitor=monitor, passes=passes)
        self.weights, self.result = run.weights, run.result()
        self.state, self.fingerprint = run.get_state(), fingerprint
        return run

    # ---- prediction -----------------------------------------------------------------------------

    def encode(self, X, lengths=None):
        """Return X as `Tokens` under the model's features."""
        return self.encoder.transform(X, lengths)

    def predict_tokens(self, tokens, *, allowed=None):
        """Label numbers of encoded sequences, as one int32 array of all their tokens."""
        return self.oracle.chain(tokens).decode(self.weights, allowed=allowed)

    def predict(self, X, *, lengths=None, allowed=None, n_jobs=1):
        """Labels of sequences: a list of label lists.

        `allowed` is a list with, for each sequence, None or a boolean array (length, n_labels).
        """
        if n_jobs == 1 or not hasattr(X, "__len__") or lengths is not None or len(X) < 2 * n_jobs:
            return self._predict_part(X, lengths, allowed)
        bounds = np.linspace(0, len(X), n_jobs + 1).astype(int).tolist()
        parts = [slice(a, b) for a, b in zip(bounds, bounds[1:])]
        with ThreadPoolExecutor(n_jobs) as pool:
            labelled = pool.map(lambda p: self._predict_part(X[p], None, None if allowed is None else allowed[p]), parts)
            return list(chain.from_iterable(labelled))

    def _predict_part(self, X, lengths, allowed):
        tokens = self.encode(X, lengths)
        return self.split(self.predict_tokens(tokens, allowed=allowed), tokens.offsets)

    def split(self, numbers, offsets):
        """Label lists from the label numbers of all tokens."""
        labels = list(map(self.labels.__getitem__, numbers.tolist()))
        bounds = offsets.tolist()
        return [labels[a:b] for a, b in zip(bounds, bounds[1:])]

    # ---- views of the weights -------------------------------------------------------------------

    def rows(self, first, count):
        """Weight rows without padding: array (count, n_labels)."""
        table = self.weights.reshape(-1, self.oracle.stride)
        return table[first:first + count, :self.oracle.n_labels]

    def emission(self):
        return self.rows(0, self.oracle.n_token_features)

    def transition(self):
        """Weights of label b after label a, array (n_labels, n_labels): the first lag if greedy."""
        if self.oracle.order == 0:
            return np.zeros((self.oracle.n_labels,) * 2, dtype=np.float32)
        return self.rows(self.oracle.n_token_features, self.oracle.n_labels)

    # ---- model files ----------------------------------------------------------------------------

    def save(self, path):
        """Write the model file; see `structsvm.model_file`."""
        encoder_meta, encoder_arrays = self.encoder.to_arrays()
        oracle = self.oracle
        meta = {
            "params": self.params,
            "labels": [label_to_json(label) for label in self.labels],
            "encoder": encoder_meta,
            "oracle": {
                "inference": "greedy" if isinstance(oracle, GreedyOracle) else "exact",
                "n_token_features": oracle.n_token_features,
                "order": oracle.order,
                "end": bool(getattr(oracle, "end", False)),
                "loss": oracle.loss_name,
            },
            "fingerprint": self.fingerprint,
            "result": None if self.result is None else self.result.to_dict(),
        }
        arrays = {"weights": self.weights.reshape(oracle.n_rows, oracle.stride)}
        arrays |= {f"encoder.{name}": array for name, array in encoder_arrays.items()}
        masks = ("allowed_transitions", "allowed_first", "allowed_last")
        arrays |= {f"oracle.{name}": mask for name, mask in zip(masks, oracle.allowed) if mask is not None}
        if oracle.label_costs is not None:
            arrays["oracle.label_costs"] = oracle.label_costs
        if self.result is not None:
            arrays |= {f"history.{name}": column for name, column in self.result.history.items()}
        if self.state is not None:
            # The weights of a run that does not average are the model's own: kept once.
            same = "average_sum" not in self.state
            arrays |= {f"state.{name}": array for name, array in self.state.items()
                       if not (same and name == "weights") and not name.startswith("history_")}
        write_model(path, KIND, meta, arrays)

    @classmethod
    def load(cls, path, *, mmap=False):
        """Read a model file; ModelFileError if it is not a whole, sound sequence model."""
        file = read_model(path, kind=KIND, mmap=mmap)
        try:
            return cls._from_file(file)
        except (KeyError, TypeError, ValueError, AttributeError, IndexError, OverflowError) as error:
            raise ModelFileError(f"{path}: not a sound sequence model: {error}") from error

    @classmethod
    def _from_file(cls, file):
        meta, arrays = file.meta, file.arrays
        encoder = FeatureEncoder.from_arrays(meta["encoder"], prefixed(arrays, "encoder."))
        labels = [label_from_json(label) for label in meta["labels"]]
        oracle = cls._oracle(meta["oracle"], len(labels), prefixed(arrays, "oracle."))
        if encoder.n_features != oracle.n_token_features:
            raise ValueError(f"{encoder.n_features} features in the vocabulary, {oracle.n_token_features} in the oracle")
        weights = arrays["weights"]
        if weights.shape != (oracle.n_rows, oracle.stride) or weights.dtype != np.float32:
            raise ValueError(f"weights of shape {weights.shape} and type {weights.dtype}")
        if not np.isfinite(weights).all():
            raise ValueError("weights that are not finite")
        model = cls(encoder, labels, oracle, weights=weights.ravel(), params=dict(meta["params"]))
        if meta["result"] is not None:
            model.result = Result.from_dict(meta["result"], prefixed(arrays, "history."))
        state = prefixed(arrays, "state.")
        if state:
            state = {"weights": model.weights, **state}
            model.state = state | {f"history_{k}": v for k, v in model.result.history.items()}
            model.fingerprint = int(meta["fingerprint"])
        return model

    @staticmethod
    def _oracle(meta, n_labels, arrays):
        if len(set(meta)) != 5 or meta["inference"] not in ("exact", "greedy"):
            raise ValueError(f"an oracle described by {meta}")
        n_features, order = meta["n_token_features"], meta["order"]
        if not all(isinstance(v, int) and not isinstance(v, bool) and v >= 0 for v in (n_features, order)):
            raise ValueError(f"an oracle with {n_features!r} features and order {order!r}")
        if meta["inference"] == "greedy":
            return GreedyOracle(n_labels, n_features, order=order, **arrays)
        return ViterbiOracle(n_labels, n_features, order=order, end=bool(meta["end"]), loss=meta["loss"], **arrays)


# ---- labels -------------------------------------------------------------------------------------


def encode_labels(y, tokens, labels=None):
    """Return ``(labels, numbers)``: the distinct labels, sorted where they can be, and int32 numbers.

    Parameters
    ----------
    y : list of label lists, or Columns with one column
    tokens : Tokens
        Whose lengths y must have.
    labels : list, optional
        The labels known already; ValueError for another one.
    """
    if isinstance(y, Columns):
        names = y.vocabularies[0].tolist()
        lengths = np.diff(y.offsets)
        used = [name for name, count in zip(names, np.bincount(y.ids[:, 0], minlength=len(names))) if count]
    else:
        lengths = np.array([len(sequence) for sequence in y], dtype=np.int64)
        flat = list(chain.from_iterable(y.tolist() if isinstance(y, np.ndarray) and y.dtype != object else y))
        used = list(dict.fromkeys(flat))
    if len(lengths) != len(tokens):
        raise ValueError(f"X has {len(tokens)} sequences, y has {len(lengths)}")
    wrong = np.flatnonzero(lengths != tokens.lengths)
    if len(wrong):
        i = int(wrong[0])
        raise ValueError(f"sequence {i} has {tokens.lengths[i]} tokens but {lengths[i]} labels")
    if labels is None:
        labels = sort_labels(used)
    number = {label: k for k, label in enumerate(labels)}
    unknown = [label for label in used if label not in number]
    if unknown:
        raise ValueError(f"label {unknown[0]!r} was not among the labels of the first fit: {labels}")
    if isinstance(y, Columns):
        table = np.array([number.get(name, -1) for name in names], dtype=np.int32)
        return labels, table[y.ids[:, 0]]
    return labels, np.fromiter(map(number.__getitem__, flat), dtype=np.int32, count=len(flat))


def sort_labels(labels):
    """The labels in their own order, or, where they have none, by type and text."""
    for label in labels:
        if label != label:
            raise ValueError("y holds NaN as a label")
    labels = [label.item() if isinstance(label, np.generic) else label for label in labels]
    try:
        return sorted(labels)
    except TypeError:
        return sorted(labels, key=lambda label: (type(label).__name__, repr(label)))


def label_to_json(label):
    if label is None or isinstance(label, (str, bool, int, float)):
        return label
    if isinstance(label, tuple):
        return {"tuple": [label_to_json(part) for part in label]}
    raise TypeError(f"a model file cannot hold the label {label!r}: labels must be strings, numbers, None, or tuples of them")


def label_from_json(value):
    if isinstance(value, dict):
        return tuple(label_from_json(part) for part in value["tuple"])
    if value is None or isinstance(value, (str, bool, int, float)):
        return value
    raise ValueError(f"a label {value!r}")


# ---- the oracle and the solver of an estimator's parameters -----------------------------------

SOLVERS = {"larank": LaRank, "passive_aggressive": PassiveAggressive, "perceptron": Perceptron}
DEFAULT_C = 0.1


def make_solver(params):
    """The solver that parameters (`SequenceLabeler`'s, as attributes) ask for."""
    given = {name: getattr(params, name) for name in ("C", "max_iter", "tol", "random_state")}
    given = {name: value for name, value in given.items() if value is not None}
    if isinstance(params.solver, Solver):
        if given:
            raise ValueError(f"The {min(given)!r} parameter is set beside a solver object, which has its own; "
                             f"set it there: solver={type(params.solver).__name__}({min(given)}=...)")
        return params.solver
    kind = SOLVERS[params.solver]
    if kind is Perceptron:
        wrong = sorted(given.keys() & {"C", "tol"})
        if wrong:
            raise ValueError(f"The {wrong[0]!r} parameter has no meaning for solver='perceptron'")
        return Perceptron(**given)
    return kind(**{"C": DEFAULT_C} | given)


def make_oracle(params, encoder, labels, numbers):
    """The oracle that parameters (`SequenceLabeler`'s, as attributes) ask for."""
    costs = label_costs(params.class_weight, labels, numbers)
    transitions, first, last = label_masks(params.constraints, labels)
    masks = {"allowed_transitions": transitions, "allowed_first": first, "allowed_last": last}
    if params.inference == "greedy":
        order = 2 if params.order is None else params.order
        return GreedyOracle(len(labels), encoder.n_features, order=order, label_costs=costs, **masks)
    order = 1 if params.order is None else params.order
    return ViterbiOracle(len(labels), encoder.n_features, order=order, end=params.end, loss=params.loss,
                         label_costs=costs, **masks)


def label_costs(class_weight, labels, numbers):
    """Cost of a wrong label, by the true one: array (n_labels,), or None for 1."""
    if class_weight is None:
        return None
    if class_weight == "balanced":
        counts = np.bincount(numbers, minlength=len(labels))
        return len(numbers) / (len(labels) * np.maximum(counts, 1.0))
    unknown = [label for label in class_weight if label not in labels]
    if unknown:
        raise ValueError(f"class_weight names {unknown[0]!r}, which is not one of the labels {labels}")
    return np.array([float(class_weight.get(label, 1.0)) for label in labels])


# ---- constraints --------------------------------------------------------------------------------


def label_masks(constraints, labels):
    """Masks ``(transitions, first, last)`` of a labelling scheme, for the oracles; None where all is allowed.

    ``"bio"``: I-X stands only after B-X or I-X. ``"bioes"``: further, B-X and I-X are followed by I-X or
    E-X, and S-X and E-X end a chunk.
    """
    if constraints is None:
        return None, None, None
    if isinstance(constraints, tuple):
        if len(constraints) != 3:
            raise ValueError(f"constraints must hold three masks (transitions, first, last), got {len(constraints)}")
        return constraints
    if not all(isinstance(label, str) for label in labels):
        raise TypeError(f"constraints={constraints!r} needs labels that are strings")
    opens = {"bio": "", "bioes": "BI"}[constraints]     # a chunk must go on after these
    inside = {"bio": "I", "bioes": "IE"}[constraints]   # a chunk must be open before these
    begins = {"bio": "BI", "bioes": "BI"}[constraints]
    parts = [(label[:1], label[2:]) if label[1:2] == "-" else (label, "") for label in labels]

    def allowed(a, b):
        (before, kind), (here, kind_here) = a, b
        if here in inside and kind_here:
            return before in begins and kind == kind_here
        return not (before in opens and kind)

    outside = ("O", "")
    transitions = np.array([[allowed(a, b) for b in parts] for a in parts])
    first = np.array([allowed(outside, b) for b in parts])
    last = np.array([allowed(a, outside) for a in parts])
    return transitions, first, last


# ---- small helpers ------------------------------------------------------------------------------


def prefixed(arrays, prefix):
    """The arrays whose names begin with `prefix`, without it."""
    return {name[len(prefix):]: array for name, array in arrays.items() if name.startswith(prefix)}


def data_fingerprint(tokens, labels):
    """A checksum of encoded training data."""
    value = zlib.crc32(np.ascontiguousarray(labels))
    for array in (tokens.offsets, tokens.indices, tokens.values):
        if array is not None:
            value = zlib.crc32(np.ascontiguousarray(array), value)
    return value
