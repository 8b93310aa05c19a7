"""OSPAS, the Online Semantic Parser for Ambiguous Supervision (Bordes 2010, algorithm 24): words labelled from bags.

A sentence's words are labelled one by one, each with the label of its highest score. A label that is in the word's
bag leaves the bag, and the word is done; any other is a violation, and a step of algorithm 23 follows, on the set of
labels that the bag still holds. A sentence ends when every word that is left has been tried in vain.

Scores tie often: all do of a word that is new, and for good those of two labels that each bag of a word holds. Of
several best labels one that the bag does not hold is taken, if there is one: a tie is a violation, from which a new
word learns. Otherwise any but the empty one, label 0, as the count of words tried so far tells. (The empty one is in
nearly every bag: words that it takes would learn nothing.)

A semantic parser has two such taggers. The first gives words their symbols; the second, for each relation among these,
gives the other words their roles, from features that hold what the first has just said.
"""

from libc.math cimport INFINITY
from libc.stdint cimport int32_t, int64_t, uint64_t

import numpy as np

from structsvm._random cimport Random, random_below, random_seed
from structsvm._arrays cimport array_data
from structsvm.dual._state cimport State

from structsvm.dual._weights import fitting
from structsvm.features.attributes import AttributeVocabulary
from structsvm.model_file import under
from structsvm.tasks.semantics.features import Encoder

cdef extern from "bags.h" nogil:
    ctypedef struct bags_item:
        double score
        int32_t label
    void bags_scores(const double* w, int64_t K, const int32_t* index, const double* value, int64_t n, double* out)
    double bags_corner(const double* score, int64_t K, const int32_t* bag, int64_t m, bags_item* items,
                       int32_t* count, int64_t* pairs)

cdef enum Strategy:
    RANDOM          # any word that was not tried since the last success
    LEFT_RIGHT      # the next one to the right of the last, and round again
    ORDER_FREE      # the one whose best label has the highest score, the leftmost of several

STRATEGIES = {"random": RANDOM, "left_right": LEFT_RIGHT, "order_free": ORDER_FREE}


cdef class Words:
    """Sentences of words, and the bag of labels that each word takes its own from.

    Parameters
    ----------
    rows : SparseRows
        The features of the words.
    offsets : int64 array of shape (n_sentences + 1,)
        Sentence s is words ``offsets[s]:offsets[s + 1]``.
    bag_of : int64 array of shape (n_words,)
        The bag of each word; words of different sentences share none.
    bag_indptr : int64 array of shape (n_bags + 1,)
    bag_labels, bag_counts : int32 arrays of shape (n_entries,)
        Labels of each bag, ascending, and how many of each it holds.
    """

    cdef readonly object rows
    cdef readonly Py_ssize_t n_sentences
    cdef const int64_t* indptr
    cdef const int32_t* indices
    cdef const double* values
    cdef const int64_t[::1] offsets
    cdef const int64_t[::1] bag_of
    cdef const int64_t[::1] bag_indptr
    cdef const int32_t[::1] bag_labels
    cdef const int32_t[::1] bag_counts
    # scratch
    cdef int64_t[::1] left          # words of the sentence that have no label yet
    cdef int32_t[::1] bag           # remaining count of each label of each bag

    def __init__(self, rows, offsets, bag_of, bag_indptr, bag_labels, bag_counts):
        self.rows, self.n_sentences = rows, len(offsets) - 1
        self.indptr = <const int64_t*>array_data(rows.indptr)
        self.indices = <const int32_t*>array_data(rows.indices)
        self.values = <const double*>array_data(rows.values)
        self.offsets, self.bag_of = offsets, bag_of
        self.bag_indptr, self.bag_labels, self.bag_counts = bag_indptr, bag_labels, bag_counts
        self.left = np.empty(max(int(np.diff(offsets).max(initial=0)), 1), dtype=np.int64)
        self.bag = np.array(bag_counts)

    cdef Py_ssize_t begin(self, Py_ssize_t s) noexcept nogil:
        """Fill the bags of sentence s, and `left` with its words; returns how many these are."""
        cdef Py_ssize_t e, t, first = self.offsets[s]
        cdef int64_t b = -1
        for t in range(first, self.offsets[s + 1]):
            self.left[t - first] = t
            if self.bag_of[t] != b:
                b = self.bag_of[t]
                for e in range(self.bag_indptr[b], self.bag_indptr[b + 1]):
                    self.bag[e] = self.bag_counts[e]
        return self.offsets[s + 1] - first

    cdef bint take(self, Py_ssize_t t, Py_ssize_t y) noexcept nogil:
        """Lines 8 and 11: whether the bag of word t holds y; then one of it leaves."""
        cdef Py_ssize_t e
        for e in range(self.bag_indptr[self.bag_of[t]], self.bag_indptr[self.bag_of[t] + 1]):
            if self.bag_labels[e] == y:
                if self.bag[e] == 0:
                    return False
                self.bag[e] -= 1
                return True
        return False

    cdef Py_ssize_t candidates(self, Py_ssize_t t, int32_t* out) noexcept nogil:
        """bagtoset: the labels that the bag of word t still holds; returns how many these are."""
        cdef Py_ssize_t e, m = 0
        for e in range(self.bag_indptr[self.bag_of[t]], self.bag_indptr[self.bag_of[t] + 1]):
            if self.bag[e] > 0:
                out[m] = self.bag_labels[e]
                m += 1
        return m


cdef class BagTagger:
    """Weights of labels for features, and the online algorithm that trains them.

    Parameters
    ----------
    n_features, n_labels : int
        Both may grow later (`resize`).
    strategy : {"random", "left_right", "order_free"}
        Which word is tried next.
    average : bool
        Keep the average of the weights over all words tried.
    seed : int
    """

    cdef double[:, ::1] w           # (at least n_features, n_labels)
    cdef double[:, ::1] u           # as w: the updates, each times the visits before it; no rows without average
    cdef readonly Py_ssize_t n_features
    cdef readonly Py_ssize_t K
    cdef readonly int64_t n_visits  # words tried
    cdef readonly int64_t n_updates
    cdef Strategy strategy
    cdef bint average
    cdef Random random
    # scratch
    cdef double[::1] score
    cdef int32_t[::1] count
    cdef int32_t[::1] candidates
    cdef object memory
    cdef bags_item* items

    def __init__(self, Py_ssize_t n_features, Py_ssize_t n_labels, *, strategy="random", bint average=False,
                 uint64_t seed=0):
        self.strategy = STRATEGIES[strategy]
        self.average = average
        self.w = self.u = np.zeros((0, 0))
        random_seed(&self.random, seed)
        self.resize(n_features, n_labels)

    def resize(self, Py_ssize_t n_features, Py_ssize_t n_labels):
        """Make room for new features and labels, which have weight 0."""
        cdef Py_ssize_t n_rows = self.w.shape[0]
        if n_features < self.n_features or n_labels < self.K:
            raise ValueError(f"{n_features} features and {n_labels} labels are fewer than there were")
        if n_features > n_rows or n_labels > self.K:
            if n_features > n_rows > 0:
                n_rows = max(n_features, n_rows + n_rows // 2)  # features come one by one
            n_rows = max(n_features, n_rows)
            self.w = enlarged(self.w, n_rows, n_labels)
            if self.average:
                self.u = enlarged(self.u, n_rows, n_labels)
        if n_labels > self.K:
            self.score = np.empty(n_labels)
            self.count = np.empty(n_labels, dtype=np.int32)
            self.candidates = np.empty(n_labels, dtype=np.int32)
            self.memory = np.empty(n_labels * sizeof(bags_item), dtype=np.uint8)
            self.items = <bags_item*>array_data(self.memory)
        self.n_features, self.K = n_features, n_labels

    @property
    def weights(self):
        """Array (n_features, n_labels): the weights of now."""
        return np.array(self.w[:self.n_features])

    @property
    def averaged(self):
        """Array (n_features, n_labels): the average of the weights; the last ones if none is kept."""
        if not self.average or self.n_visits == 0:
            return self.weights
        return np.asarray(self.w[:self.n_features]) - np.asarray(self.u[:self.n_features]) / self.n_visits

    # ---- training -------------------------------------------------------------------------------

    def learn(self, Words words not None, double C):
        """One pass over sentences in their order.

        Parameters
        ----------
        words : Words
        C : float
            Upper bound of a step.

        Returns
        -------
        labels : ndarray of shape (n_words,), int32
            The label that each word took from its bag, -1 for a word that found none.
        """
        cdef Py_ssize_t s
        cdef int32_t[::1] labels = np.empty(max(len(words.rows), 1), dtype=np.int32)
        self.check(words)
        with nogil:
            for s in range(words.n_sentences):
                self.sentence(words, s, C, &labels[0])
        return np.asarray(labels)[:len(words.rows)]

    cdef int check(self, Words words) except -1:
        if words.rows.n_features > self.n_features:
            raise ValueError(f"the words have {words.rows.n_features} features, the weights {self.n_features}")
        return 0

    cdef int sentence(self, Words words, Py_ssize_t s, double C, int32_t* labels) except -1 nogil:
        """Algorithm 24; fills the labels of the words of sentence s.

        Words left[0 .. n_left - 1] have no label; the first n_fresh of them were not tried since the last success.
        Left-right keeps the words in order and turns the list, so that the one to try next is always the first.
        """
        cdef Py_ssize_t n_left = words.begin(s), n_fresh = n_left, at, t, y
        for t in range(words.offsets[s], words.offsets[s + 1]):
            labels[t] = -1
        while n_fresh > 0:
            at = self.choose(words, n_fresh)
            t = words.left[at]
            y = self.best(words, t)
            self.n_visits += 1
            if words.take(t, y):
                labels[t] = <int32_t>y
                n_left -= 1
                self.drop(words.left, at, n_left)
                n_fresh = n_left
            else:
                self.step(words, t, C)
                n_fresh -= 1
                self.set_aside(words.left, at, n_fresh, n_left)
        return 0

    cdef Py_ssize_t choose(self, Words words, Py_ssize_t n_fresh) noexcept nogil:
        """Choose one of left[0 .. n_fresh - 1] to try."""
        cdef Py_ssize_t at, choice = 0
        cdef double value, highest = -INFINITY
        if self.strategy == RANDOM:
            return random_below(&self.random, n_fresh)
        if self.strategy == ORDER_FREE:
            for at in range(n_fresh):
                value = self.fill(words, words.left[at])
                if value > highest or (value == highest and words.left[at] < words.left[choice]):
                    highest = value
                    choice = at
        return choice

    cdef void drop(self, int64_t[::1] left, Py_ssize_t at, Py_ssize_t n_left) noexcept nogil:
        """Word `at` is done; n_left words stay."""
        cdef Py_ssize_t k
        if self.strategy == LEFT_RIGHT:
            for k in range(at, n_left):
                left[k] = left[k + 1]
        else:
            left[at] = left[n_left]

    cdef void set_aside(self, int64_t[::1] left, Py_ssize_t at, Py_ssize_t n_fresh, Py_ssize_t n_left) noexcept nogil:
        """Word `at` has failed: behind the fresh ones with it."""
        cdef int64_t t = left[at]
        cdef Py_ssize_t k
        if self.strategy == LEFT_RIGHT:
            for k in range(n_left - 1):
                left[k] = left[k + 1]
            left[n_left - 1] = t
        else:
            left[at] = left[n_fresh]
            left[n_fresh] = t

    cdef double fill(self, Words words, Py_ssize_t t) noexcept nogil:
        """Fill `score`; returns the highest."""
        cdef Py_ssize_t k, e = words.indptr[t]
        cdef double highest
        bags_scores(&self.w[0, 0], self.K, words.indices + e, words.values + e, words.indptr[t + 1] - e, &self.score[0])
        highest = self.score[0]
        for k in range(1, self.K):
            highest = max(highest, self.score[k])
        return highest

    cdef Py_ssize_t best(self, Words words, Py_ssize_t t) noexcept nogil:
        """The label of the highest score; fills `score`. Of several one that the bag does not hold, if there is one;
        else any but the empty one."""
        cdef int64_t b = words.bag_of[t]
        cdef Py_ssize_t k, n = 0, e = words.bag_indptr[b], end = words.bag_indptr[b + 1]
        cdef double highest = self.fill(words, t)
        for k in range(self.K):
            while e < end and words.bag_labels[e] < k:
                e += 1
            if self.score[k] == highest:
                if e == end or words.bag_labels[e] != k or words.bag[e] == 0:
                    return k
                n += k > 0
        n = 0 if n < 2 else self.n_visits % n
        for k in range(1, self.K):
            if self.score[k] == highest:
                n -= 1
                if n < 0:
                    return k
        return 0

    cdef int step(self, Words words, Py_ssize_t t, double C) except -1 nogil:
        """Algorithm 23 on the current scores; a bag without labels, or with all of them, says nothing."""
        cdef Py_ssize_t e, k, m = words.candidates(t, &self.candidates[0])
        cdef int64_t pairs = 0
        cdef double loss, scale, norm = 0.0, square = 0.0, alpha, amount
        if m == 0 or m == self.K:
            return 0
        scale = 1.0 / (<double>m * (self.K - m))
        loss = scale * bags_corner(&self.score[0], self.K, &self.candidates[0], m, self.items, &self.count[0], &pairs)
        if loss != loss:
            with gil:
                raise ValueError("the scores of a word overflow; scale the features down")
        # |psi|^2 = scale^2 |x|^2 sum_k count_k^2
        for e in range(words.indptr[t], words.indptr[t + 1]):
            norm += words.values[e] * words.values[e]
        for k in range(self.K):
            square += <double>self.count[k] * self.count[k]
        if pairs == 0 or norm == 0.0:
            return 0
        alpha = min(C, loss / (scale * scale * norm * square))
        for e in range(words.indptr[t], words.indptr[t + 1]):
            amount = alpha * scale * words.values[e]
            for k in range(self.K):
                self.w[words.indices[e], k] += amount * self.count[k]
            if self.average:
                amount *= self.n_visits - 1
                for k in range(self.K):
                    self.u[words.indices[e], k] += amount * self.count[k]
        self.n_updates += 1
        return 0

    # ---- stored state ---------------------------------------------------------------------------

    def get_state(self):
        """Return the state as a dict of arrays (see `set_state`)."""
        state = {
            "weights": self.weights,
            "random": np.array([self.random.s[k] for k in range(4)], dtype=np.uint64),
            "counters": np.array([self.n_visits, self.n_updates], dtype=np.int64),
        }
        if self.average:
            state["average_sum"] = np.array(self.u[:self.n_features])
        return state

    def set_state(self, state):
        """Restore the arrays returned by `get_state`, of as many features and labels as here, or of the first of them.

        Resuming from it gives bit-identical results. Raises ValueError if the arrays do not fit.
        """
        cdef int k
        cdef const uint64_t[::1] words = state["random"]
        weights = state["weights"]
        sums = fitting(state, "average_sum", weights) if self.average else None
        if weights.shape[0] > self.n_features or weights.shape[1] > self.K:
            raise ValueError(f"array 'weights' of the training state has shape {weights.shape}, expected at most "
                             f"{self.n_features} x {self.K}")
        self.w = enlarged(weights, self.n_features, self.K)
        if self.average:
            self.u = enlarged(sums, self.n_features, self.K)
        self.n_visits, self.n_updates = state["counters"]
        for k in range(4):
            self.random.s[k] = words[k]


def enlarged(table, n_rows, n_columns):
    larger = np.zeros((n_rows, n_columns))
    old = np.asarray(table)
    larger[:old.shape[0], :old.shape[1]] = old
    return larger


cdef class OspasState(State):
    """The two taggers of a semantic parser in training.

    Parameters
    ----------
    problem : SemanticProblem
    C : float64 array of shape (n_sentences,)
        Upper bound of a step, for each sentence.
    strategy, average, seed
        Of both taggers: see `BagTagger`.

    Attributes
    ----------
    symbols, roles : BagTagger
    encoder : Encoder
        The features of roles, which grow while sentences are visited.
    """

    kind = "ospas"
    steps = frozenset({"process_new"})

    cdef readonly object problem
    cdef readonly BagTagger symbols
    cdef readonly BagTagger roles
    cdef readonly object encoder
    cdef Words words
    cdef const double[::1] C
    cdef int32_t[::1] labels        # the symbol that each word took
    cdef uint64_t seed
    cdef str strategy
    cdef bint average

    def __init__(self, problem, const double[::1] C, *, strategy="random", bint average=False, uint64_t seed=0):
        self.n_samples = problem.n_samples
        self.groups = np.array([0, problem.n_samples], dtype=np.int64)  # sentences come in their order
        self.C, self.strategy, self.average, self.seed = C, strategy, average, seed
        self.labels = np.empty(max(len(problem.words.rows), 1), dtype=np.int32)
        self.restart(problem)

    def restart(self, problem):
        """Begin anew, at weights 0, on a problem of the same sentences; the counts of work go on."""
        self.rebind(problem)
        self.encoder = Encoder()
        self.symbols = self.tagger(problem.words.rows.n_features, problem.n_symbols)
        self.roles = self.tagger(0, problem.n_roles)

    def rebind(self, problem):
        """Go on with a problem of the same sentences."""
        self.problem, self.words = problem, problem.words

    def tagger(self, n_features, n_labels):
        """A fresh tagger."""
        return BagTagger(n_features, n_labels, strategy=self.strategy, average=self.average, seed=self.seed)

    cdef int process_new(self, Py_ssize_t i) except -1 nogil:
        """The symbols of sentence i, then the roles of the words around its relations."""
        cdef int64_t before = self.symbols.n_visits + self.roles.n_visits
        self.symbols.sentence(self.words, i, self.C[i], &self.labels[0])
        with gil:
            self.learn_roles(i)
        self.n_argmax += self.symbols.n_visits + self.roles.n_visits - before
        self.n_visits += 1
        return 0

    cdef int learn_roles(self, Py_ssize_t i) except -1:
        taken = [self.labels[t] for t in range(self.words.offsets[i], self.words.offsets[i + 1])]
        try:
            words = self.problem.role_words(i, taken, self.encoder)
        finally:  # Ctrl-C leaves features that have a number and, with this, a weight
            self.roles.resize(len(self.encoder), self.roles.K)
        if words is not None:
            self.roles.learn(words, self.C[i])
        return 0

    # ---- what was learnt ------------------------------------------------------------------------

    @property
    def weights(self):
        """Array (n,): the weights of symbols, then those of roles, each by feature and label."""
        return np.concatenate([self.symbols.weights.ravel(), self.roles.weights.ravel()])

    def averaged(self):
        """Return the average of the weights over the words tried (the last weights if averaging is off)."""
        return np.concatenate([self.symbols.averaged.ravel(), self.roles.averaged.ravel()])

    def to_arrays(self):
        """Return what `resume` continues from as a dict of arrays."""
        names = AttributeVocabulary(list(self.encoder.index)).to_plain_arrays()
        arrays = {"seed": np.array([self.seed], dtype=np.uint64)}
        arrays.update({f"symbols.{name}": array for name, array in self.symbols.get_state().items()})
        arrays.update({f"roles.{name}": array for name, array in (names | self.roles.get_state()).items()})
        return arrays

    def resume(self, arrays):
        """Restore the arrays returned by `to_arrays`, with bit-identical results.

        Raises ValueError if they are neither of this problem nor of one whose features and labels are the first here.
        """
        of_roles = under(arrays, "roles.")
        encoder = Encoder(AttributeVocabulary.from_arrays(of_roles, len(of_roles["weights"])).names)
        symbols = self.tagger(self.symbols.n_features, self.symbols.K)
        symbols.set_state(under(arrays, "symbols."))
        roles = self.tagger(len(encoder), self.roles.K)
        roles.set_state(of_roles)
        self.seed, self.encoder, self.symbols, self.roles = arrays["seed"][0], encoder, symbols, roles

    def get_state(self):
        """Return the state as a dict of arrays (see `set_state`)."""
        return self.to_arrays() | {"counters": np.array([self.n_argmax, self.n_visits], dtype=np.int64)}

    def set_state(self, state, *, adapt=False):
        """Restore the arrays returned by `get_state`; `adapt` makes no difference.

        Raises ValueError if they do not fit the problem; the state is unchanged.
        """
        self.resume(state)
        self.n_argmax, self.n_visits = state["counters"]
