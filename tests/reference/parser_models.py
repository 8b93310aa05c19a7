"""Dependency parsers for the runtime in C, for the tests that compare it with Python."""

from functools import cache

import numpy as np
import runtime_models

from structsvm.structures.dependencies import Word
from structsvm.tasks import ArcFeatures, DependencyParser

TAGS = ["DET", "NOUN", "VERB", "ADJ", "PROPN", "PUNCT"]
LABELS = ["det", "nsubj", "obj", "amod", "nmod:of", "root"]
# A parser's parameters, and whether training trees have crossing arcs.
MODELS = {
    "two stages": ({}, False),
    "two stages, crossing": ({}, True),
    "crossing in the second": ({"projective": "auto"}, "few"),
    "projective": ({"order": 1, "projective": True}, False),
    "of any shape": ({"order": 1, "projective": False}, True),
    "log loss": ({"loss": "log", "max_iter": 3}, False),
    "log loss of any shape": ({"loss": "log", "max_iter": 3, "projective": False, "subtypes": False}, True),
    "own templates": (
        {"features": ArcFeatures(
            arcs="h.form m.form dist\nh.upos m.upos b.upos\nh.upos-1 m.upos".replace("h.upos-1", "h-1.upos"),
            labels="m.form\nh.upos dir\nh.xpos m.feats dist", pairs="h.form m.label s.label dir\ng.upos h.upos m.upos",
            arc_bits=6, row_bits=4)},
        True,
    ),
}  # fmt: skip
# Compact models: of which model, and with how many bits.
COMPACT = {"two stages, 8 bits": ("two stages", 8), "two stages, 16 bits": ("two stages, crossing", 16)}
COMPACT |= {"projective, 32 bits": ("projective", 32), "own templates, 8 bits": ("own templates", 8)}
MODELS |= {name: MODELS[whole] for name, (whole, _) in COMPACT.items()}


def drawn_tree(rng, n, crossing):
    """Heads of a random tree with one root, whose arcs may cross."""
    root = int(rng.integers(1, n + 1))
    heads = [0] * n
    if crossing:
        order = [root, *(int(k) + 1 for k in rng.permutation(n) if k + 1 != root)]
        for place, word in enumerate(order[1:], start=1):
            heads[word - 1] = order[int(rng.integers(max(0, place - 3), place))]
        return heads

    def below(first, last, head):
        """Words first .. last, as children of `head` one next to the other and their own."""
        while first <= last:
            end = int(rng.integers(first, last + 1))
            word = int(rng.integers(first, end + 1))
            heads[word - 1] = head
            below(first, word - 1, word)
            below(word + 1, end, word)
            first = end + 1

    below(1, root - 1, root)
    below(root + 1, n, root)
    return heads


def sentences(n_sentences, crossing, seed=0):
    """Sentences of odd words, with all columns or few, and their trees."""
    rng = np.random.default_rng(seed)
    X, Y = [], []
    for i in range(n_sentences):
        n = int(rng.integers(1, 12))
        crosses = crossing is True or (crossing == "few" and i % 40 == 0)
        heads = drawn_tree(rng, n, crosses)
        tags = [TAGS[int(rng.integers(6))] for _ in range(n)]
        words = []
        for k, tag in enumerate(tags):
            form = runtime_models.ODD[1 + (7 * i + 3 * k) % (len(runtime_models.ODD) - 1)] if rng.random() < 0.3 else (
                f"{tag.lower()}{rng.integers(9)}"
            )  # fmt: skip
            feats = "Number=Sing" if rng.random() < 0.5 else "_"
            words.append(Word(form, lemma=form.lower() if k % 2 else "_", upos=tag, xpos=tag[:2], feats=feats))
        X.append(words)
        Y.append([
            (h, "root" if h == 0 else LABELS[(TAGS.index(tags[k]) + (h < k)) % 5]) for k, h in enumerate(heads)
        ])  # fmt: skip
    return X, Y


def fitted(name, n=160):
    """A parser of n sentences."""
    return fitted_to(name, n)


@cache
def fitted_to(name, n):
    if name in COMPACT:
        whole, bits = COMPACT[name]
        return fitted(whole, n).compact(bits=bits)
    params, crossing = MODELS[name]
    params = {"C": 0.1, "random_state": 0, "max_iter": 3, "projective": crossing is not True, **params}
    return DependencyParser(**params).fit(*sentences(n, crossing))


@cache
def new_sentences():
    """Sentences to parse: drawn ones, a long one, one word, none."""
    X = sentences(60, True, seed=1)[0]
    return [*X, [word for words in X[:12] for word in words], X[0][:1], []]


def columns(words):
    """Words as the runtime takes them."""
    return [{name: getattr(word, name) for name in ("form", "lemma", "upos", "xpos", "feats")} for word in words]


def export(name, folder, to="c"):
    fitted(name).export(folder, to)
