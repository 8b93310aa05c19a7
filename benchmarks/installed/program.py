"""A program in a process of its own: ``python -m installed.program VERB JSON``; prints JSON.

VERB: ``train``, ``load`` or ``tag``. JSON: ``program`` ("structsvm", "words", "crfsuite" or "swapped": the same calls
with one import changed), ``settings``, ``data`` (a JSON file: X, y to train on and X, y to test on), ``first`` (one of
a sentence), ``model`` (a file), ``alone`` (whether the model is opened to predict alone).
"""

from __future__ import annotations

import json
import sys
import time

from common.measure import Clock, peak, repeat_for


def main():
    verb, task = sys.argv[1], json.loads(sys.argv[2])
    json.dump({"train": trained, "load": loaded, "tag": tagged}[verb](task), sys.stdout)


def of_file(task):
    with open(task["data"], encoding="utf-8") as file:
        X, y, X_test, y_test = json.load(file)
    if task["program"] == "words":  # rows of columns are tuples, lists are attributes
        X, X_test = ([[as_columns(token) for token in x] for x in part] for part in (X, X_test))
    return X, y, X_test, y_test


def as_columns(token):
    return token if isinstance(token, str) else tuple(token)


def pycrfsuite(program):
    """The module of that name: the original's, or ours."""
    if program == "crfsuite":
        import pycrfsuite as module
    else:
        import structsvm.interop.pycrfsuite as module
    return module


def trained(task):
    X, y, *_ = of_file(task)
    if task["program"] in ("structsvm", "words"):
        return trained_labeler(task, X, y)
    module = pycrfsuite(task["program"])
    settings = {"feature.possible_transitions": True} | task["settings"]
    trainer = module.Trainer(algorithm="lbfgs", verbose=False)
    trainer.set_params(settings)
    with Clock() as clock:
        for sentence, labels in zip(X, y, strict=True):
            trainer.append(sentence, labels)
        trainer.train(task["model"])
    return {"cpu": clock.cpu, "peak": peak()}


def trained_labeler(task, X, y):
    from structsvm.tasks import SequenceLabeler

    labeler = SequenceLabeler(random_state=0, **task["settings"])
    with Clock() as clock:
        labeler.fit(X, y)
    largest = peak()
    labeler.save(task["model"])
    return {"cpu": clock.cpu, "peak": largest, "C": labeler.C_, "loss": labeler.loss_}


def loaded(task):
    """CPU milliseconds and memory of imports, the model and its first sentence, beyond a process that does nothing."""
    with open(task["first"], encoding="utf-8") as file:
        sentence = json.load(file)
    before, begin = peak(), time.process_time()
    tag, _ = taggers(task)
    tag([as_columns(token) for token in sentence] if task["program"] == "words" else sentence)
    return {"load": 1e3 * (time.process_time() - begin), "resident": peak() - before}


def tagged(task):
    """Speeds of a model in a fresh process, and the labels."""
    _, _, X, _ = of_file(task)
    tag, tag_all = taggers(task)
    n_tokens = sum(map(len, X))
    labels, batch = repeat_for(lambda: tag_all(X, 1))
    _, single = repeat_for(lambda: [tag(sentence) for sentence in X])
    found = {"batch": n_tokens / batch.best, "single": n_tokens / single.best, "labels": labels}
    if task["program"] in ("structsvm", "words"):
        _, threads = repeat_for(lambda: tag_all(X, 2))
        found["threads"] = n_tokens / threads.best
    return found


def taggers(task):
    """Functions that tag one sentence, and all of a list with some threads."""
    if task["program"] in ("structsvm", "words"):
        import structsvm

        labeler = structsvm.load(task["model"], predictor=task.get("alone", False))

        def tag_all(X, n_jobs):
            return labeler.set_params(n_jobs=n_jobs).predict(X)

        return lambda sentence: labeler.predict([sentence])[0], tag_all
    tagger = pycrfsuite(task["program"]).Tagger()
    tagger.open(task["model"])
    return tagger.tag, lambda X, n_jobs: [tagger.tag(sentence) for sentence in X]


if __name__ == "__main__":
    main()
