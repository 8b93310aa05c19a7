"""
How do I put the best rows first?
=================================

Rankings, and rare rows found.

Rows of queries are ranked; rare rows are found by losses of the whole sample.

Run it: python examples/rank_queries.py [TRAIN TEST]; files in svmlight format with qid, without files on drawn rows.
"""

import sys

from structsvm.datasets import make_rankings
from structsvm.metrics import ranking_scores
from structsvm.structures.queries import read_queries
from structsvm.tasks import MultivariateClassifier, Ranker


def data():
    """Rows, grades, and the query of each row: to train, and to test on."""
    if len(sys.argv) == 3:
        (X, *train), (X_test, *test) = map(read_queries, sys.argv[1:])
        for part in (X, X_test):
            part.resize(part.shape[0], max(X.shape[1], X_test.shape[1]))
        return (X, *train), (X_test, *test)
    return (make_rankings(100, random_state=seed) for seed in range(2))


def main():
    (X, y, qid), (X_test, y_test, qid_test) = data()
    import matplotlib.pyplot as plt

    _, ax = plt.subplots(layout="constrained")
    for loss in ("ndcg", "pairs", "map"):
        ranker = Ranker(loss, random_state=0).fit(X, y, qid=qid)
        scores = ranking_scores(y_test, ranker.predict(X_test), qid=qid_test)
        print(f"{loss}: NDCG {scores.ndcg:.3f}, at 3 {scores.ndcg_at[3]:.3f}, MAP {scores.map:.3f}")
        ax.plot(list(scores.ndcg_at), list(scores.ndcg_at.values()), "o-", label=f"trained for {loss}")
    ax.set(xlabel="places that count", ylabel="NDCG")
    ax.legend()
    print(ranker.result_.certificate())
    for loss in ("f1", "prbep", "roc_area"):
        model = MultivariateClassifier(loss, random_state=0).fit(X, y >= 3)
        print(f"grades from 3 on, {loss}: {model.score(X_test, y_test >= 3):.3f}")


if __name__ == "__main__":
    main()
