"""Headers of papers at the size of GROBID's training set: long sequences, bags of many columns, 80 million weights."""

from __future__ import annotations

from common.measure import run_module
from common.report import Table, notes, verdict

N_SEQUENCES, N_LABELS, MEAN_LENGTH = 2537, 42, 300
MINUTES_WANTED, GB_WANTED = 30.0, 6.0
COLUMNS = {
    "who": ("", ""),
    "tokens": ("tokens", ",d"),
    "attributes": ("attributes a token", ".1f"),
    "features": ("features", ",d"),
    "possible": ("possible weights, millions", ".1f"),
    "cpu": ("fit: CPU s", ".0f"),
    "peak": ("peak GB", ".2f"),
    "C": ("C", ".3g"),
    "accuracy": ("tokens right %", ".2f"),
    "model": ("model MB", ".1f"),
}


def run(options):
    """Yield the one table, again with each row."""
    n, rows = N_SEQUENCES // (60 if options.quick else 1), []
    for who, loss in (("as it comes", "auto"), ('loss="log"', "log")):
        if options.only not in who:
            continue
        rows.append({"who": who} | run_module("scale.heading", n, loss))
        yield table(rows, n, is_whole=not options.quick)


def table(rows, n, *, is_whole):
    text = f"""
    simulated: {n} sequences of {MEAN_LENGTH} tokens on average and {N_LABELS} labels, as GROBID trains its
    model of headers, whose weights did not fit into memory with Wapiti; a bag of words, their ends, pairs and triples
    for each token, read one sequence at a time; SequenceLabeler with its choice of C, in a process of its own

    peak: resident memory of the whole process; tokens right: of another tenth as many sequences
    """
    slowest, largest = max(row["cpu"] for row in rows) / 60.0, max(row["peak"] for row in rows)
    targets = [
        verdict("CPU minutes", f"{slowest:.1f} of {MINUTES_WANTED:.0f}", slowest < MINUTES_WANTED),
        verdict("memory", f"{largest:.2f} GB of {GB_WANTED:.0f}", largest < GB_WANTED),
    ]
    return Table("Headers of papers", COLUMNS, rows, notes(text) + targets * is_whole)
