"""A hidden Markov model of words and labels from counts, with one added to each: a baseline."""

from __future__ import annotations

from itertools import chain, pairwise

import numpy as np


class HiddenMarkovModel:
    """Transition and emission counts; all unseen words share one."""

    def fit(self, X, y):
        """Count; X and y are lists of words and of labels."""
        self.labels = sorted(set(chain.from_iterable(y)))
        number = {label: k for k, label in enumerate(self.labels)}
        self.words = {word: k for k, word in enumerate(sorted(set(chain.from_iterable(X))))}
        K, n_words = len(self.labels), len(self.words)
        first, steps, emissions = np.ones(K), np.ones((K, K)), np.ones((K, n_words + 1))
        for words, labels in zip(X, y, strict=True):
            path = [number[label] for label in labels]
            first[path[0]] += 1
            np.add.at(steps, tuple(np.array(list(pairwise(path)), dtype=np.intp).reshape(-1, 2).T), 1)
            np.add.at(emissions, (path, [self.words[word] for word in words]), 1)
        self.first = np.log(first / first.sum())
        self.steps = np.log(steps / steps.sum(axis=1, keepdims=True))
        self.emissions = np.log(emissions / emissions.sum(axis=1, keepdims=True)).T
        return self

    def predict(self, X):
        return [self._best(words) for words in X]

    def _best(self, words):
        """The most probable labels of one sentence (Viterbi)."""
        E = self.emissions[[self.words.get(word, -1) for word in words]]
        score, back = self.first + E[0], []
        for row in E[1:]:
            through = score[:, None] + self.steps
            back.append(through.argmax(axis=0))
            score = through.max(axis=0) + row
        path = [int(score.argmax())]
        for before in reversed(back):
            path.append(int(before[path[-1]]))
        return [self.labels[k] for k in reversed(path)]
