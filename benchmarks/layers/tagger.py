"""Heads of a recurrent network in JAX on Spanish entities: the softmax of each word, and chains by three losses.

The network and its training are those of `examples/neural_tagger.py`.
"""

from __future__ import annotations

import sys
from importlib.util import find_spec, module_from_spec, spec_from_file_location

import numpy as np

from common.measure import BENCHMARKS
from common.report import Table, notes, verdict
from structsvm.datasets import fetch_conll2002
from structsvm.layers import Chain
from structsvm.metrics import chunk_scores

LONGEST, WORDS, EPOCHS, MOST = 50, 1 << 15, 6, 1.2
COLUMNS = {
    "head": ("head", ""),
    "f1": ("F1 %", ".2f"),
    "best": ("words right %", ".2f"),
    "seconds": ("seconds per epoch", ".2f"),
    "times": ("times softmax", ".2f"),
}
NOTES = """
CoNLL-2002 Spanish entities: sentences of up to {LONGEST} words of esp.train, all of esp.testb; {EPOCHS} epochs of
batches of 16 by Adam with one rate, nothing chosen; words and endings by {WORDS} hashes, without pretrained vectors

each head decodes by what it has learnt: softmax, the best label of each word; the others, the best labelling

seconds per epoch: wall, of the fastest one, the network and the head together, without compilation; all processors
"""


def run(options):
    """Yield the table, a head after the other."""
    if find_spec("jax") is None:
        print("  JAX is not installed", file=sys.stderr)
        return
    tagger = example("neural_tagger")
    tagger.WORDS = WORDS
    data, n = fetch_conll2002(), 60 if options.quick else None
    labels = sorted({label for own in data.y_train for label in own})
    short = [i for i, words in enumerate(data.X_train) if len(words) <= LONGEST][:n]
    train = tagger.encoded([words_of(data.X_train[i]) for i in short], [data.y_train[i] for i in short], labels)
    y = data.y_test[:n]
    ids, wanted, lengths = tagger.encoded(list(map(words_of, data.X_test[:n])), y, labels)
    title = f"heads of a network: {len(short)} sentences of training, {len(y)} of test"
    table = Table(title, COLUMNS, notes=notes(NOTES.format(LONGEST=LONGEST, EPOCHS=EPOCHS, WORDS=WORDS)))
    for head in ("softmax", *tagger.HEADS):
        print(f"  {head}", file=sys.stderr, flush=True)
        weights, seconds = tagger.trained(head, train, len(labels), 1 if options.quick else EPOCHS)
        emissions = np.asarray(tagger.states(weights, ids, lengths) @ weights["out"] + weights["bias"])
        found = Chain().argmax(emissions, np.asarray(weights["transitions"]), lengths=lengths)
        tags = [[labels[k] for k in own[:length]] for own, length in zip(found, lengths, strict=True)]
        first = table.rows[0]["seconds"] if table.rows else seconds
        table.rows.append(
            {
                "head": head,
                "f1": 100 * chunk_scores(y, tags).f1,
                "best": 100 * tagger.accuracy(wanted, found),
                "seconds": seconds,
                "times": seconds / first,
            }
        )
        yield table
    times = next(row["times"] for row in table.rows if row["head"] == "log_loss")
    what = f"an epoch with the log loss of a chain takes at most {MOST} times that of softmax"
    table.notes.append(verdict(what, f"{times:.2f}", times <= MOST))
    yield table


def example(name):
    """A module of the examples."""
    spec = spec_from_file_location(name, BENCHMARKS.parent / "examples" / f"{name}.py")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def words_of(sentence):
    return [word for word, *_ in sentence]
