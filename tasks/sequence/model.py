"""A trained label-sequence model without scikit-learn: encoded features, labels, oracle, weights.

`SequenceLabeler` wraps it for Python users; the command line uses it as it is, because importing
scikit-learn takes longer than training a chunker.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from itertools import chain, pairwise

import numpy as np

from structsvm.checkpoint import resumed
from structsvm.features.columns import Columns
from structsvm.features.encoder import FeatureEncoder
from structsvm.features.tokens import Tokens
from structsvm.model_file import ModelFileError, read_model, write_model
from structsvm.oracles.greedy import GreedyOracle
from structsvm.oracles.viterbi import ViterbiOracle
from structsvm.result import Result, read_result, result_arrays
from structsvm.tasks.sequence.constraints import check_allowed
from structsvm.tasks.sequence.labels import encode_labels, label_from_json, label_to_json, sort_labels
from structsvm.tasks.sequence.parameters import check_unchanged, make_oracle, params_from_json, params_to_json

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
        run = resumed(solver, problem, self.state, self.fingerprint, sample_weight=sample_weight) if resume else None
        run = solver.solve(problem, sample_weight=sample_weight, base=base, run=run, monitor=monitor, passes=passes)
        self.weights, self.result = run.weights, run.result()
        self.state, self.fingerprint = (run.get_state(), problem.fingerprint()) if base is None else (None, 0)
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
        arrays |= result_arrays(self.result, self.state)
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
        encoder = FeatureEncoder.from_arrays(meta["encoder"], file.under("encoder."))
        if encoder.kind is None:
            raise ValueError("a feature encoder that was never fitted")
        if not isinstance(meta["labels"], list):
            raise TypeError(f"labels {meta['labels']!r:.80}")
        labels = [label_from_json(label) for label in meta["labels"]]
        if len(set(labels)) != len(labels):
            raise ValueError("a label stands there twice")
        oracle = cls._oracle(meta["oracle"], len(labels), file.under("oracle."))
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
        model.result, model.state = read_result(file)
        if model.state is not None:
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


def prepare(params, X, y, model=None, *, lengths=None, classes=None):
    """Return ``(model, tokens, numbers)``: an untrained model as parameters ask for it, X and y encoded.

    Parameters
    ----------
    params : object with `SequenceLabeler`'s parameters as attributes
    X, y : sequences and their labels; see `FeatureEncoder` and `encode_labels`
    model : SequenceModel, optional
        Go on with this one; ValueError if the parameters ask for other features or another structure.
    lengths : see `FeatureEncoder.fit_transform`
    classes : iterable, optional
        All labels that a new model is to know.
    """
    if model is not None:
        tokens = model.encode(X, lengths)
        _, numbers = encode_labels(y, tokens, model.labels)
        check_unchanged(params, model, numbers)
        return model, tokens, numbers
    encoder = FeatureEncoder(params.templates, params.min_count, params.hash_bits)
    tokens = encoder.fit_transform(X, lengths)
    labels, numbers = encode_labels(y, tokens, None if classes is None else sort_labels(list(classes)))
    return SequenceModel(encoder, labels, make_oracle(params, encoder, labels, numbers)), tokens, numbers
