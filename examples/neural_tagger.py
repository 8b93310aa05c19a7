"""
Does a structured layer on a network pay?
=========================================

A neural tagger with a structured head.

A small bidirectional recurrent network in JAX reads the words of addresses and scores their labels: by a softmax for
each word, and by a chain with learnt transitions, trained by the log loss, the hinge, and perturbed maxima. Then its
encoder is frozen, and `SequenceLabeler` trains the last layer alone, to a duality gap; its weights go back into the
layer.

Run it: python examples/neural_tagger.py

On more of them, for longer: python examples/neural_tagger.py 2000 10
"""

# sphinx_gallery_thumbnail_path = 'project/pictures/score-light.svg'

import sys
import time
from functools import partial
from zlib import crc32

import jax
import jax.numpy as jnp
import numpy as np

from structsvm.datasets import make_addresses
from structsvm.layers import Chain, hinge, log_loss, perturbed
from structsvm.layers.jax import differentiable
from structsvm.tasks import SequenceLabeler

WORDS, WIDTH, HIDDEN, BATCH = 4096, 32, 48, 16
HEADS = {
    "log_loss": differentiable(log_loss, Chain()),
    "hinge": differentiable(hinge, Chain()),
    "perturbed": differentiable(perturbed, Chain(), n_samples=4),
}


def encoded(X, y, labels):
    """Numbers of words and of their endings, (n, T, 2), labels (n, T), and lengths; -1 beyond them."""
    lengths = np.array([len(words) for words in X])
    ids, wanted = np.zeros((len(X), lengths.max(), 2), int), np.full((len(X), lengths.max()), -1)
    for i, (words, own) in enumerate(zip(X, y, strict=True)):
        ids[i, : len(words)] = [[crc32(part.encode()) % WORDS for part in (word, f"-{word[-2:]}")] for word in words]
        wanted[i, : len(words)] = [labels.index(label) for label in own]
    return ids, wanted, lengths


def initial(K, rng):
    """Random weights of the network, and no transitions."""
    shapes = {"words": (WORDS, WIDTH), "forth": (2 * WIDTH + HIDDEN, HIDDEN), "back": (2 * WIDTH + HIDDEN, HIDDEN)}
    shapes["out"] = (2 * HIDDEN, K)
    weights = {name: jnp.asarray(rng.normal(size=shape) / shape[0] ** 0.5, "f4") for name, shape in shapes.items()}
    return weights | {
        "words": weights["words"] * WORDS**0.5 / 4,
        "bias": jnp.zeros(K),
        "transitions": jnp.zeros((K, K)),
    }


def states(weights, ids, lengths):
    """States of both directions, (B, T, 2 HIDDEN)."""
    X = weights["words"][ids].reshape(*ids.shape[:2], -1)
    inside = (jnp.arange(ids.shape[1]) < lengths[:, None])[..., None]

    def run(W, reverse):
        def step(state, token):
            x, here = token
            state = jnp.where(here, jnp.tanh(jnp.concatenate([x, state], 1) @ W), state)
            return state, state

        tokens = X.swapaxes(0, 1), inside.swapaxes(0, 1)
        return jax.lax.scan(step, jnp.zeros((len(ids), HIDDEN)), tokens, reverse=reverse)[1].swapaxes(0, 1)

    return jnp.concatenate([run(weights["forth"], False), run(weights["back"], True)], axis=2)


def loss_of(head, weights, ids, y, lengths):
    emissions = states(weights, ids, lengths) @ weights["out"] + weights["bias"]
    if head != "softmax":
        return HEADS[head]((emissions, weights["transitions"]), y, lengths).mean()
    each = jnp.take_along_axis(jax.nn.log_softmax(emissions), jnp.maximum(y, 0)[..., None], 2)[..., 0]
    return -(each * (y >= 0)).sum() / len(y)


@partial(jax.jit, static_argnums=0)
def adam(head, t, weights, moments, *batch):
    """Return weights and moments after a step, by Adam."""
    gradients = jax.grad(partial(loss_of, head))(weights, *batch)
    first = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, moments[0], gradients)
    second = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g * g, moments[1], gradients)
    rate = 0.01 * jnp.sqrt(1 - 0.999**t) / (1 - 0.9**t)
    return jax.tree.map(lambda w, m, v: w - rate * m / (jnp.sqrt(v) + 1e-8), weights, first, second), (first, second)


def trained(head, data, K, n_epochs):
    """Weights after some epochs, and the seconds of the fastest one."""
    rng, seconds = np.random.default_rng(0), []
    weights = initial(K, rng)
    moments, t = (jax.tree.map(jnp.zeros_like, weights),) * 2, 0
    for _ in range(n_epochs):
        begin, order = time.perf_counter(), rng.permutation(len(data[0]))
        for rows in np.split(order[: len(order) // BATCH * BATCH], len(order) // BATCH):
            t += 1
            weights, moments = adam(head, t, weights, moments, *(array[rows] for array in data))
        jax.block_until_ready(weights)
        seconds.append(time.perf_counter() - begin)
    return weights, min(seconds)


def accuracy(y, found):
    return (found[y >= 0] == y[y >= 0]).mean()


def main():
    n, n_epochs = map(int, sys.argv[1:3]) if len(sys.argv) > 2 else (320, 3)
    X, y = make_addresses(n + 200, ambiguity=0.5, typos=0.1, random_state=0)
    labels = sorted({label for own in y for label in own})
    ids, wanted, lengths = encoded(X, y, labels)
    train, (ids, y, lengths) = (ids[200:], wanted[200:], lengths[200:]), (ids[:200], wanted[:200], lengths[:200])
    for head in ("softmax", *HEADS):
        weights, seconds = trained(head, train, len(labels), n_epochs)
        emissions = states(weights, ids, lengths) @ weights["out"] + weights["bias"]
        found = Chain().argmax(emissions, weights["transitions"], lengths=lengths)
        print(f"{head:9}: {accuracy(y, found):.3f} of the words right, {seconds:.2f} s an epoch")

    def frozen(ids, lengths):
        return [np.asarray(own[:k]) for own, k in zip(states(weights, ids, lengths), lengths, strict=True)]

    learnt = SequenceLabeler(loss="log", random_state=0)
    learnt.fit(frozen(train[0], train[2]), [own[own >= 0].tolist() for own in train[1]])
    emissions = states(weights, ids, lengths) @ learnt.emission_ + learnt.intercept_
    found = Chain().argmax(emissions, learnt.transition_, learnt.start_, learnt.end_, lengths=lengths)
    gap = learnt.result_.gap / learnt.result_.primal
    print(f"last layer trained anew: {accuracy(y, found):.3f}, within {100 * gap:.0f} % of the optimum")


if __name__ == "__main__":
    main()
