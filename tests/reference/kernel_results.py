"""Results of the kernels on small data, to compare instruction sets: run as a script, it writes an npz."""

import sys

import numpy as np

from structsvm import instruction_set
from structsvm.features.tokens import Tokens
from structsvm.kernel._kernels import Kernel, Rows
from structsvm.linear._gradient_descent import GradientDescent
from structsvm.oracles.cky import CKYOracle
from structsvm.oracles.greedy import GreedyOracle
from structsvm.oracles.smith_waterman import SmithWatermanOracle
from structsvm.oracles.viterbi import ViterbiOracle
from structsvm.structures.alignments import Strings
from structsvm.structures.grammar import Grammar

# The results that differ by rounding: those that multiply, which the sets do with and without an instruction that
# rounds a product and a sum together, or that sum more numbers in a vector.
ROUNDED = ("values", "kernel", "descent")


def tokens(rng, lengths, n_features, ones):
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    rows = [np.sort(rng.choice(n_features, 7, replace=False)) for _ in range(offsets[-1])]
    values = None if ones else rng.normal(size=7 * len(rows)).astype(np.float32)
    return Tokens(offsets, 7 * np.arange(len(rows) + 1), np.concatenate(rows).astype(np.int32), values, n_features)


def chains(results):
    for order, K in ((1, 5), (1, 29), (2, 9)):
        for name in ("ones", "values"):
            rng = np.random.default_rng(K)
            X = tokens(rng, [1, 2, 40, 23], 50, name == "ones")
            y = rng.integers(0, K, X.n_tokens)
            for rescaling, penalty in (("margin", "linear"), ("slack", "quadratic")):
                oracle = ViterbiOracle(K, 50, order=order, end=True)
                w = rng.normal(size=oracle.n_features).reshape(-1, oracle.stride).astype(np.float32)
                w[:, K:] = 0.0
                problem = oracle.bind(X, y, rescaling=rescaling, penalty=penalty)
                key = f"{name}: chain of order {order}, {K} labels, {rescaling}"
                results[f"{key}, scores"] = np.concatenate([problem.separate(i, w.ravel())[:1] for i in range(len(X))])
                results[f"{key}, labels"] = np.concatenate([problem.most_violated(i, w.ravel()) for i in range(len(X))])
            decoder = oracle.chain(X)
            results[f"{key}, k best"] = decoder.kbest(w.ravel(), 2, 9)[1]
            results[f"{key}, margins"] = decoder.max_marginals(w.ravel(), 2)
            oracle = GreedyOracle(K, 50, order=order)
            w = rng.normal(size=oracle.n_features).reshape(-1, oracle.stride).astype(np.float32)
            w[:, K:] = 0.0
            results[f"{name}: greedy, {K} labels"] = oracle.chain(X).decision_scores(w.ravel())


def alignments(results):
    rng = np.random.default_rng(0)
    for mode in ("global", "semi_global", "local"):
        oracle = SmithWatermanOracle(4, mode=mode)
        w = rng.normal(size=oracle.n_features)
        strings = Strings.of([rng.integers(0, 4, n) for n in (130, 171)])
        found = oracle.aligner(strings, [[0, 1]]).align(w, 0, 1)
        results[f"alignment, {mode}"] = np.concatenate([found[2], [*found[:2], found[3]]])


def trees(results):
    rng = np.random.default_rng(0)
    rules = "\n".join(f"N{k % 9} -> N{k // 9 % 9} N{k // 81}" for k in rng.permutation(9**3)[:200])
    oracle = CKYOracle(Grammar(rules + "\n" + "\n".join(f"N{k} -> 'w{k}'" for k in range(9)), "N0"))
    tree, score = oracle.parse([f"w{k}" for k in rng.integers(0, 9, 25)], rng.normal(size=oracle.n_features))
    results["tree"] = np.array([score, *map(ord, str(tree))])


def kernels(results):
    rng = np.random.default_rng(0)
    for dtype in (np.float32, np.float64):
        for d in (3, 64, 200):
            rows = Rows(rng.normal(size=(45, d)).astype(dtype) / np.sqrt(d))
            for name in ("linear", "rbf", "poly"):
                results[f"kernel {name}, {d} {dtype.__name__}"] = Kernel(name).block(rows, range(45), rows, range(45))


def descents(results):
    rng = np.random.default_rng(0)
    for dtype in (np.float32, np.float64):
        rows = Rows(rng.normal(size=(60, 37)).astype(dtype) / 6)
        state = GradientDescent(rows, rng.integers(0, 3, 60), 3, np.ones(60), ridge=1e-2, t0=100.0, average=True)
        state.run(np.tile(np.arange(60), 3))
        results[f"descent, {dtype.__name__}"] = state.weights()
        results[f"descent, {dtype.__name__}, averaged"] = state.weights(True)


def main(path):
    results = {}
    for fill in (chains, alignments, trees, kernels, descents):
        fill(results)
    np.savez(path, **results)
    print(instruction_set())


if __name__ == "__main__":
    main(sys.argv[1])
