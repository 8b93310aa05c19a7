"""One competitor, or ourselves, in a process of its own: ``python -m sequence.peer JSON``; prints JSON.

JSON: ``program`` ("crfsuite" or "structsvm"), ``settings``, the files ``attributes``, ``uncut``,
``test`` (attributes), ``train_text``, ``test_text`` (columns), ``source`` (which of them to train on),
``templates``, ``min_count``, ``model`` (a file to write) and ``times`` (runs of our training).
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from pathlib import Path

from common.measure import Clock, peak, repeat
from sequence.attributes import Expander, read_attributes

TAGGING_RUNS = 3


def main():
    task = json.loads(sys.argv[1])
    json.dump({"crfsuite": crfsuite, "structsvm": structsvm}[task["program"]](task), sys.stdout)


def speed(action, n_tokens):
    """Tokens per second: the best of some runs. Returns it with the value of the last run."""
    value, repeats = repeat(action, TAGGING_RUNS)
    return n_tokens / repeats.best, value


def scores(gold, predicted):
    from structsvm.metrics import chunk_scores, token_accuracy

    return {"accuracy": 100.0 * token_accuracy(gold, predicted), "f1": 100.0 * chunk_scores(gold, predicted).f1}


class Stream:
    """Iterate over the sentences of an attribute file; `seconds` is the time to read them."""

    def __init__(self, path):
        self.path, self.labels, self.seconds = path, [], 0.0

    def __iter__(self):
        sentences = read_attributes(self.path)
        while True:
            begin = time.perf_counter()
            sentence = next(sentences, None)
            self.seconds += time.perf_counter() - begin
            if sentence is None:
                return
            self.labels.append(sentence[1])
            yield sentence[0]


# ---- python-crfsuite ---------------------------------------------------------------------------


def crfsuite(task):
    import pycrfsuite

    settings = dict(task["settings"])
    trainer = pycrfsuite.Trainer(algorithm=settings.pop("algorithm"), verbose=False)
    trainer.set_params(settings | {"feature.possible_transitions": True})
    stream = Stream(task[task["source"]])
    with Clock() as appending:
        for sentence in stream:
            trainer.append(sentence, stream.labels[-1])
    with Clock() as training:
        trainer.train(task["model"])
    log = trainer.logparser
    around = log.featgen_seconds + log.storing_seconds
    result = {
        "features": appending.wall - stream.seconds + log.featgen_seconds,
        "train": training.wall - around,
        "cpu": training.cpu - around,
        "peak": peak(),
        "model": Path(task["model"]).stat().st_size / 1e6,
        "passes": len(log.iterations),
    }
    tagger = pycrfsuite.Tagger()
    tagger.open(task["model"])
    return result | crfsuite_tagging(task, tagger, pycrfsuite.ItemSequence)


def crfsuite_tagging(task, tagger, ItemSequence):
    X, gold = map(list, zip(*read_attributes(task["test"]), strict=True))
    n_tokens = sum(map(len, X))
    items = [ItemSequence(sentence) for sentence in X]
    encoded, predicted = speed(lambda: [tagger.tag(item) for item in items], n_tokens)
    attributes, _ = speed(lambda: [tagger.tag(sentence) for sentence in X], n_tokens)
    text, _ = speed(lambda: [tagger.tag(sentence) for sentence in expanded(task)], n_tokens)
    return {"tag_encoded": encoded, "tag_attributes": attributes, "tag_text": text} | scores(gold, predicted)


def expanded(task):
    """Attribute lists of the test text, expanded in plain Python."""
    text = Path(task["test_text"]).read_text(encoding="utf-8").strip("\n")
    sentences = [[line.split()[:-1] for line in sentence.split("\n")] for sentence in text.split("\n\n")]
    expand = Expander(task["templates"], len(sentences[0][0]))
    return [expand(sentence) for sentence in sentences]


# ---- structsvm ---------------------------------------------------------------------------------


def structsvm(task):
    """The same, as the command line does it (without scikit-learn)."""
    import numpy as np

    from sequence.data import C, default_settings
    from structsvm.tasks.common.solver import make_solver
    from structsvm.tasks.common.training import Job, train
    from structsvm.tasks.sequence.examples import LabeledSequences
    from structsvm.tasks.sequence.model import SequenceModel
    from structsvm.tasks.sequence.parameters import make_oracle

    defaults = {} if task["settings"].get("solver") == "perceptron" else {"C": C}
    settings = default_settings(**defaults | task["settings"])
    with Clock() as encoding:
        encoder, tokens, labels, label_ids, reading = encoded(task)
    model = SequenceModel(encoder, labels, make_oracle(settings, encoder, labels, label_ids))
    model.params = {"templates": encoder.templates}
    runs = []
    for _ in range(task["times"]):
        with Clock() as training:
            train(
                Job(
                    model,
                    LabeledSequences(tokens, label_ids, np.zeros((0, len(model.labels)), dtype=bool)),
                    make_solver(settings),
                )
            )
        runs.append(training)
        if len(runs) == 1:
            largest = peak()
    model.save(task["model"])
    result = {
        "features": encoding.wall - reading,
        "train": statistics.median(run.wall for run in runs),
        "cpu": statistics.median(run.cpu for run in runs),
        "peak": largest,
        "model": Path(task["model"]).stat().st_size / 1e6,
        "passes": model.result.n_iter,
    }
    return result | structsvm_tagging(task, model)


def encoded(task):
    """Encoder, tokens, labels, label indices, and the seconds to read the attributes."""
    from structsvm.features.columns import read_columns
    from structsvm.features.encoder import FeatureEncoder
    from structsvm.tasks.sequence.labels import encode_labels

    if task["source"] == "text":
        columns = read_columns(task["train_text"])
        encoder = FeatureEncoder(task["templates"], task["min_count"])
        tokens = encoder.fit_transform(columns.drop_last())
        return encoder, tokens, *encode_labels(columns.select([-1]), tokens), 0.0
    encoder, stream = FeatureEncoder(), Stream(task[task["source"]])
    tokens = encoder.fit_transform(stream)
    return encoder, tokens, *encode_labels(stream.labels, tokens), stream.seconds


def structsvm_tagging(task, model):
    from structsvm.features.columns import read_columns

    X, gold = map(list, zip(*read_attributes(task["test"]), strict=True))
    n_tokens = sum(map(len, X))
    if task["source"] == "text":
        whole, predicted = speed(lambda: model.predict(read_columns(task["test_text"]).drop_last()), n_tokens)
        tokens = model.encode(read_columns(task["test_text"]).drop_last())
        found = {"tag_text": whole}
    else:
        whole, predicted = speed(lambda: model.predict(X), n_tokens)
        tokens = model.encode(X)
        found = {"tag_attributes": whole}
    given, _ = speed(lambda: model.split(model.predict_tokens(tokens), tokens.offsets), n_tokens)
    return found | {"tag_encoded": given} | scores(gold, predicted)


if __name__ == "__main__":
    main()
