"""Words per second in training, beside the floor of one sparse score per word; a stream of a million sentences."""

from __future__ import annotations

import numpy as np

from common.measure import Clock, peak, repeat
from common.report import Table, notes
from structsvm.datasets import make_ambig_house
from structsvm.oracles._ambiguous import decision_scores
from structsvm.tasks import SemanticParser
from structsvm.tasks.semantics._ospas import BagTagger
from structsvm.tasks.semantics.model import SemanticModel
from structsvm.tasks.semantics.problem import SemanticProblem
from structsvm.tasks.semantics.solver import make_ospas

N, QUICK_N = 20_000, 2_000
STREAM, QUICK_STREAM = 1_000_000, 20_000
PORTION = 10_000
POOL = 5  # portions that are drawn; the stream repeats them


def run(options):
    yield words_a_second(options)
    yield stream(options)


def words_a_second(options):
    n = QUICK_N if options.quick else N
    made = Table(
        f"Training on {n} sentences of the house, one pass",
        {
            "way": ("", ""),
            "level": ("level", ""),
            "cpu": ("CPU s", ".3f"),
            "rate": ("thousand words / s", ".0f"),
            "ratio": ("x floor", ".1f"),
        },
        notes=notes(
            """
            floor: the scores of all symbols for each word once, compiled, features given

            symbols alone: algorithm 24 (a word may be tried several times), features and bags given as arrays; whole:
            from text of sentences and of meanings to a trained parser, with roles; best of equal runs
            """
        ),
    )
    for level in (0, 1, 3):
        made.rows += of_level(level, n, options)
    return made


def of_level(level, n, options):
    house, parser = make_ambig_house(n, level, random_state=0), SemanticParser(method="ospas")
    times = 1 if options.quick else 3
    _, whole = repeat(lambda: parser.fit(house.sentences, house.bags), times)
    symbols = parser.model_.symbols
    rows_of_words, _ = symbols.encoder.encode(([[word] for word in s.split()] for s in house.sentences), grow=False)
    weights = symbols.weights.ravel()
    _, floor = repeat(lambda: decision_scores(rows_of_words, len(symbols.labels), weights), options.repeat)
    rows = {"floor": floor.cpu}
    for strategy in ("order_free", "random", "left_right"):
        rows[f"symbols alone, {strategy}"] = min(symbols_alone(strategy, house) for _ in range(times))
    rows["whole"] = whole.cpu
    return [
        {"way": way, "level": str(level), "cpu": cpu, "rate": 1e-3 * len(rows_of_words) / cpu, "ratio": cpu / floor.cpu}
        for way, cpu in rows.items()
    ]


def symbols_alone(strategy, house):
    """CPU seconds of `BagTagger.learn`."""
    parser = SemanticParser(method="ospas")
    model = SemanticModel(parser)
    read = model.read(house.sentences, house.bags)
    problem = SemanticProblem(model, read.sentences, read.bags)
    tagger = BagTagger(problem.words.rows.n_features, problem.n_symbols, strategy=strategy)
    with Clock() as clock:
        tagger.learn(problem.words, make_ospas(parser).C)
    return clock.cpu


def stream(options):
    total = QUICK_STREAM if options.quick else STREAM
    made = Table(
        "A stream of sentences of the house, level 1, by partial_fit",
        {
            "n": ("sentences", ",.0f"),
            "cpu": ("CPU s", ".2f"),
            "each": ("microseconds a sentence, since the row before", ".1f"),
            "memory": ("peak memory, MB", ".0f"),
        },
        notes=notes(
            f"""
            portions of {PORTION}, without the time that simulating them takes; {POOL} portions are drawn and come
            again and again
            """
        ),
    )
    pool = [make_ambig_house(PORTION, 1, random_state=seed) for seed in range(POOL)]
    parser, cpu, done, before = SemanticParser(method="ospas"), 0.0, 0, (0, 0.0)
    marks = {10_000, 20_000, 50_000, 100_000, 200_000, 500_000, 1_000_000}
    while done < total:
        house = pool[done // PORTION % POOL]
        with Clock() as clock:
            parser.partial_fit(house.sentences, house.bags)
        cpu += clock.cpu
        done += PORTION
        if done in marks:
            each = 1e6 * (cpu - before[1]) / (done - before[0])
            made.rows.append({"n": done, "cpu": cpu, "each": each, "memory": peak()})
            before = done, cpu
    rates = np.array([row["each"] for row in made.rows])
    made.notes.insert(0, f"slowest row / fastest row: {rates.max() / rates.min():.2f}")
    return made
