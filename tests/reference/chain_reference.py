"""Label chains by the enumeration of all labellings: slow, obvious, and without the package's code.

The weights are seen as the documented layout has them (rows of `stride` numbers); a labelling is scored
by walking over its tokens.
"""

import itertools

import numpy as np


class ReferenceChain:
    """A chain over one sequence of dense tokens ``x`` (T, F), with dense bigrams (T, B)."""

    def __init__(
        self,
        x,
        n_labels,
        *,
        order=1,
        end=False,
        loss="hamming",
        label_costs=None,
        allowed_transitions=None,
        allowed_first=None,
        allowed_last=None,
        allowed=None,
        language=None,
        bigrams=None,
    ):
        self.language = language
        self.x = np.asarray(x, dtype=np.float64)
        self.T, self.F = self.x.shape
        self.bigrams = np.zeros((self.T, 0)) if bigrams is None else np.asarray(bigrams, dtype=np.float64)
        self.K, self.order, self.end, self.loss_name = n_labels, order, end, loss
        self.costs = np.ones(n_labels) if label_costs is None else np.asarray(label_costs, dtype=np.float64)
        self.transitions, self.first, self.last = allowed_transitions, allowed_first, allowed_last
        self.allowed = allowed
        self.stride = (n_labels + 7) // 8 * 8
        self.first_bigram = self.F + n_labels + 2 + ((n_labels + 1) * n_labels if order == 2 else 0)
        self.n_rows = self.first_bigram + self.bigrams.shape[1] * n_labels

    def possible(self, y):
        if self.first is not None and not self.first[y[0]]:
            return False
        if self.last is not None and not self.last[y[-1]]:
            return False
        if self.transitions is not None and not all(self.transitions[a, b] for a, b in itertools.pairwise(y)):
            return False
        if self.language is not None and not accepts(self.language.following, self.language.accepting, y):
            return False
        return self.allowed is None or all(self.allowed[t, c] for t, c in enumerate(y))

    def labellings(self):
        """All labellings that the masks allow, in lexicographic order."""
        return [y for y in itertools.product(range(self.K), repeat=self.T) if self.possible(y)]

    def joint_feature(self, y):
        psi = np.zeros((self.n_rows, self.stride))
        for t, label in enumerate(y):
            psi[: self.F, label] += self.x[t]
            if t == 0:
                psi[self.F + self.K, label] += 1
            else:
                psi[self.F + y[t - 1], label] += 1
                for b, value in enumerate(self.bigrams[t]):
                    psi[self.first_bigram + b * self.K + y[t - 1], label] += value
                if self.order == 2:
                    before = y[t - 2] if t > 1 else self.K
                    psi[self.F + self.K + 2 + before * self.K + y[t - 1], label] += 1
        if self.end:
            psi[self.F + self.K + 1, y[-1]] += 1
        return psi.ravel()

    def score(self, w, y):
        rows = np.asarray(w, dtype=np.float64).reshape(self.n_rows, self.stride)
        total = 0.0
        for t, label in enumerate(y):
            total += self.x[t] @ rows[: self.F, label]
            if t == 0:
                total += rows[self.F + self.K, label]
            else:
                total += rows[self.F + y[t - 1], label]
                for b, value in enumerate(self.bigrams[t]):
                    total += value * rows[self.first_bigram + b * self.K + y[t - 1], label]
                if self.order == 2:
                    before = y[t - 2] if t > 1 else self.K
                    total += rows[self.F + self.K + 2 + before * self.K + y[t - 1], label]
        return total + (rows[self.F + self.K + 1, y[-1]] if self.end else 0.0)

    def loss(self, gold, y):
        wrong = [self.costs[g] for g, c in zip(gold, y, strict=True) if g != c]
        return float(bool(wrong)) if self.loss_name == "zero_one" else float(sum(wrong))


def accepts(following, accepting, y):
    """Whether an automaton, as tables, accepts a labelling."""
    state = 0
    for label in y:
        state = following[state][label]
        if state < 0:
            return False
    return accepting[state]


class ReferenceGreedy:
    """Left to right over one sequence, the labels at lags 1 .. order as features."""

    def __init__(
        self,
        x,
        n_labels,
        *,
        order=2,
        allowed_transitions=None,
        allowed_first=None,
        allowed_last=None,
        allowed=None,
        bigrams=None,
    ):
        self.x = np.asarray(x, dtype=np.float64)
        self.T, self.F = self.x.shape
        self.bigrams = np.zeros((self.T, 0)) if bigrams is None else np.asarray(bigrams, dtype=np.float64)
        self.K, self.order = n_labels, order
        self.transitions, self.first, self.last, self.allowed = (
            allowed_transitions,
            allowed_first,
            allowed_last,
            allowed,
        )
        self.stride = (n_labels + 7) // 8 * 8
        self.first_bigram = self.F + order * (n_labels + 1)
        self.n_rows = self.first_bigram + self.bigrams.shape[1] * n_labels

    def rows_of(self, t, y):
        """(row, value) pairs of the history at token t: one a lag, label K for "before the first token"; bigrams."""
        labels = [y[t - lag] if t >= lag else self.K for lag in range(1, self.order + 1)]
        found = [(self.F + lag * (self.K + 1) + label, 1.0) for lag, label in enumerate(labels)]
        if t > 0:
            found += [(self.first_bigram + b * self.K + y[t - 1], value) for b, value in enumerate(self.bigrams[t])]
        return found

    def token_scores(self, w, t, y):
        rows = np.asarray(w, dtype=np.float64).reshape(self.n_rows, self.stride)[:, : self.K]
        scores = self.x[t] @ rows[: self.F]
        for row, value in self.rows_of(t, y):
            scores = scores + value * rows[row]
        return scores

    def token_feature(self, t, label, y):
        psi = np.zeros((self.n_rows, self.stride))
        psi[: self.F, label] = self.x[t]
        for row, value in self.rows_of(t, y):
            psi[row, label] += value
        return psi.ravel()

    def decode(self, w):
        """The labelling, and each token's scores under it."""
        y, table = [], []
        for t in range(self.T):
            scores = self.token_scores(w, t, y)
            for label in range(self.K):
                possible = self.allowed is None or self.allowed[t, label]
                if t == 0 and self.first is not None:
                    possible = possible and self.first[label]
                if t > 0 and self.transitions is not None:
                    possible = possible and self.transitions[y[-1], label]
                if t == self.T - 1 and self.last is not None:
                    possible = possible and self.last[label]
                if not possible:
                    scores[label] = -np.inf
            if scores.max() == -np.inf:
                return t, table
            table.append(scores)
            y.append(int(scores.argmax()))
        return y, np.array(table)

    def joint_feature(self, y):
        return sum(self.token_feature(t, y[t], y) for t in range(self.T))
