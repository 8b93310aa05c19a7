"""A trained label-sequence model without scikit-learn: encoded features, labels, oracle, weights.

`SequenceLabeler` wraps it for Python users; the command line uses it as it is, because importing
scikit-learn takes longer than training a chunker.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from itertools import chain, pairwise
from numbers import Real

import numpy as np

from structsvm.columns import Columns
from structsvm.features import FeatureEncoder
from structsvm.model_file import ModelFileError, checksum, read_model, write_model
from structsvm.oracles.greedy import GreedyOracle
from structsvm.oracles.viterbi import ViterbiOracle
from structsvm.result import Result
from structsvm.solvers import LaRank, PassiveAggressive, Perceptron, Solver
from structsvm.solvers.stored import plain, solver_from_json, solver_to_json, take_up
from structsvm.tokens import Tokens

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
        The estimator's parameters; `save` keeps what a file can hold of them.
    """

    def __init__(self, encoder, labels, oracle, *, weights=None, params=None):
        self.encoder, self.labels, self.oracle = encoder, labels, oracle
        self.params = {} if params is None else params
        self.weights = np.zeros(oracle.n_features, dtype=np.float32) if weights is None else weights
        self.result: Result | None = None
        self.state: dict[str, np.ndarray] | None = None
        self.fingerprint = 0

    # ---- training -------------------------------------------------------------------------------

    def train(
        self,
        tokens,
        labels,
        solver,
        *,
        sample_weight=None,
        monitor=None,
        resume=False,
        base=None,
        passes=None,
    ):
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
        self._check_constraints(tokens, labels)
        problem = self.oracle.bind(tokens, labels, **solver.formulation())
        if sample_weight is not None and problem.n_samples == tokens.n_tokens and problem.groups is not None:
            sample_weight = np.repeat(sample_weight, tokens.lengths)
        fingerprint = data_fingerprint(tokens, labels)
        run = None
        if resume:
            if self.state is None:
                raise ValueError("the model holds no training state to go on from (partial_fit leaves none)")
            if fingerprint != self.fingerprint:
                raise ValueError(
                    "the training data differ from those that the model was trained on; go on with "
                    "the same data, or use partial_fit for new ones"
                )
            run = solver.start(problem, sample_weight=sample_weight)
            take_up(run, self.state)
        run = solver.solve(problem, sample_weight=sample_weight, base=base, run=run, monitor=monitor, passes=passes)
        self.weights, self.result = run.weights, run.result()
        self.state, self.fingerprint = (run.get_state(), fingerprint) if base is None else (None, 0)
        return run

    def _check_constraints(self, tokens, labels):
        """Raise ValueError, naming sequence and labels, if a true labelling is one that may not be predicted."""
        place = self.oracle.broken_at(tokens.offsets, labels)
        if place is not None:
            i, t = place
            names = [self.labels[c] for c in labels[tokens.offsets[i] : tokens.offsets[i + 1]]]
            where = f"{names[t]!r} at token {t}" + (f", after {names[t - 1]!r}" if t else "")
            raise ValueError(
                f"sequence {i}: the constraints do not allow its label {where}; correct the data, or train "
                "without constraints"
            )

    # ---- prediction -----------------------------------------------------------------------------

    def encode(self, X, lengths=None):
        """Return X as `Tokens` under the model's features."""
        return self.encoder.transform(X, lengths)

    def predict_tokens(self, tokens, *, allowed=None):
        """Label numbers of encoded sequences, as one int32 array of all their tokens."""
        check_allowed(allowed, tokens)
        return self.oracle.chain(tokens).decode(self.weights, allowed=allowed)

    def predict(self, X, *, lengths=None, allowed=None, n_jobs=1):
        """Labels of sequences: a list of label lists.

        `allowed` is a list with, for each sequence, None or a boolean array (length, n_labels).
        """
        if n_jobs == 1:
            return self._predict_part(self.encode(X, lengths), allowed)
        if not isinstance(X, Columns) or lengths is not None:
            X = self.encode(X, lengths)  # it is made of Python objects, which one thread reads fastest
        if len(X) < 2 * n_jobs:
            return self._predict_part(X, allowed)
        bounds = np.linspace(0, len(X), n_jobs + 1).astype(int).tolist()
        parts = [slice(a, b) for a, b in pairwise(bounds)]
        try:
            with ThreadPoolExecutor(n_jobs) as pool:
                labelled = pool.map(lambda p: self._predict_part(X[p], None if allowed is None else allowed[p]), parts)
                return list(chain.from_iterable(labelled))
        except (ValueError, TypeError):
            # A part counts its sequences from its own first: say it again with the user's numbers.
            return self._predict_part(X, allowed)

    def _predict_part(self, X, allowed):
        tokens = X if isinstance(X, Tokens) else self.encode(X)
        return self.split(self.predict_tokens(tokens, allowed=allowed), tokens.offsets)

    def split(self, numbers, offsets):
        """Label lists from the label numbers of all tokens."""
        labels = np.fromiter(self.labels, dtype=object).take(numbers).tolist()
        bounds = offsets.tolist()
        return [labels[a:b] for a, b in pairwise(bounds)]

    # ---- views of the weights -------------------------------------------------------------------

    def rows(self, first, count):
        """Weight rows without padding: array (count, n_labels)."""
        table = self.weights.reshape(-1, self.oracle.stride)
        return table[first : first + count, : self.oracle.n_labels]

    def emission(self):
        return self.rows(0, self.oracle.n_token_features)

    def transition(self):
        """Weights of label b after label a, array (n_labels, n_labels): the first lag if greedy."""
        if self.oracle.order == 0:
            return np.zeros((self.oracle.n_labels,) * 2, dtype=np.float32)
        return self.rows(self.oracle.n_token_features, self.oracle.n_labels)

    # ---- model files ----------------------------------------------------------------------------

    def save(self, path):
        """Write the model file; see `structsvm.model_file`.

        Raises
        ------
        TypeError
            For labels that a file cannot hold. No file has been touched.
        """
        encoder_meta, encoder_arrays = self.encoder.to_arrays()
        oracle = self.oracle
        meta = {
            "params": params_to_json(self.params, self.encoder),
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
            arrays |= {f"state.{name}": array for name, array in self.state.items() if not name.startswith("history_")}
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
        if encoder.kind is None:
            raise ValueError("a feature encoder that was never fitted")
        if not isinstance(meta["labels"], list):
            raise TypeError(f"labels {meta['labels']!r:.80}")
        labels = [label_from_json(label) for label in meta["labels"]]
        if len(set(labels)) != len(labels):
            raise ValueError("a label stands there twice")
        oracle = cls._oracle(meta["oracle"], len(labels), prefixed(arrays, "oracle."))
        if encoder.n_features != oracle.n_token_features:
            raise ValueError(
                f"{encoder.n_features} features in the vocabulary, {oracle.n_token_features} in the oracle"
            )
        weights = arrays["weights"]
        if weights.shape != (oracle.n_rows, oracle.stride) or weights.dtype != np.float32:
            raise ValueError(f"weights of shape {weights.shape} and type {weights.dtype}")
        if not np.isfinite(weights).all():
            raise ValueError("weights that are not finite")
        model = cls(encoder, labels, oracle, weights=weights.ravel(), params=params_from_json(meta["params"], oracle))
        if meta["result"] is None:
            return model
        model.result = Result.from_dict(meta["result"], prefixed(arrays, "history."))
        state = prefixed(arrays, "state.")
        if state:
            # Its arrays are checked where they are used, by `Run.set_state`: most loaded models only predict.
            model.state = state | {f"history_{k}": v for k, v in model.result.history.items()}
            model.fingerprint = int(meta["fingerprint"])
        return model

    @staticmethod
    def _oracle(meta, n_labels, arrays):
        n_features, order = meta["n_token_features"], meta["order"]
        if type(n_features) is not int or type(order) is not int or type(meta["end"]) is not bool:
            raise TypeError(f"an oracle described by {meta!r:.200}")
        if "label_costs" in arrays and arrays["label_costs"].dtype != np.float64:
            raise TypeError(f"label costs of type {arrays['label_costs'].dtype}")
        if meta["inference"] not in ("exact", "greedy"):
            raise ValueError(f"inference {meta['inference']!r:.80}")
        if meta["inference"] == "greedy":
            return GreedyOracle(n_labels, n_features, order=order, **arrays)
        return ViterbiOracle(n_labels, n_features, order=order, end=meta["end"], loss=meta["loss"], **arrays)


# ---- labels -------------------------------------------------------------------------------------


def encode_labels(y, tokens, labels=None):
    """Return ``(labels, numbers)``: the distinct labels, sorted where they can be, and int32 numbers.

    Parameters
    ----------
    y : list of label lists, or Columns with one column
        One flat list or array of all labels does too, if it cannot be taken for the other.
    tokens : Tokens
        Whose lengths y must have.
    labels : list, optional
        The labels known already; ValueError for another one.
    """
    if isinstance(y, Columns):
        if y.n_columns != 1:
            raise ValueError(f"y has {y.n_columns} columns, expected the one of the labels: columns.select([j])")
        names = y.vocabularies[0].tolist()
        lengths = np.diff(y.offsets)
        used = [name for name, count in zip(names, np.bincount(y.ids[:, 0], minlength=len(names))) if count]
    else:
        flat, lengths = flatten(y, tokens)
        try:
            used = list(dict.fromkeys(flat))
        except TypeError:
            bad = next(label for label in flat if not is_hashable(label))
            raise TypeError(f"labels must be hashable (strings, numbers, tuples), got {bad!r:.80}") from None
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
        raise ValueError(
            f"label {unknown[0]!r} is not one of the model's labels, which the first fit settles "
            f"(partial_fit can name later ones: classes=): {labels}"
        )
    if isinstance(y, Columns):
        table = np.array([number.get(name, -1) for name in names], dtype=np.int32)
        return labels, table[y.ids[:, 0]]
    return labels, np.fromiter(map(number.__getitem__, flat), dtype=np.int32, count=len(flat))


def flatten(y, tokens):
    """All labels of y in one list, and the number in each sequence (int64)."""
    if y is None:
        raise ValueError("SequenceLabeler requires y to be passed, but the target y is None")
    y = list(y)
    nested = [isinstance(labels, (list, tuple, np.ndarray)) for labels in y]
    if y and not any(nested) and len(y) == tokens.n_tokens != len(tokens):
        return [label.item() if isinstance(label, np.generic) else label for label in y], tokens.lengths
    flat, lengths = [], np.empty(len(y), dtype=np.int64)
    for i, labels in enumerate(y):
        if isinstance(labels, np.ndarray) and labels.ndim == 1:
            labels = labels.tolist()
        elif isinstance(labels, (str, bytes)) or not hasattr(labels, "__len__") or not hasattr(labels, "__iter__"):
            raise TypeError(
                f"y must hold a list of labels for each sequence, one label a token; for sequence {i} it "
                f"holds {labels!r:.80}"
            )
        lengths[i] = len(labels)
        flat.extend(labels)
    return flat, lengths


def is_hashable(label):
    """Whether a label can be a key."""
    try:
        hash(label)
    except TypeError:
        return False
    return True


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


def check_allowed(allowed, tokens):
    """Raise ValueError, naming the sequence, unless masks fit the sequences."""
    if allowed is None:
        return
    if len(allowed) != len(tokens):
        raise ValueError(f"X has {len(tokens)} sequences, allowed has {len(allowed)}")
    for i, (mask, length) in enumerate(zip(allowed, tokens.lengths)):
        if mask is not None and len(mask) != length:
            raise ValueError(f"sequence {i} has {length} tokens, but allowed has {len(mask)} for it")


def label_to_json(label):
    """A label for a header; TypeError if JSON cannot hold it."""
    if label is None or isinstance(label, (str, bool, int, float)):
        return label
    if isinstance(label, tuple):
        return {"tuple": [label_to_json(part) for part in label]}
    raise TypeError(
        f"a model file cannot hold the label {label!r}: labels must be strings, numbers, None, or tuples of them"
    )


def label_from_json(value):
    """The inverse of `label_to_json`."""
    if isinstance(value, dict) and isinstance(value["tuple"], list):
        return tuple(label_from_json(part) for part in value["tuple"])
    if value is None or isinstance(value, (str, bool, int, float)):
        return value
    raise ValueError(f"a label {value!r:.80}")


# ---- parameters in model files ------------------------------------------------------------------


def params_to_json(params, encoder):
    """An estimator's parameters for the header of its file.

    Templates are kept as text (a path may be gone by then), solvers by name and parameters, masks in the
    oracle's arrays. A RandomState and a solver of a user's own class are left out.
    """
    stored = {}
    for name, value in params.items():
        if isinstance(value, Solver):
            value = solver_to_json(value)
        elif name == "templates":
            value = encoder.templates
        elif name == "class_weight" and isinstance(value, dict):
            value = {"weights": [[label_to_json(label), float(weight)] for label, weight in value.items()]}
        elif name == "constraints" and isinstance(value, tuple):
            value = {"masks": True}
        else:
            value = plain(value)
        stored[name] = value
    return stored


def params_from_json(stored, oracle):
    """The inverse of `params_to_json`; unknown names are left in."""
    if not isinstance(stored, dict):
        raise TypeError(f"parameters {stored!r:.80}")
    params = dict(stored)
    if isinstance(params.get("solver"), dict):
        params["solver"] = solver_from_json(params["solver"])
    if "solver" in params and params["solver"] is None:
        del params["solver"]
    if isinstance(params.get("class_weight"), dict):
        params["class_weight"] = {label_from_json(label): weight for label, weight in params["class_weight"]["weights"]}
    if isinstance(params.get("constraints"), dict):
        params["constraints"] = oracle.allowed
    return params


# ---- the oracle and the solver of an estimator's parameters -----------------------------------

SOLVERS = {"larank": LaRank, "passive_aggressive": PassiveAggressive, "perceptron": Perceptron}
DEFAULT_C = 0.1


def make_solver(params):
    """The solver that parameters (`SequenceLabeler`'s, as attributes) ask for."""
    given = {name: getattr(params, name) for name in ("C", "max_iter", "tol", "random_state")}
    given = {name: value for name, value in given.items() if value is not None}
    if isinstance(params.solver, Solver):
        if given:
            raise ValueError(
                f"The {min(given)!r} parameter is set beside a solver object, which has its own; "
                f"set it there: solver={type(params.solver).__name__}({min(given)}=...)"
            )
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
    if encoder.n_features == 0:
        raise ValueError(
            f"no features are left: none occurs min_count={encoder.min_count} times"
            if encoder.min_count > 1
            else "the tokens have no features at all"
        )
    costs = label_costs(params.class_weight, labels, numbers)
    if params.loss == "zero_one" and costs is not None:
        raise ValueError("class_weight has no meaning with loss='zero_one', which counts sequences; use loss='hamming'")
    transitions, first, last = label_masks(params.constraints, labels)
    masks = {"allowed_transitions": transitions, "allowed_first": first, "allowed_last": last}
    if params.inference == "greedy":
        for name, default in (("loss", "hamming"), ("end", False)):
            if getattr(params, name) != default:
                raise ValueError(f"{name}={getattr(params, name)!r} needs inference='exact'")
        order = 2 if params.order is None else params.order
        return GreedyOracle(len(labels), encoder.n_features, order=order, label_costs=costs, **masks)
    order = 1 if params.order is None else params.order
    if order not in (1, 2):
        raise ValueError(f"order must be 1 or 2 with inference='exact', got {order}; inference='greedy' takes any")
    return ViterbiOracle(
        len(labels),
        encoder.n_features,
        order=order,
        end=params.end,
        loss=params.loss,
        label_costs=costs,
        **masks,
    )


def check_unchanged(params, model, numbers):
    """Raise ValueError, naming the parameter, if one that settles features or structure differs from the model's."""
    encoder = FeatureEncoder(params.templates, params.min_count, params.hash_bits)
    oracle = make_oracle(params, model.encoder, model.labels, numbers)
    for name, mine, its in [
        ("templates", encoder.templates, model.encoder.templates),
        ("min_count", encoder.min_count, model.encoder.min_count),
        ("hash_bits", encoder.hash_bits, model.encoder.hash_bits),
        ("inference", type(oracle), type(model.oracle)),
        ("order", oracle.order, model.oracle.order),
        ("end", getattr(oracle, "end", False), getattr(model.oracle, "end", False)),
        ("loss", oracle.loss_name, model.oracle.loss_name),
        ("class_weight", oracle.label_costs, model.oracle.label_costs),
        *(("constraints", mine, its) for mine, its in zip(oracle.allowed, model.oracle.allowed)),
    ]:
        if not np.array_equal(mine, its):
            raise ValueError(
                f"the model was trained with another {name!r}, and training cannot go on with a new one; "
                "train afresh (warm_start=False), or set it back"
            )


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
    for label, weight in class_weight.items():
        if not isinstance(weight, Real) or not 0.0 < float(weight) < np.inf:
            raise ValueError(f"class_weight must be positive and finite, got {weight!r} for the label {label!r}")
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
    opens = {"bio": "", "bioes": "BI"}[constraints]  # a chunk must go on after these
    inside = {"bio": "I", "bioes": "IE"}[constraints]  # a chunk must be open before these
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
    return {name[len(prefix) :]: array for name, array in arrays.items() if name.startswith(prefix)}


def data_fingerprint(tokens, labels):
    """A checksum of encoded training data."""
    arrays = (labels, tokens.offsets, tokens.indices, tokens.values)
    return checksum(array for array in arrays if array is not None)
