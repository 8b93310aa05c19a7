"""The same data train the same model file, bit for bit, whatever order sets have in a process."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from cases import TABLE

from structsvm.model_file import read_model

REFERENCE = Path(__file__).parents[2] / "reference"
SCRIPT = """
import sys, time
sys.path.insert(0, sys.argv[2])
time.perf_counter = lambda: 0.0  # seconds are in the files
import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer
from cases import TABLE
from structsvm import Taxonomy
from structsvm.datasets import make_ambig_house, make_concept_world, make_sequences, make_treebank
from structsvm.tasks import *

X, y = make_sequences(30, n_labels=5, n_words=80, mean_length=6.0, random_state=0)
words = [[token[0] for token in s] for s in X]
rng = np.random.default_rng(0)
points = rng.normal(size=(60, 4))
names = np.array(["ant", "bee", "cat"])[np.arange(60) % 3]
two = names[np.arange(60) % 2]
texts = [" ".join(s) for s in words]
edges = {("insect", "ant"), ("insect", "bee"), ("animal", "insect"), ("animal", "cat")}
leaves = [["ant", "bee", "cat"][k % 3] for k in range(30)]
house = make_ambig_house(40, level=2, random_state=0)
spoken, concepts, worlds = make_concept_world(20, random_state=0)
scenes = [(words, {"concepts": set(sum(concepts, [])), **vars(world)}) for words, world in zip(spoken, worlds)]
concepts[0] = set(concepts[0])

def parts(token):
    return {token[0], token[1], token[0][:2], token[0][-1:], token[1] + token[0]}

SETS = [[parts(token) for token in s] for s in X]
FROZEN = [[frozenset(parts(token)) for token in s] for s in X]
NESTED = [[{"parts": parts(token), "deep": {"er": frozenset(parts(token))}} for token in s] for s in X]
DICTS = [[{"w": token[0], "t": token[1], "n": 0.5} for token in s] for s in X]
# What the table of cases has no sets in.
FITS = {
    "sets": lambda: SequenceLabeler(random_state=0).fit(SETS, y),
    "frozen": lambda: SequenceLabeler(C=0.1, random_state=0, inference="greedy").fit(FROZEN, y),
    "nested": lambda: SequenceLabeler(
        C=0.1, loss="log", random_state=0, features=TokenFeatures(min_count=2)
    ).fit(NESTED, y),
    "dicts": lambda: SequenceLabeler(random_state=0).partial_fit(DICTS, y, classes=set(sum(y, []))),
    "columns": lambda: SequenceLabeler(random_state=0, templates="rich").fit(X, y),
    "segments of sets": lambda: SequenceLabeler(C=0.1, random_state=0, segments=True).fit(
        [[{"word=" + token[0], "pos=" + token[1], *parts(token)} for token in s] for s in X], y),
    "weights": lambda: SequenceLabeler(C=0.1, random_state=0, class_weight="balanced").fit(SETS, y),
    "words": lambda: GrammarParser(terminals="words", random_state=0).fit(make_treebank(20, random_state=0)),
    "graphs of dicts": lambda: GraphLabeler(C=0.1, max_iter=2, random_state=0).fit(
        [(d, [(k, k + 1) for k in range(len(d) - 1)]) for d in DICTS], [[*labels] for labels in y]),
    "sets of meanings": lambda: SemanticParser(random_state=0).fit(house.sentences, [set(bag) for bag in house.bags]),
    "sets of concepts": lambda: ConceptLabeler(max_iter=2, random_state=0).fit(scenes, concepts),
    "texts": lambda: TaxonomyClassifier(
        Taxonomy(edges), vectorizer=TfidfVectorizer(), random_state=0).fit(texts, leaves),
    "inner": lambda: TaxonomyClassifier(
        Taxonomy(edges), leaf_only=False, kernel="rbf", random_state=0
    ).partial_fit(points[:30], leaves, classes=set(leaves)),
    "stream": lambda: LaRankClassifier(random_state=0).partial_fit(points, names, classes={*names}),
    "kernel": lambda: LaRankClassifier(random_state=0).fit(points, names),
    "kernel of two classes": lambda: LaSVMClassifier(random_state=0).fit(points, two),
    "costs": lambda: SGDQNClassifier(random_state=0, class_weight={"bee": 2.0, "ant": 3.0}).fit(points, names),
    "queries": lambda: Ranker("ndcg", random_state=0).fit(points, np.arange(60) % 3, qid=names[np.arange(60) // 20]),
}
FITS |= {name: case.fit for name, case in TABLE.items()}
import warnings
warnings.simplefilter("ignore")
for name, fit in FITS.items():
    fit().save(f"{sys.argv[1]}/{name}")
print(len(FITS))
"""


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """Two folders of models, of processes with different hash seeds."""
    made = []
    for seed in ("1", "2"):
        folder = tmp_path_factory.mktemp(f"seed{seed}")
        command = [sys.executable, "-P", "-c", SCRIPT, str(folder), str(REFERENCE)]
        done = subprocess.run(command, env=os.environ | {"PYTHONHASHSEED": seed}, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        assert int(done.stdout) == len(list(folder.iterdir())) > len(TABLE)
        made.append(folder)
    return made


def learnt(path):
    """All of a model file but its history, whose points within a pass come by the clock."""
    model = read_model(path)
    arrays = {name: array for name, array in model.arrays.items() if "history." not in name}
    return repr(model.meta), {name: (array.dtype.str, array.shape, array.tobytes()) for name, array in arrays.items()}


def test_model_files_do_not_depend_on_the_hash_seed(folders):
    one, other = folders
    names = sorted(path.name for path in one.iterdir())
    assert [name for name in names if learnt(one / name) != learnt(other / name)] == []
