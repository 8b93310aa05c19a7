"""
How do I put a tagger behind a web address?
===========================================

A tagger as a web service.

A model file behind FastAPI: sentences in, their labels out. Prediction leaves the GIL, so that the threads in which
FastAPI runs a plain function share the cores, and `mmap=True` lets the processes of a server share the weights.
Several sentences in one request cost little more than one.

Run it: python examples/serve_tagger.py

As a service: MODEL=tagger.model uvicorn --app-dir examples serve_tagger:app --workers 2
"""

# sphinx_gallery_thumbnail_path = 'project/pictures/probabilities-light.svg'

import os
import tempfile
from functools import cache
from pathlib import Path

from fastapi import FastAPI

import structsvm

app = FastAPI()


@cache
def labeler():
    """Open the model that the environment names, once."""
    return structsvm.load(os.environ["MODEL"], mmap=True)


@app.post("/tag")
def tag(sentences: list[list[str]]) -> list[list[str]]:
    """Label the words of sentences."""
    return labeler().predict(sentences)


def main():
    """Train a tagger and label two addresses as the service does."""
    from structsvm.datasets import make_addresses
    from structsvm.tasks import SequenceLabeler

    words, y = make_addresses(200, random_state=0)
    with tempfile.TemporaryDirectory() as folder:
        os.environ["MODEL"] = str(Path(folder) / "tagger.model")
        SequenceLabeler(C=0.1, random_state=0).fit(words, y).save(os.environ["MODEL"])
        for sentence, labels in zip(words[:2], tag(words[:2]), strict=True):
            print(" ".join(f"{word}/{label}" for word, label in zip(sentence, labels, strict=True)))


if __name__ == "__main__":
    main()
