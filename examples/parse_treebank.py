"""
How do I get the tree of a sentence?
====================================

A grammar learnt from trees.

With a large margin, and then parsed with.

Run it: python examples/parse_treebank.py [TRAIN.mrg TEST.mrg]; without files of bracketed trees on simulated ones.
"""

import sys

from structsvm.datasets import make_treebank
from structsvm.metrics import bracket_scores
from structsvm.plotting import TreeDisplay
from structsvm.structures.trees import clean_tree, read_trees
from structsvm.tasks import GrammarParser, SpanFeatures, TreebankGrammar


def trees():
    if len(sys.argv) == 3:
        return ([clean_tree(tree) for tree in read_trees(path)] for path in sys.argv[1:])
    return (make_treebank(n, english=True, random_state=seed) for seed, n in enumerate((300, 100)))


def main():
    train, test = trees()
    sentences = [tree.tokens() for tree in test]  # (word, tag) pairs; the grammar's terminals are the tags
    parsers = {
        "relative frequencies": GrammarParser.from_counts(train),
        "large margin, exact rules": GrammarParser(
            C=0.3, grammar=TreebankGrammar(h=None), features=SpanFeatures(templates=()), random_state=0
        ).fit(train),
        "h=1, with span features": GrammarParser(C=0.1, random_state=0).fit(train),
    }
    for name, parser in parsers.items():
        scores = bracket_scores(test, parser.predict(sentences))
        print(f"{name}: F1 {100 * scores.f1:.2f} %, complete trees {100 * scores.accuracy:.1f} %")
    print(parser.result_.certificate())
    for tree, score in parser.predict_kbest(sentences[:1], 2)[0]:
        print(f"{score:.3f}\n{tree.pretty()}")
    TreeDisplay.from_estimator(parser, test[0])


if __name__ == "__main__":
    main()
