"""The oracle of lists of words against all alignments, written out."""

import numpy as np
import pytest
from alignment_reference import ReferenceAligner

from structsvm.oracles.smith_waterman import MOST_SLOTS, WordAlignmentOracle
from structsvm.structures.alignments import Strings

rng = np.random.default_rng(0)


class WordReference(ReferenceAligner):
    """The definition: other words than the frequent ones are one letter, but for one with itself."""

    def __init__(self, n_words, *settings):
        super().__init__((n_words + 1,), *settings)
        self.n_words = n_words
        self._name("same")

    def histogram(self, x, z, alignment):
        as_letters = [[(min(word, self.n_words),) for word in words] for words in (x, z)]
        psi = super().histogram(*as_letters, alignment)
        i, j, path = alignment
        for operation in path:
            if operation == "M" and x[i] == z[j] > self.n_words:
                psi[self.number["pair", 0, self.n_words, self.n_words]] -= 1.0
                psi[self.number["same",]] += 1.0
            i += operation != "Z"
            j += operation != "X"
        return psi


@pytest.mark.parametrize("mode", ["global", "semi_global", "local"])
@pytest.mark.parametrize(("gaps", "symmetric", "letter_gaps"), [("affine", True, False), ("linear", False, True)])
@pytest.mark.parametrize("n_words", [0, 2])
def test_best_alignments(mode, gaps, symmetric, letter_gaps, n_words):
    settings = {"mode": mode, "gaps": gaps, "symmetric": symmetric, "letter_gaps": letter_gaps}
    oracle = WordAlignmentOracle(n_words, **settings)
    reference = WordReference(n_words, mode, gaps, symmetric, letter_gaps, None, "q", 0)
    assert oracle.n_features == reference.n_features
    for _ in range(15):
        x, z = (rng.integers(0, n_words + 5, rng.integers(1, 5)) for _ in range(2))
        w = rng.normal(size=oracle.n_features)
        table = [reference.histogram(x, z, one) for one in reference.alignments(len(x), len(z))]
        best = oracle.argmax((x, z), w)
        psi = oracle.joint_feature((x, z), best)
        np.testing.assert_array_equal(psi, reference.histogram(x, z, (*best[:2], best.operations.decode().upper())))
        assert psi @ w == pytest.approx(max(psi @ w for psi in table if mode == "local" or len(psi)))
        assert next(iter(oracle.alignments((x, z), w)))[0] == pytest.approx(psi @ w)


def test_weights_do_not_depend_on_symbols():
    """Words in common are numbered anew; there are as many symbols as an example needs, up to a limit."""
    oracle = WordAlignmentOracle(1)
    w = rng.normal(size=oracle.n_features)
    few, many = np.array([2, 3, 1, 0]), np.array([70, 2, 1, 0])
    assert [oracle.argmax((x, x), w) for x in (few, many)] == [oracle.argmax((few, few), w)] * 2
    assert oracle.n_symbols == 4 and oracle.holding(Strings.of([many])).n_symbols == 71
    assert oracle.holding(Strings.of([few])) is oracle
    with pytest.raises(ValueError, match=f"2049 different words in common .* more than {MOST_SLOTS}: align parts"):
        oracle.argmax(([2050], [2050]), w)
    with pytest.raises(ValueError, match="must be an array of symbols from 0 up"):
        oracle.argmax(([-1], [0]), w)
