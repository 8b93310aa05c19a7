"""The other programs: pytorch-crf, torch-struct, and a scan of JAX, each with the calls that its documentation shows.

The losses are log losses, with gradients by all scores.
"""

from __future__ import annotations

import json
import os
import resource
import sys
from importlib.metadata import version

import numpy as np

from layers.timing import answer, labels, scores

MOST = 5e7  # numbers that torch-struct's scan multiplies for a chain
SHARE = 2  # torch-struct gets one part of so many of the machine's memory; a case that needs more is left out


PROGRAMS = {"pytorch-crf": ("pytorch-crf", "torch"), "torch-struct": ("torch-struct", "torch"), "scan": ("jax",)}


def main(name, argument):
    """Time a program, or print its version and those of what it needs."""
    if argument == "versions":
        print(json.dumps(", ".join(f"{needed} {version(needed)}" for needed in PROGRAMS[name])))
    else:
        answer(argument, {"pytorch-crf": pytorch_crf, "torch-struct": torch_struct, "scan": scan}[name])


def pytorch_crf(case, threads):
    if case["structure"] != "Chain" or case["action"] == "sample":
        return None
    import torch
    from torchcrf import CRF

    torch.set_num_threads(threads)
    emissions, transitions, start, end = (torch.tensor(part) for part in scores(case))
    emissions.requires_grad_()
    tags, mask = torch.tensor(labels(case)), torch.ones(emissions.shape[:2], dtype=torch.bool)
    crf = CRF(case["labels"], batch_first=True)
    crf.load_state_dict({"transitions": transitions, "start_transitions": start, "end_transitions": end})
    if case["action"] == "decode":
        return lambda: crf.decode(emissions, mask)

    def loss():
        (-crf(emissions, tags, mask)).backward()

    return loss


def torch_struct(case, threads):
    import torch
    import torch_struct as ts

    limit = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // SHARE
    resource.setrlimit(resource.RLIMIT_AS, (limit, resource.getrlimit(resource.RLIMIT_AS)[1]))
    torch.set_num_threads(threads)
    if case["structure"] == "Chain" and case["batch"] * case["size"] * case["labels"] ** 3 > MOST:
        return None
    if case["structure"] == "Alignment":  # needs genbmm, which is for a GPU
        return None
    parts = [torch.tensor(part, requires_grad=True) for part in scores(case)]
    kind, potentials = {
        "Chain": (ts.LinearChainCRF, chain_potentials),
        "Projective": (lambda arcs: ts.DependencyCRF(arcs, multiroot=False), tree_potentials),
        "Arborescence": (lambda arcs: ts.NonProjectiveDependencyCRF(arcs, multiroot=False), tree_potentials),
        "SemiMarkov": (ts.SemiMarkovCRF, segment_potentials),
        "Spans": (ts.TreeCRF, lambda spans: spans),
    }[case["structure"]]
    if case["action"] == "decode":
        return None if case["structure"] == "Arborescence" else lambda: kind(potentials(*parts)).argmax
    if case["action"] == "sample":
        return lambda: kind(potentials(*parts)).sample((case["samples"],))
    truth = torch.zeros_like(potentials(*parts)) if case["structure"] == "Arborescence" else None
    if truth is None:
        truth = kind(potentials(*parts)).argmax.detach()

    def loss():
        log_potentials = potentials(*parts)
        (kind(log_potentials).partition.sum() - (log_potentials * truth).sum()).backward()

    return loss


def chain_potentials(emissions, transitions, start, end):
    """Scores (B, T - 1, K, K), from column to row."""
    import torch

    pairs = transitions.t() + emissions[:, 1:, :, None]
    first, last, zeros = (emissions[:, 0] + start)[:, None, None], end[:, None], pairs.new_zeros(())
    steps = torch.arange(pairs.shape[1])[None, :, None, None]
    return pairs + torch.where(steps == 0, first, zeros) + torch.where(steps == len(steps[0]) - 1, last, zeros)


def tree_potentials(arcs):
    """Scores (B, n, n), roots on the diagonal."""
    import torch

    return torch.diagonal_scatter(arcs[:, 1:, 1:], arcs[:, 0, 1:], dim1=1, dim2=2)


def segment_potentials(segments, transitions):
    """Scores (B, T, L + 1, K, K) of segments, by length and by their own label and that of the one before."""
    import torch

    one = segments[:, :, :, :, None] + transitions.t()
    return torch.nn.functional.pad(one, (0, 0, 0, 0, 1, 0))


def scan(case, threads):
    if case["structure"] != "Chain" or case["action"] != "loss":
        return None
    import jax
    import jax.numpy as jnp

    def loss(parts, y):
        emissions, transitions, start, end = parts

        def step(alpha, row):
            return jax.nn.logsumexp(alpha[:, :, None] + transitions, axis=1) + row, None

        first = start + emissions[:, 0]
        alpha, _ = jax.lax.scan(step, first, emissions[:, 1:].swapaxes(0, 1))
        own = jnp.take_along_axis(emissions, y[:, :, None], axis=2).sum() + transitions[y[:, :-1], y[:, 1:]].sum()
        return jax.nn.logsumexp(alpha + end, axis=1).sum() - own - start[y[:, 0]].sum() - end[y[:, -1]].sum()

    parts, y = tuple(jnp.asarray(part) for part in scores(case)), jnp.asarray(labels(case).astype(np.int32))
    step = jax.jit(jax.value_and_grad(loss))
    return lambda: jax.block_until_ready(step(parts, y))


if __name__ == "__main__":
    main(*sys.argv[1:])
