"""The parser as it comes on the whole sample, all lengths up to 70: from tags, from words without and with a tagger,
from both.
"""

from __future__ import annotations

import warnings

from common.measure import Clock, peak, repeat
from common.report import Table, notes
from grammar.data import treebank
from structsvm.metrics import bracket_scores
from structsvm.tasks import GrammarParser, SequenceLabeler, TaggedParser

LONGEST = 70
WORDS, TAGGED = "words", "words, tagged"
COLUMNS = {
    "terminals": ("from", ""),
    "C": ("C", "g"),
    "cpu": ("training, CPU s", ".1f"),
    "accuracy": ("test acc %", ".1f"),
    "f1": ("test F1 %", ".2f"),
    "tags": ("tags right %", ".1f"),
    "rate": ("sentences/s", ".0f"),
    "rate_20": ("sentences/s, 20 words", ".0f"),
    "rate_both": ("in two threads", ".0f"),
    "rate_8": ("up to 8 words", ".0f"),
    "memory": ("peak, MB", ".0f"),
}


def run(options):
    train, test = treebank(LONGEST, options.quick)
    # Neighbours in length, 20 words on average; and short ones.
    middle, short = ([tree for tree in test if a <= len(tree.leaves()) <= b] for a, b in ((15, 25), (1, 8)))
    table = Table(f"As it comes, {len(train)} trees to train on, {len(test)} to test on", COLUMNS, notes=notes(NOTES))
    for terminals in ("tags", WORDS, TAGGED, "both"):
        parser, row = as_it_comes(terminals, train, test)
        trained = parser.parser_ if terminals == TAGGED else parser
        rates = {"rate_20": rate(parser, middle, options.repeat), "rate_8": rate(parser, short, options.repeat)}
        trained.set_params(n_jobs=2)
        rates["rate_both"] = rate(parser, middle, options.repeat, of="best")
        table.rows.append(row | {"C": trained.C_} | rates)
        yield table


def rate(parser, trees, times, of="cpu"):
    """Sentences per second in the fastest of some times: of the CPU, or ("best") of the clock on the wall."""
    sentences = [tree.tokens() for tree in trees]
    return len(sentences) / getattr(repeat(lambda: parser.predict(sentences), times)[1], of)


def as_it_comes(terminals, train, test):
    """A parser of the training trees, and its row: what it took, and how it parses the others."""
    parser = GrammarParser(terminals="predicted" if terminals == TAGGED else terminals, random_state=0)
    if terminals == TAGGED:
        parser = TaggedParser(parser, SequenceLabeler(random_state=0))
    with Clock() as training:
        parser.fit(train)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the sentences without a parse count as they are
        with Clock() as parsing:
            predicted = parser.predict([tree.tokens() for tree in test])
    row = {"cpu": training.cpu, "rate": len(test) / parsing.cpu, "memory": peak()}
    return parser, judged(terminals, test, predicted) | row


def judged(terminals, test, predicted):
    """The columns of a row that say how good predicted trees are."""
    scores = bracket_scores(test, predicted)
    row = {"terminals": terminals, "accuracy": 100.0 * scores.accuracy, "f1": 100.0 * scores.f1}
    return row | {"tags": 100.0 * scores.tag_accuracy if terminals in (WORDS, TAGGED) else None}


NOTES = f"""
Trained and tested on wsj_0001-0159 and wsj_0160-0199 of NLTK's sample, sentences up to {LONGEST} words, `GrammarParser`
as it comes, C chosen on training trees; templates were chosen on wsj_0140-0159, those by rule on two divisions of the
training part. Tags are the treebank's; of words that are tagged, `TaggedParser` as it comes finds them. Training:
reading the grammar, the choice of C and the certificate are in it.
Sentences of 20 words (15 to 25): the fastest of five times, by CPU seconds; in two threads (`n_jobs=2`) by the wall
clock. The peak is that of the process so far.
"""
