"""
Do decisions lose less if the loss knows them?
==============================================

Shortest paths by predicted costs: two stages, SPO+, and perturbed maxima.

Costs of the 40 arcs of a 5 x 5 grid depend on five numbers, by a polynomial and with noise; a linear model predicts
them, and the path from corner to corner that its predictions make the shortest is taken. The model learns by least
squares on costs, as if there were no paths, or by losses of the path: `spo_plus` and `perturbed`, with a solver of our
own as a layer. The regret is what paths cost more than the best ones, over the cost of these.

The data are those of Elmachtoub and Grigas (2022), section 6.1, as PyEPO draws them.

Run it: python examples/shortest_paths.py

With more draws of the data, and other degrees of the polynomial: python examples/shortest_paths.py 10 1 2 4 6
"""

# sphinx_gallery_thumbnail_path = 'project/pictures/own-structure-light.svg'

import sys

import numpy as np

from structsvm.layers import Solver, perturbed, regret, spo_plus

SIDE, NUMBERS, NOISE = 5, 5, 0.5
ARCS = SIDE * (SIDE - 1)  # to the east, by rows; and as many to the south


def best_paths(scores):
    """The best path of each row of scores, by dynamic programming: 1 for its arcs."""
    n = len(scores)
    east, south = scores[:, :ARCS].reshape(n, SIDE, SIDE - 1), scores[:, ARCS:].reshape(n, SIDE - 1, SIDE)
    best, turns = np.full((n, SIDE, SIDE), -np.inf), np.zeros((n, SIDE, SIDE), bool)
    best[:, 0, 0] = 0
    for row, column in np.ndindex(SIDE, SIDE):
        if column:
            best[:, row, column] = best[:, row, column - 1] + east[:, row, column - 1]
        if row:
            from_north = best[:, row - 1, column] + south[:, row - 1, column]
            turns[:, row, column] = from_north > best[:, row, column]
            best[:, row, column] = np.maximum(best[:, row, column], from_north)
    arcs, entries = np.zeros_like(scores), np.arange(n)
    row, column = np.full(n, SIDE - 1), np.full(n, SIDE - 1)
    for _ in range(2 * SIDE - 2):
        south_of = turns[entries, row, column]
        row, column = row - south_of, column - ~south_of
        arcs[entries, np.where(south_of, ARCS + row * SIDE + column, row * (SIDE - 1) + column)] = 1
    return arcs


def drawn(n, degree, seed):
    """Numbers (n, 5) with a column of ones, and costs of arcs (n, 40)."""
    rng = np.random.RandomState(seed)
    B, X = rng.binomial(1, 0.5, (2 * ARCS, NUMBERS)), rng.normal(size=(n, NUMBERS))
    costs = ((X @ B.T / np.sqrt(NUMBERS) + 3) ** degree + 1) / 3.5**degree
    return np.column_stack([X, np.ones(n)]), costs * rng.uniform(1 - NOISE, 1 + NOISE, costs.shape)


def trained(X, costs, loss_of, seed, epochs=20, step=0.01, size=32):
    """Weights of the linear model, from none, by Adam."""
    rng, W = np.random.default_rng(seed), np.zeros((X.shape[1], costs.shape[1]))
    mean, square, t = np.zeros_like(W), np.zeros_like(W), 0
    for _ in range(epochs):
        for rows in np.array_split(rng.permutation(len(X)), len(X) // size):
            t += 1
            gradient = -X[rows].T @ loss_of(-X[rows] @ W, rows, t) / len(rows)
            mean, square = 0.9 * mean + 0.1 * gradient, 0.999 * square + 0.001 * gradient**2
            W -= step * (mean / (1 - 0.9**t)) / (np.sqrt(square / (1 - 0.999**t)) + 1e-8)
    return W


def regrets(degree, seed, n=1000):
    """The regret of each way to learn, on as many examples that none has seen."""
    X, costs = drawn(2 * n, degree, seed)
    X_test, test, X, costs = X[n:], costs[n:], X[:n], costs[:n]
    path = Solver(best_paths, batched=True)
    best = path.argmax(-costs)  # scores are costs with the other sign

    def of_paths(scores, rows, t):
        return spo_plus(path, (scores,), (-costs[rows],), known=best[rows])[1][0]

    def of_noise(scores, rows, t):
        return perturbed(path, (scores,), best[rows], n_samples=1, seed=t)[1][0]

    models = {
        "least squares": np.linalg.lstsq(X, costs, rcond=None)[0],
        "spo_plus": trained(X, costs, of_paths, seed),
        "perturbed": trained(X, costs, of_noise, seed),
    }
    least = (path.argmax(-test) * test).sum()
    return {name: regret(path, (-X_test @ W,), (-test,)).sum() / least for name, W in models.items()}


draws, *degrees = [int(number) for number in sys.argv[1:]] or (2, 1, 6)
for degree in degrees or (1, 6):
    found = [regrets(degree, seed) for seed in range(draws)]
    means = {name: np.mean([one[name] for one in found]) for name in found[0]}
    print(f"degree {degree}: regret of " + ", ".join(f"{name} {100 * mean:.1f} %" for name, mean in means.items()))
