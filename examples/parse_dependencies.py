"""
How do I find the head of each word?
====================================

Dependency trees.

Learn to parse, and draw a tree.

Run it: python examples/parse_dependencies.py [TRAIN.conllu TEST.conllu]; without files on simulated trees.
"""

import sys

from structsvm.datasets import make_dependency_trees
from structsvm.metrics import dependency_scores
from structsvm.plotting import DependencyDisplay
from structsvm.structures.dependencies import read_conllu
from structsvm.tasks import DependencyParser


def trees():
    if len(sys.argv) == 3:
        return (read_conllu(path) for path in sys.argv[1:])
    return (make_dependency_trees(300, crossing=0.05, english=True, random_state=seed) for seed in range(2))


def main():
    train, test = trees()
    for projective in (True, False):
        parser = DependencyParser(C=0.05, projective=projective, random_state=0).fit(train)
        scores = dependency_scores(test, parser.predict(test))
        print(f"projective={projective}: UAS {100 * scores.uas:.2f} %, LAS {100 * scores.las:.2f} %")
    print(parser.result_.certificate())
    for arcs, score in parser.predict_kbest(test[:1], 2)[0]:
        print(f"{score:.3f}\n{test[0].with_arcs(arcs).pretty()}")
    DependencyDisplay.from_estimator(parser, next(tree for tree in test if 8 <= len(tree) <= 12))


if __name__ == "__main__":
    main()
