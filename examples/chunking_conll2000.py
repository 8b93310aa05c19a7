"""
Do templates beat features written by hand?
===========================================

Chunking of CoNLL-2000.

Features written as dicts, against column templates.

The dicts are those of sklearn-crfsuite's tutorial; they and their labels work here as they are. Column
templates make more features, in compiled code. The data set is taken from the folder that STRUCTSVM_DATA
names (or the folder for caches), and downloaded to it on first use; where that fails, the script says so and ends.

Run it: python examples/chunking_conll2000.py
"""

# sphinx_gallery_thumbnail_path = 'project/pictures/arg-max-light.svg'

import time

from structsvm.datasets import DatasetUnavailableError, fetch_conll2000
from structsvm.features.columns import Columns
from structsvm.metrics import chunk_f1
from structsvm.tasks import SequenceLabeler


def word_features(word, tag):
    return {"lower": word.lower(), "isupper": word.isupper(), "istitle": word.istitle(), "tag": tag}


def token_features(sentence, t):
    word, tag = sentence[t]
    features = word_features(word, tag) | {"bias": 1.0, "[-3:]": word[-3:], "[-2:]": word[-2:]}
    features |= {"isdigit": word.isdigit(), "tag[:2]": tag[:2]}
    for name, there in (("-1", t - 1), ("+1", t + 1)):
        if 0 <= there < len(sentence):
            features[name] = word_features(*sentence[there])
        else:
            features[name] = "none"
    return features


def as_dicts(sentences):
    return [[token_features(sentence, t) for t in range(len(sentence))] for sentence in sentences]


def main():
    try:
        data = fetch_conll2000()
    except DatasetUnavailableError as error:
        print(error)
        return
    for name, prepare in (("dicts", as_dicts), ("templates", Columns.from_sequences)):
        begin = time.perf_counter()
        X, X_test = prepare(data.X_train), prepare(data.X_test)
        middle = time.perf_counter()
        labeler = SequenceLabeler(C=0.1, random_state=0).fit(X, data.y_train)
        end = time.perf_counter()
        f1 = 100.0 * chunk_f1(data.y_test, labeler.predict(X_test))
        print(f"{name}: {labeler.n_features_in_} features, F1 {f1:.2f}; {labeler.result_.certificate()}")
        print(f"    prepared in {middle - begin:.1f} s, encoded and trained in {end - middle:.1f} s")


if __name__ == "__main__":
    main()
