"""Training: the objective and its cuts, the gap, and labels that are not known."""

import warnings
from typing import Any

import numpy as np

import structsvm
from pictures.address import WORDS, data
from pictures.ink import Ink, axes, picture
from structsvm.datasets import make_addresses
from structsvm.tasks import AmbiguousClassifier, SequenceLabeler


class Signs(structsvm.Oracle):
    """Two classes by the sign of one number: one weight, so that the objective can be drawn."""

    n_features = 1

    def joint_feature(self, x: float, y: int) -> Any:
        return np.array([x * y / 2])

    def loss(self, y_true: int, y: int) -> float:
        return float(y != y_true)

    def argmax(self, x: float, w: Any, y_true: int | None = None, rescaling: str | None = None) -> int:
        return max((1, -1), key=lambda y: w[0] * x * y / 2 + (y_true is not None and y != y_true))


def signs() -> tuple[Any, Any]:
    """Numbers whose sign says the class, mostly."""
    rng = np.random.default_rng(3)
    y = rng.choice([-1, 1], 40)
    return y * 0.8 + rng.normal(size=40), y


@picture
def cuts(ink: Ink) -> None:
    """The objective of one weight, and the bounds of the first rounds of cutting planes."""
    X, y = signs()
    w = np.linspace(-0.6, 3.2, 300)
    losses = np.maximum(0.0, 1.0 - np.outer(w, X * y))
    objective = w**2 / 2 + 0.2 * losses.sum(axis=1)
    panels = axes(height=2.7, columns=3)
    bag: list[Any] = []
    weight = 0.0
    for rounds, ax in enumerate(panels, start=1):
        violated = weight * X * y < 1.0
        bag.append(w**2 / 2 + 0.2 * (violated.sum() - w * (X * y)[violated].sum()))
        bound = np.max([*bag, w**2 / 2], axis=0)
        for cut in bag:
            ax.plot(w, cut, color=ink.faint, linewidth=0.9)
        ax.plot(w, objective, color=ink.blue, linewidth=2.4)
        ax.plot(w, bound, color=ink.orange, linewidth=1.6)
        model = structsvm.StructuredSVM(
            Signs(), structsvm.CuttingPlane(C=0.2, form="one_slack", max_iter=rounds, tol=1e-9, random_state=0)
        )
        weight = fitted(model, X, y)
        low = bound.min()
        ax.plot([w[bound.argmin()]], [low], "o", color=ink.orange)
        ax.set(title=f"{rounds} cut" + "s" * (rounds > 1), ylim=(0, 10), xlabel="weight")
        ax.set_yticks([])
    panels[0].set_ylabel("objective")


def fitted(model: Any, X: Any, y: Any) -> float:
    """The weight after some rounds, which are too few on purpose."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", structsvm.ConvergenceWarning)
        return float(model.fit(list(X), list(y)).coef_[0])


@picture
def gap(ink: Ink) -> None:
    """Primal and dual of a real run, call by call of the oracle."""
    X, y = data(400)
    solver = structsvm.LaRank(C=0.1, tol=0.001, max_iter=60, random_state=0)
    result = SequenceLabeler(solver=solver).fit(X[:150], y[:150]).result_
    ax = axes(height=3.0)
    passes = result.history["n_iter"]
    known = np.isfinite(result.history["primal"])
    ax.fill_between(passes[known], result.history["dual"][known], result.history["primal"][known], color=ink.ground)
    ax.plot(passes[known], result.history["primal"][known], "o-", color=ink.blue, markersize=4)
    ax.plot(passes[known], result.history["dual"][known], "o-", color=ink.orange, markersize=4)
    middle = float(result.primal)
    ax.text(passes[known][0], result.history["primal"][known][0], "  primal: what the weights cost", color=ink.blue)
    ax.text(
        passes[known][0], result.history["dual"][known][0], "  dual: no weights cost less", color=ink.orange, va="top"
    )
    ax.annotate("the gap closes", (passes[known][-1], middle), xytext=(-10, 30), textcoords="offset points", ha="right",
                arrowprops={"arrowstyle": "-", "color": ink.faint})  # fmt: skip
    ax.set(xlabel="passes over the data", ylabel="objective")


@picture
def partial(ink: Ink) -> None:
    """Accuracy when some labels are not known: completed, beside guessed as 'other'."""
    X, y = make_addresses(500, random_state=0)
    X_test, y_test = make_addresses(300, random_state=1)
    rng = np.random.default_rng(0)
    shares = [0.0, 0.1, 0.2, 0.3, 0.45, 0.6, 0.75, 0.85]
    completed, alone = [], []
    for share in shares:
        hidden = [[None if rng.random() < share else label for label in labels] for labels in y]
        completed.append(labeler_score(X, hidden, X_test, y_test))
        kept = [(words, labels) for words, labels in zip(X, hidden, strict=True) if None not in labels]
        alone.append(labeler_score(*map(list, zip(*kept, strict=True)), X_test, y_test) if len(kept) > 4 else np.nan)
    ax = axes(height=3.0)
    percent = 100 * np.array(shares)
    ax.plot(percent, 100 * np.array(completed), "o-", color=ink.blue)
    ax.plot(percent, 100 * np.array(alone), "s--", color=ink.orange)
    ax.text(60, 100 * completed[5] + 0.6, "unknown labels completed", color=ink.blue, ha="center")
    last = max(k for k in range(len(shares)) if np.isfinite(alone[k]))
    ax.text(100 * shares[last] + 2, 100 * alone[last], "only whole addresses", color=ink.orange, va="center")
    ax.set(xlabel="labels that are not known, %", ylabel="right on new addresses, %")


def labeler_score(X: Any, y: Any, X_test: Any, y_test: Any) -> float:
    """Share of right tokens on test data."""
    return float(SequenceLabeler(C=0.1, loss="hamming", random_state=0).fit(X, y).score(X_test, y_test))


@picture
def bags(ink: Ink) -> None:
    """Points with two candidates each, and the classes learnt from them."""
    rng = np.random.default_rng(0)
    centres = np.array([[0.0, 1.6], [-1.5, -0.8], [1.5, -0.8]])
    truth = rng.integers(3, size=90)
    X = centres[truth] + rng.normal(scale=0.7, size=(90, 2))
    other = (truth + rng.integers(1, 3, size=90)) % 3
    model = AmbiguousClassifier(C=1.0, random_state=0).fit(
        X, [{int(a), int(b)} for a, b in zip(truth, other, strict=True)]
    )
    grid = np.stack(np.meshgrid(np.linspace(-3.4, 3.4, 80), np.linspace(-3, 3.6, 80)), axis=-1)
    found = np.asarray(model.predict(grid.reshape(-1, 2))).reshape(80, 80)
    colors = [ink.blue, ink.orange, ink.green]
    left, right = axes(height=3.3, columns=2)
    for ax in (left, right):
        ax.set(xlim=(-3.4, 3.4), ylim=(-3, 3.6), aspect="equal")
        ax.set_xticks([])
        ax.set_yticks([])
    for point, pair in zip(X, zip(truth, other, strict=True), strict=True):
        halves(left, point, [colors[k] for k in sorted(pair)])
    right.contourf(grid[..., 0], grid[..., 1], found, levels=[-0.5, 0.5, 1.5, 2.5], colors=colors, alpha=0.25)
    right.scatter(*X.T, s=22, color=[colors[k] for k in truth])
    share = float((np.asarray(model.predict(X)) == truth).mean())
    left.set_title("given: two candidates per point", fontsize=10.5)
    right.set_title(f"learnt: {share:.0%} of the points right", fontsize=10.5)


def halves(ax: Any, point: Any, colors: Any) -> None:
    """A point in two colours."""
    ax.plot(
        *point, "o", fillstyle="left", color=colors[0], markerfacecoloralt=colors[1], markeredgewidth=0, markersize=8
    )


@picture
def probabilities(ink: Ink) -> None:
    """Marginal probabilities of the labels of an address."""
    X, y = make_addresses(400, ambiguity=0.3, random_state=0)
    words = list(WORDS)
    model = SequenceLabeler(loss="log", C=1.0, random_state=0).fit(X, y)
    table = np.asarray(model.predict_marginals([words])[0])
    ax = axes(height=3.0)
    likely = [k for k in np.argsort(-table.max(axis=0)) if table[:, k].max() > 0.04][:6]
    below = np.zeros(len(words))
    shades = [ink.blue, ink.orange, ink.green, "#CC79A7", "#E69F00", ink.faint]
    for k, color in zip(likely, shades, strict=False):
        ax.bar(range(len(words)), table[:, k], bottom=below, color=color, width=0.7, label=str(model.classes_[k]))
        for t, value in enumerate(table[:, k]):
            if value > 0.12:
                ax.text(t, below[t] + value / 2, f"{value:.0%}", ha="center", va="center", color="white", fontsize=9.5)
        below += table[:, k]
    ax.set_xticks(range(len(words)), words, fontsize=11)
    ax.set(ylabel="probability", ylim=(0, 1.02))
    ax.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
