"""spaCy's parser (transitions over a convolutional network), trained on gold tags."""

from __future__ import annotations

import random

try:
    import spacy
    from spacy.training.batchers import minibatch_by_words
    from thinc.api import compounding
except ImportError:
    spacy = None

# The network of spaCy's template for training on a CPU, which also sees the tags.
EMBED = {
    "@architectures": "spacy.MultiHashEmbed.v2",
    "width": 96,
    "attrs": ["NORM", "PREFIX", "SUFFIX", "SHAPE", "POS", "TAG"],
    "rows": [5000, 1000, 2500, 2500, 50, 100],
    "include_static_vectors": False,
}
ENCODE = {
    "@architectures": "spacy.MaxoutWindowEncoder.v2",
    "width": 96,
    "depth": 4,
    "window_size": 1,
    "maxout_pieces": 3,
}
PARSER = {
    "@architectures": "spacy.TransitionBasedParser.v2",
    "state_type": "parser",
    "extra_state_tokens": False,
    "hidden_width": 128,
    "maxout_pieces": 3,
    "use_upper": True,
    "nO": None,
    "tok2vec": {"@architectures": "spacy.Tok2Vec.v2", "embed": EMBED, "encode": ENCODE},
}
BATCH_WORDS = 1000


def doc_of(nlp, tree, *, arcs):
    """The words and tags of a tree, one sentence; with its arcs or without."""
    words = tree.words
    more = {"sent_starts": [True] + [False] * (len(words) - 1)}
    if arcs:
        heads = [head - 1 if head else m for m, (head, _) in enumerate(tree.arcs)]
        more = {"heads": heads, "deps": ["ROOT" if label == "root" else label for _, label in tree.arcs]}
    return spacy.tokens.Doc(
        nlp.vocab,
        words=[w.form for w in words],
        pos=[w.upos for w in words],
        tags=[w.xpos or w.upos for w in words],
        **more,
    )


def fit(trees, passes):
    """Train a parser; returns what parses trees."""
    spacy.util.fix_random_seed(0)
    nlp = spacy.blank("xx")
    nlp.add_pipe("parser", config={"model": PARSER})
    examples = [spacy.training.Example(doc_of(nlp, tree, arcs=False), doc_of(nlp, tree, arcs=True)) for tree in trees]
    optimizer = nlp.initialize(lambda: examples)
    order, sizes = random.Random(0), compounding(100, BATCH_WORDS, 1.001)
    for _ in range(passes):
        order.shuffle(examples)
        for batch in minibatch_by_words(examples, size=sizes):
            nlp.update(batch, sgd=optimizer, drop=0.1)

    def predict(trees):
        docs = nlp.pipe([doc_of(nlp, tree, arcs=False) for tree in trees])
        return [
            [(0, "root") if word.head.i == word.i else (word.head.i + 1, word.dep_) for word in doc] for doc in docs
        ]

    return predict
