"""Rules of whole sequences: fields of addresses and references, and what states of automata cost."""

from __future__ import annotations

import sys
from collections import Counter
from itertools import groupby

import numpy as np

from common.measure import Clock
from common.report import Table, notes, verdict
from structsvm.datasets import fetch_addresses, fetch_citations
from structsvm.structures.languages import Automaton, at_most_once, in_order
from structsvm.tasks import SequenceLabeler
from structsvm.tasks.sequence.constraints import languages

COLUMNS = {
    "who": ("model", ""),
    "n": ("trained on", "d"),
    "part": ("test part", ""),
    "size": ("of", "d"),
    "broken": ("outputs that break a rule", "d"),
    "truth": ("true ones that do", "d"),
    "exact": ("all labels right %", ".2f"),
    "valid": ("of those whose truth keeps the rules %", ".2f"),
    "cpu": ("training, CPU s", ".1f"),
    "predict": ("predicting, CPU s", ".2f"),
}
COSTS = {
    "fields": ("fields that come once", "d"),
    "states": ("states", "d"),
    "pairs": ("pairs of label and state", "d"),
    "us": ("us a token", ".2f"),
}
WAYS = {
    "order": ("order", "d"),
    "labels": ("labels in BIO", "d"),
    "way": ("BIO as", ""),
    "us": ("us a token", ".2f"),
    "different": ("numbers that are not those of the masks, bit for bit", "d"),
}
REFERENCES = [
    at_most_once("citation-number", "author", "title", "editor", "container-title", "journal"),
    in_order("citation-number", "author", "title", "journal", "volume", "pages"),
    in_order("title", "container-title", "publisher"),
    in_order("author", "date"),
]
QUICK = 150
# Labels, tokens of a sequence, and sequences, whose scores are random.
LABELS, TOKENS, SEQUENCES = 12, 40, 200
# Types of labels in BIO by the order of the chain.
TYPES = {1: (4, 16), 2: (4,)}
SEPARATOR = "IntersectionSeparator"


def run(options):
    yield from records("Addresses", address_parts(), rules_of_addresses, options)
    data = fetch_citations()
    parts = {"test": (data.X_test, data.y_test)}
    yield from records("References", (data, parts), lambda _: REFERENCES, options)
    yield costs(options)
    yield masks_and_automata(options)


def address_parts():
    data, parts = fetch_addresses(), {}
    for part in ("labeled", "us50", "osm"):
        own = fetch_addresses(part=part)
        parts[part] = own.X_test, own.y_test
    return data, parts


def rules_of_addresses(labels):
    """Each field at most once, those of a street on either side of an intersection: as usaddress asks."""
    streets = [label for label in labels if "StreetName" in label]
    others = [label for label in labels if label not in streets]
    return [at_most_once(*others), at_most_once(*streets, since=SEPARATOR if SEPARATOR in labels else None)]


def records(title, data_and_parts, rules_of, options):
    """Models without rules, with rules in predictions alone, and in training."""
    data, parts = data_and_parts
    X, y = (part[:QUICK] if options.quick else part for part in (data.X_train, data.y_train))
    rules = rules_of(sorted({label for own in y for label in own}))
    keeps = [not breaks(own, rules) for own in y]
    X_valid, y_valid = ([one for one, is_kept in zip(part, keeps, strict=True) if is_kept] for part in (X, y))
    made = Table(title, COLUMNS, notes=notes(NOTES))
    usual, margin = {"templates": "records", "random_state": 0}, {"loss": "hamming"}
    for who, params, examples in (
        ("as it comes", {}, (X, y)),
        ("margin alone", margin, (X_valid, y_valid)),
        ("margin alone, rules in training", margin | {"constraints": rules}, (X_valid, y_valid)),
    ):
        print(f"  {title}: {who}", file=sys.stderr, flush=True)
        with Clock() as clock:
            model = SequenceLabeler(**usual, **params).fit(*examples)
        for own, later in ((who, None), (f"{who}, rules in predictions alone", rules)):
            if later is None or "constraints" not in params:
                for part, pair in parts.items():
                    made.rows.append({"who": own, "n": len(examples[0]), "part": part, "cpu": clock.cpu})
                    made.rows[-1] |= found_by(model, *pair, rules, later)
                yield made
    made.notes += verdicts(made.rows)
    yield made


def found_by(model, X, y, rules, later):
    """How many outputs break a rule, and how many are right."""
    with Clock() as clock:
        found = model.predict(X, constraints=later)
    right = np.array([list(a) == list(b) for a, b in zip(found, y, strict=True)])
    is_valid = np.array([not breaks(own, rules) for own in y])
    broken = sum(breaks(own, rules) for own in found)
    shares = {"exact": 100.0 * right.mean(), "valid": 100.0 * right[is_valid].mean()}
    return {"size": len(X), "broken": broken, "truth": int(sum(~is_valid)), "predict": clock.cpu, **shares}


def breaks(labels, rules):
    """Whether runs of labels break a rule: counted here, not by the automata."""
    for rule in rules:
        for part in parts_of(labels, rule.since):
            own = [label for label, _ in groupby(part) if label in rule.fields]
            places = [rule.fields.index(label) for label in own]
            if rule.name == "at_most_once" and max(Counter(own).values(), default=0) > 1:
                return True
            if rule.name == "in_order" and places != sorted(places):
                return True
    return False


def parts_of(labels, since):
    """The labels between those that separate parts; all without such a label."""
    parts = [[]]
    for label in labels:
        if label == since:
            parts.append([])
        else:
            parts[-1].append(label)
    return parts


def verdicts(rows):
    """No output under rules breaks one; and as many as without are right, where one that keeps the rules can be."""
    ruled = [row for row in rows if "rules" in row["who"]]
    without = {(row["who"].partition(",")[0], row["part"]): row["valid"] for row in rows if "rules" not in row["who"]}
    broken = sum(row["broken"] for row in ruled)
    gains = [row["valid"] - without[row["who"].partition(",")[0], row["part"]] for row in ruled]
    wanted = "of outputs whose truth keeps the rules, as many are right as without them"
    return [
        verdict("no output under rules breaks one", str(broken), broken == 0),
        verdict(wanted, f"{min(gains):+.2f} points at least", min(gains) >= 0.0),
    ]


def costs(options):
    """Time a token of the best labelling, by the number of fields that come once."""
    rng, n = np.random.default_rng(0), 10 if options.quick else SEQUENCES
    labels = [f"l{k:02d}" for k in range(LABELS)]
    X = [[f"w{k}" for k in rng.integers(0, 500, TOKENS)] for _ in range(n)]
    y = [[labels[k] for k in rng.integers(0, LABELS, TOKENS)] for _ in range(n)]
    model = SequenceLabeler(loss="hamming", C=0.1, random_state=0).fit(X, y)
    made = Table("Time a token under rules", COSTS, notes=notes(OF_COSTS))
    for fields in range(10):
        rules = at_most_once(*labels[:fields]) if fields else ".*"
        automaton = languages(rules, labels)[0][1]
        for _, one in languages(rules, labels)[1:]:
            automaton &= one
        seconds = least(options.repeat, lambda rules=rules: model.predict(X, constraints=rules))
        pairs = len({(int(s), k) for row in automaton.following for k, s in enumerate(row) if s >= 0})
        row = {"fields": fields, "states": automaton.n_states, "pairs": pairs, "us": 1e6 * seconds / (n * TOKENS)}
        made.rows.append(row)
    return made


def least(repeat, what):
    """The least CPU seconds of some runs."""
    seconds = []
    for _ in range(repeat):
        with Clock() as clock:
            what()
        seconds.append(clock.cpu)
    return min(seconds)


def masks_and_automata(options):
    """BIO as masks, which is what it becomes, and as an automaton: the same numbers, in which time."""
    rng, n = np.random.default_rng(0), 10 if options.quick else SEQUENCES
    made = Table("Masks beside automata", WAYS, notes=notes(OF_WAYS))
    for order, types in ((order, types) for order, some in TYPES.items() for types in some):
        labels = ["O", *(f"{role}-l{k:02d}" for k in range(types) for role in "BI")]
        X = [[f"w{k}" for k in rng.integers(0, 500, TOKENS)] for _ in range(n)]
        y = [[labels[k] for k in rng.integers(0, len(labels), TOKENS)] for _ in range(n)]
        model = SequenceLabeler(loss="hamming", order=order, C=0.1, random_state=0).fit(X, y).model_
        tokens, ruled = model.encode(X), model.constrained_by("bio")
        masks, w = ruled.oracle, model.weights
        language = Automaton.of_masks(*masks.allowed, n_labels=len(labels))
        numbers = None
        for way, oracle in (("masks", masks), ("an automaton", masks.within((None,) * 3, language))):
            chain = oracle.chain(tokens)
            found = [chain.decode(w), *(chain.max_marginals(w, i) for i in range(n))]
            numbers = numbers or found
            different = sum(int((one != other).sum()) for one, other in zip(found, numbers, strict=True))
            us = 1e6 * least(options.repeat, lambda chain=chain, w=w: chain.decode(w)) / (n * TOKENS)
            made.rows.append({"order": order, "labels": len(labels), "way": way, "us": us, "different": different})
    return made


NOTES = """
Templates "records". As it comes: a CRF and a margin, each with a C that is chosen on held-out training records, added.
Training records that break a rule are left out where rules are trained with, and of the model without rules beside it.

Addresses: each of their fields at most once, those of a street once on either side of an intersection. That is what
usaddress asks for: it refuses an address in which a label comes again behind others. It is too much for one automaton:
labellings are found lazily. References: six fields at most once, and the order of ten. Some true labels break the rules
themselves; no output under rules is right there.

The time of predictions is that of all parts of an input: reading, features and the best labelling.
"""
OF_COSTS = f"""
{LABELS} labels, order 1, sequences of {TOKENS} random tokens: `predict(X, constraints=at_most_once(...))`, the best of
--repeat runs, with compiling the rules and reading the tokens. No field: a rule that allows everything.
"""
OF_WAYS = f"""
Sequences of {TOKENS} random tokens: the best labelling of encoded sequences, the best of --repeat runs. Numbers: the
labels, and what each label would cost at each token (max-marginals).
"""
