"""Labels of sequences by a model file, without what trains: neither scikit-learn nor scipy is imported."""

from __future__ import annotations

from itertools import islice, pairwise
from typing import TYPE_CHECKING, Self

import numpy as np

from structsvm._warnings import warn_of_unknown
from structsvm.features._tokens import steps
from structsvm.features.tables.forms import Reading
from structsvm.model_file import name_of, read_model, unsound
from structsvm.oracles.enumeration.lazily import no_sums
from structsvm.oracles.greedy import GreedyOracle
from structsvm.stored_values import Number, Record, Value
from structsvm.tasks.sequence.chains import CHAIN, chain_of, check_fits, decoded, marginals_of, texts_of, weights_of

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Iterator, Sequence

    from numpy.typing import NDArray

    from structsvm.arrays import Floats, Integers
    from structsvm.features.encoder import FeatureEncoder
    from structsvm.features.tokens import Tokens
    from structsvm.model_file import ModelFile, Origin
    from structsvm.oracles.chain import ExactChain
    from structsvm.tasks.sequence.examples import SequencesLike

# Sequences of a stream that are labelled at once.
BATCH = 256
AROUND = Record({"temperature": Number(null=True), "reading": Value(Reading.of, Reading.to_json, needed=False)})


def is_opened(file: ModelFile) -> bool:
    """Whether a file is one that `Predictor` opens: a chain without segments and units of numbers."""
    header = file.meta
    has_more = header.get("segments") is not None or header.get("units") is not None or "units.scale" in file.nbytes
    return file.kind == "sequence" and not has_more


class Predictor:
    """A trained `SequenceLabeler` that only predicts: what ``structsvm.load(path, predictor=True)`` returns.

    It is opened in a small part of the time and memory, and predicts the same, bit for bit.

    Attributes
    ----------
    classes_ : list
        The labels, sorted.
    encoder : FeatureEncoder
    reading : Reading or None
        How the file of the training data was read, where that was not as it comes.
    has_probabilities : bool
        Whether scores are logarithms of probabilities, so that there are marginals.

    Examples
    --------
    >>> import io, structsvm
    >>> from structsvm.tasks import SequenceLabeler
    >>> file = io.BytesIO()
    >>> SequenceLabeler(C=1.0, random_state=0).fit([["a", "b"]], [["x", "y"]]).save(file)
    >>> structsvm.load(file.getvalue(), predictor=True).predict([["b", "a"]])
    [['x', 'y']]
    """

    def __init__(
        self,
        encoder: FeatureEncoder,
        labels: Sequence[Hashable],
        oracle: ExactChain | GreedyOracle,
        weights: Floats,
        temperature: float | None,
        reading: Reading | None = None,
    ) -> None:
        self.classes_, self.encoder, self.reading = list(labels), encoder, reading
        self._oracle, self._weights, self._temperature = oracle, weights, temperature
        self.has_probabilities = temperature is not None and not isinstance(oracle, GreedyOracle) and not oracle.rules
        self._names = np.fromiter(labels, dtype=object, count=len(labels))
        self._scaled: Floats | None = None

    @classmethod
    def load(cls, path: Origin, *, mmap: bool = False) -> Self:
        """Open a file that `SequenceLabeler.save` wrote.

        Raises
        ------
        ModelFileError
            If it is no sound model of a chain.
        ValueError
            For segments, rows of numbers, and named features with numbers.
        """
        file = read_model(path, kind="sequence", mmap=mmap)
        if not is_opened(file):
            raise ValueError(
                f"{name_of(path)}: predictor=True opens chains of columns and of named features without numbers, and "
                "this model has segments or numbers: load(path) opens it"
            )
        with unsound(path, "sequence"):
            stored = CHAIN.read(file.meta, file.arrays)
            oracle = chain_of(stored.oracle, stored.labels)
            check_fits(stored.encoder, oracle, 0, oracle.n_bigrams)
            around = AROUND.read(file.meta, {})
            weights = weights_of(stored, oracle)
            return cls(stored.encoder, stored.labels, oracle, weights, around.temperature, around.reading)

    def predict(self, X: SequencesLike) -> list[list[Hashable]]:
        """Return the best labelling of each sequence; X is that of `SequenceLabeler.predict`, but for numbers."""
        tokens = self.encode(X)
        labels = self._names.take(self.predict_tokens(tokens)).tolist()
        return [labels[a:b] for a, b in pairwise(tokens.offsets.tolist())]

    def predict_iter(self, X: Iterable[object]) -> Iterator[list[Hashable]]:
        """Yield the best labelling of each sequence, in memory for some hundred of them."""
        sequences = iter(X)
        while batch := list(islice(sequences, BATCH)):
            yield from self.predict(batch)

    def predict_marginals(self, X: SequencesLike) -> list[NDArray[np.float64]]:
        """Return per sequence an array (length, n_labels) of the probability of each label at each token.

        Raises ValueError if the file has no temperature, inference is greedy, or constraints are too many for sums.
        """
        if self._oracle.rules:
            raise ValueError(no_sums(self._oracle.rules))
        if not self.has_probabilities or isinstance(self._oracle, GreedyOracle):
            raise ValueError(
                "predict_marginals needs probabilities, and the scores of this model are margins or greedy ones: "
                "train with loss='log', or call calibrate"
            )
        if self._scaled is None:
            is_log = self._temperature in (None, 1.0)
            self._scaled = self._weights if is_log else self._weights / self._weights.dtype.type(self._temperature)
        return marginals_of(self._oracle, self._scaled, self.encode(X))

    # ---- parts of predictions, as of a `SequenceModel` --------------------------------------------

    marginals = predict_marginals

    def predict_tokens(self, tokens: Tokens) -> NDArray[np.int32]:
        """Label ids of encoded sequences, as one int32 array of all their tokens."""
        return decoded(self._oracle, tokens, self._weights)

    def shown_tokens(self, label_ids: Integers, offsets: Integers) -> tuple[list[str], Integers]:
        """Return ``(names, ids)``: the texts of labels, and the index of each token's."""
        return texts_of(self.classes_, label_ids)

    def encode(self, X: SequencesLike) -> Tokens:
        """Return X as `Tokens`; a warning where most tokens have none of the model's features."""
        tokens = self.encoder.transform(X)
        n_bare = steps(tokens.indptr)[2]
        if n_bare and not self.encoder.has_numbers:
            warn_of_unknown(n_bare, tokens.n_tokens, "tokens")
        return tokens
