"""Learn to rank the rows of queries, and to find rare rows by losses of the whole sample.

Run it: python examples/rank_queries.py [TRAIN TEST]; files in svmlight format with qid, without files on drawn rows.
"""

import sys

import numpy as np
from sklearn.datasets import load_svmlight_files

from structsvm.metrics import ranking_scores
from structsvm.tasks import MultivariateClassifier, Ranker


def drawn(seed, n_queries=100):
    """Rows, grades 0 to 4, and the query of each row."""
    rng = np.random.default_rng(seed)
    qid = np.repeat(np.arange(n_queries), rng.integers(4, 15, n_queries))
    X = rng.normal(size=(len(qid), 8))
    return X, np.clip(np.round(X[:, :3].sum(axis=1) + rng.normal(size=len(qid))), 0, 4), qid


def data():
    if len(sys.argv) == 3:
        X, y, qid, *test = load_svmlight_files(sys.argv[1:], query_id=True)
        return (X, y, qid), test
    return drawn(0), drawn(1)


def main():
    (X, y, qid), (X_test, y_test, qid_test) = data()
    for loss in ("ndcg", "pairs", "map"):
        ranker = Ranker(loss, random_state=0).fit(X, y, qid=qid)
        scores = ranking_scores(y_test, ranker.predict(X_test), qid=qid_test)
        print(f"{loss}: NDCG {scores.ndcg:.3f}, at 3 {scores.ndcg_at[3]:.3f}, MAP {scores.map:.3f}")
    print(ranker.result_.certificate())
    for loss in ("f1", "prbep", "roc_area"):
        model = MultivariateClassifier(loss, random_state=0).fit(X, y >= 3)
        print(f"grades from 3 on, {loss}: {model.score(X_test, y_test >= 3):.3f}")


if __name__ == "__main__":
    main()
