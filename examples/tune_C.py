"""
How large should C be, and how many passes?
===========================================

Choosing C, and how many passes.

GridSearchCV, and a learning curve by warm start.

Simulated lines of recipes. The search scores F1 of fields in three folds; the curve trains one model on, pass by pass,
and shows that test F1 settles long before the duality gap does.

Run it: python examples/tune_C.py
"""

from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

from structsvm.datasets import make_recipes
from structsvm.metrics import field_f1, field_f1_scorer
from structsvm.tasks import SequenceLabeler


def main():
    X, y = make_recipes(60, ambiguity=0.9, typos=0.2, random_state=0)
    X_test, y_test = make_recipes(300, ambiguity=0.9, typos=0.2, random_state=1)

    labeler = SequenceLabeler(loss="hamming", templates="rich", random_state=0)
    grid = {"C": [0.001, 0.01, 0.1, 1.0]}
    search = GridSearchCV(labeler, grid, scoring=field_f1_scorer, cv=3).fit(X, y)
    scores = search.cv_results_
    for C, mean, std in zip(grid["C"], scores["mean_test_score"], scores["std_test_score"], strict=True):
        print(f"C = {C:<5}  F1 {100.0 * mean:.2f} +- {100.0 * std:.2f}")
    print(f"best: {search.best_params_}, F1 on the test set {100.0 * search.score(X_test, y_test):.2f}\n")

    gaps, scores = [], []
    curve = clone(search.best_estimator_).set_params(max_iter=1, warm_start=True)
    for _ in range(10):
        curve.fit(X, y)
        gap, f1 = curve.result_.relative_gap, field_f1(y_test, curve.predict(X_test))
        print(f"{curve.n_iter_:3d} passes  gap {100.0 * gap:5.1f} %  test F1 {100.0 * f1:.2f}")
        gaps.append(100.0 * gap)
        scores.append(100.0 * f1)

    import matplotlib.pyplot as plt

    _, ax = plt.subplots(layout="constrained")
    ax.plot(range(1, 11), gaps, "o-", label="duality gap, %")
    ax.plot(range(1, 11), scores, "s-", label="F1 on new lines, %")
    ax.set(xlabel="passes")
    ax.legend()


if __name__ == "__main__":
    main()
