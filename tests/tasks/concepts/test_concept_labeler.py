"""ConceptLabeler: what it learns of a world, what it takes, and what it refuses."""

import copy
from collections import Counter

import numpy as np
import pytest

import structsvm
from structsvm import AdviceWarning
from structsvm.datasets import make_concept_world
from structsvm.model_file import ModelFileError, read_model, write_model
from structsvm.tasks import ConceptLabeler
from structsvm.tasks.concepts.model import ConceptModel, Scenes

NAMES = ["anna", "bo", "cem", "dia"]
ROOMS = ["hall", "attic", "yard", "shed"]
FEW = {"dimension": 8, "hidden": 16, "window": 3, "random_state": 0}


def scenes(n, seed=0):
    """Someone eats the cake, and all but one of those who are named are elsewhere; or is named."""
    rng = np.random.default_rng(seed)
    X, y = [], []
    for _ in range(n):
        rooms = rng.permutation(ROOMS)
        who = int(rng.integers(4))
        said = "someone" if rng.random() < 0.5 else NAMES[who]
        world = {"location": dict(zip(NAMES, rooms.tolist(), strict=True)) | {"cake": str(rooms[who])}}
        X.append((f"{said} eats the cake", world))
        y.append([NAMES[who], "eat", "-", "cake"])
    return X, y


X, Y = scenes(500)
T, WANTED = scenes(100, 1)


def test_the_world_says_who_is_meant():
    model = ConceptLabeler(learning_rate=0.05, **FEW).fit(X, Y)
    assert model.relations_ == ["location"] and model.classes_.tolist() == sorted({"-", "eat", "cake", *NAMES})
    assert model.score(T, WANTED) > 0.95
    blind = ConceptLabeler([], learning_rate=0.05, **FEW).fit(X, Y)
    assert blind.score(T, WANTED) < 0.8
    # The world counts: the cake is moved to another one's room.
    world = dict(zip(NAMES, ROOMS, strict=True))
    for name, room in world.items():
        assert model.predict([("Someone eats the cake", {"location": world | {"cake": room}})]) == [
            [name, "eat", "-", "cake"]
        ]
    # The cake is found before who eats it: with an order, that is what order-free is for.
    orders = model.predict_order([x for x in T if x[0].startswith("someone")])
    assert all(sorted(order) == [0, 1, 2, 3] for order in orders)
    assert np.mean([order[0] > order[3] for order in orders]) > 0.9


def told_apart(scenes):
    """Scenes in which words do not always come together: some eat, some see, the cake or bread, often without "the"."""
    rng = np.random.default_rng(3)
    X, y = [], []
    for (text, world), labels in zip(*scenes, strict=True):
        verb, the, thing = (str(rng.choice(options)) for options in (["eat", "see"], ["the ", ""], ["cake", "bread"]))
        world = {"location": {thing if name == "cake" else name: room for name, room in world["location"].items()}}
        X.append((f"{text.split()[0]} {verb}s {the}{thing}", world))
        y.append([labels[0], verb, *(["-"] if the else []), thing])
    return X, y


def test_bags_of_labels():
    """Nobody says which word means what: the labels are found, those too that only the world tells."""
    (X, y), (T, wanted) = told_apart(scenes(500)), told_apart(scenes(100, 1))
    bags = [Counter(labels) if k % 2 else set(labels) for k, labels in enumerate(y)]
    model = ConceptLabeler(learning_rate=0.05, **FEW).fit(X, bags)
    score = model.score(T, wanted)
    assert score > 0.95
    assert all(model.score(T, [kind(labels) for labels in wanted]) >= score for kind in (Counter, set))
    # Bags of weight 0 do not count.
    weight = np.r_[np.ones(len(X)), np.zeros(len(X))]
    noise = [["cake", "eat", *labels[2:]] for labels in y]
    other = ConceptLabeler(learning_rate=0.05, **FEW).fit([*X, *X], [*bags, *map(Counter, noise)], weight)
    assert other.score(T, wanted) > 0.95


def test_only_what_the_world_lists():
    model = ConceptLabeler(max_iter=2, **FEW).fit(X[:100], Y[:100])
    there = ["anna", "eat"]
    found = model.predict([(words, world | {"concepts": there}) for words, world in T])
    assert {label for labels in found for label in labels} <= {"-", *there}
    with pytest.raises(ValueError, match="sentence 1: its world does not list the concept 'cake'"):
        ConceptLabeler(**FEW).fit([X[0], (X[1][0], {"concepts": [*NAMES, "eat"]})], Y[:2])


def test_worlds_may_be_objects_shared_or_unknown():
    words, concepts, worlds = make_concept_world(30, random_state=0)
    of = {"relations": ["location", "containedby"], "max_iter": 2, **FEW}
    plain = [{"location": world.location, "containedby": world.containedby, "state": world.state} for world in worlds]
    one = ConceptLabeler(**of).fit(list(zip(words, worlds, strict=True)), concepts)
    other = ConceptLabeler(**of).fit(list(zip(words, plain, strict=True)), concepts)
    said = one.predict(list(zip(words, worlds, strict=True)))
    assert said == other.predict(list(zip(words, plain, strict=True)))
    assert ConceptLabeler(max_iter=1, **FEW).fit(list(zip(words, worlds, strict=True)), concepts).relations_ == [
        "containedby",
        "location",
        "state",
    ]
    # A sentence with its own copy of a world, and in threads.
    assert said == one.set_params(n_jobs=2).predict(
        [(" ".join(w), u.copy()) for w, u in zip(words, worlds, strict=True)]
    )
    assert [len(labels) for labels in one.predict([("zz", None), ("", None)])] == [1, 0]
    assert one.predict([]) == []


def test_new_words_and_concepts_in_a_stream():
    model = ConceptLabeler(**FEW).partial_fit(X[:50], Y[:50])
    before = model.model_.layers["words"].copy()
    more = [(words.replace("cake", "tart"), world) for words, world in X[50:80]]
    model.partial_fit(more, [[*labels[:3], "tart"] for labels in Y[50:80]])
    assert "tart" in model.classes_ and len(model.model_.layers["words"]) == len(before) + 1
    assert model.result_.n_argmax > 0


def test_a_pass_without_a_wrong_label_is_the_last():
    model = ConceptLabeler(max_iter=60, learning_rate=0.05, **FEW).fit(X[:10], Y[:10])
    assert model.result_.status == "converged" and model.n_iter_ < 60
    assert model.score(X[:10], Y[:10]) == 1.0


@pytest.mark.parametrize(("n", "most"), [(10, 100), (600, 100), (601, 100), (1000, 60), (5999, 11), (9000, 10)])
def test_few_sentences_take_more_passes(n, most):
    scenes = Scenes([["a"]] * n, None, None)
    for given in (None, 7):
        solver = ConceptLabeler(max_iter=given)._make_solver()
        assert ConceptModel(ConceptLabeler()).adapted(solver, scenes).n_passes == (given or most)


def test_few_sentences_are_learnt_whole():
    words, concepts, worlds = make_concept_world(300, random_state=0)
    X = list(zip(words, worlds, strict=True))
    model = ConceptLabeler(random_state=0).fit(X[:100], concepts[:100])
    assert model.result_.status == "converged" and 10 < model.n_iter_ < 100
    short = ConceptLabeler(random_state=0, max_iter=10).fit(X[:100], concepts[:100])
    assert model.score(X[:100], concepts[:100]) == 1.0 > short.score(X[:100], concepts[:100])
    assert model.score(X[100:], concepts[100:]) > short.score(X[100:], concepts[100:])
    assert ConceptLabeler(random_state=0).partial_fit(X[:20], concepts[:20]).n_iter_ == 1


def test_relations_that_no_world_has():
    for given, there in ((["locaton"], "location"), (["location", "state"], "location")):
        with pytest.warns(AdviceWarning, match=f"no world has the relation '{given[-1]}': .* have '{there}'"):
            ConceptLabeler(given, max_iter=1, **FEW).fit(X[:9], Y[:9])
    with pytest.warns(AdviceWarning, match="no world has the relation 'location': .* the worlds have none"):
        ConceptLabeler(["location"], max_iter=1, **FEW).fit([(x, None) for x, _ in X[:9]], Y[:9])


def test_weights():
    """A sentence of weight 0 counts for nothing but the words in it."""
    weight = np.r_[np.ones(40), np.zeros(20)]
    one = ConceptLabeler(**FEW).fit(X[:60], Y[:60], weight)
    other = ConceptLabeler(**FEW).fit(X[:60], [*Y[:40], *(["-", "-", "eat", "-"] for _ in range(20))], weight)
    assert one.predict(T) == other.predict(T)


WORLD = X[0][1]
WRONG = {
    "text": ("a b", [["-"]], ValueError, "ConceptLabeler learns from examples, not from the text 'a b'"),
    "no pair": ([("a",)], [["-"]], TypeError, r"sentence 0: a pair \(sentence, world\) is wanted"),
    "no words": ([("a", {}), (3, {})], [["-"]] * 2, TypeError, "sentence 1: text or a list of words is wanted, got 3"),
    "empty": ([("a", {}), ("", {})], [["-"]] * 2, ValueError, "sentence 1 has no words"),
    "long": ([("a " * 1001, {})], [["-"]], ValueError, "sentence 0 has 1001 words; at most 1000 are allowed"),
    "world": ([("a", 3)], [["-"]], TypeError, "sentence 0: a world must be a dict of relations, or an object"),
    "relation": ([("a", {"in": ["b"]})], [["-"]], TypeError, "relation 'in' of its world must be a dict"),
    "a number as relation": ([("a", None), ("a", {1: {"b": "c"}})], [["-"]] * 2, TypeError, "sentence 1: the name of"),
    "mixed relations": ([("a", {1: {}, "in": {}})], [["-"]], TypeError, "of its world must be text, got 1"),
    "empty relation": ([("a", {"": {"b": "c"}})], [["-"]], TypeError, "of its world must be text, got ''"),
    "value": ([("a", {"in": {"b": 3}})], [["-"]], TypeError, "relation 'in' of its world must be between texts, got 3"),
    "list": ([("a", {"in": {"b": ["c"]}})], [["-"]], TypeError, "must be between texts, got \\['c'\\]"),
    "concepts": ([("a", {"concepts": "b"})], [["-"]], TypeError, "'concepts' of its world must be a list or set"),
    "number": ([("a", {})], [["-"], ["-"]], ValueError, "there are 1 sentences and labels for 2"),
    "labels": ([("a b", {})], [["-"]], ValueError, "sentence 0 has 2 words and 1 labels"),
    "a label": ([("a", {})], [[3]], TypeError, "sentence 0: a label must be text, got 3"),
    "text as labels": ([("a", {})], ["-"], TypeError, "sentence 0: labels must be a list of one per word"),
    "bag": ([("a", {})], [{"b", "c"}], ValueError, "sentence 0 has 1 words and a bag of 2 labels"),
    "count": ([("a", {})], [Counter(b=0)], ValueError, "sentence 0: label counts must be integers of at least 1"),
    "nothing": ([], [], ValueError, "there are no sentences to train on"),
}


@pytest.mark.parametrize(("X", "y", "error", "message"), WRONG.values(), ids=WRONG.keys())
def test_wrong_data(X, y, error, message):
    model = ConceptLabeler(max_iter=1, **FEW)
    with pytest.raises(error, match=message):
        model.fit(X, y)
    assert not hasattr(model, "model_")


def test_wrong_parameters():
    for relations in (["a", "a"], [3], [""], ["concepts"]):
        with pytest.raises(ValueError, match="The 'relations' parameter of ConceptLabeler must be a list of distinct"):
            ConceptLabeler(relations).fit(X[:2], Y[:2])
    model = ConceptLabeler(max_iter=1, warm_start=True, **FEW).fit(X[:9], Y[:9])
    for changed in ({"dimension": 9}, {"window": 2}, {"strategy": "left_right"}, {"relations": ["state"]}):
        with pytest.raises(ValueError, match=f"trained with another '{next(iter(changed))}'"):
            copy.deepcopy(model).set_params(**changed).fit(X[:9], Y[:9])
    with pytest.raises(ValueError, match="the network has overflowed: set a smaller learning_rate"):
        ConceptLabeler(learning_rate=1e6, **FEW).fit(X[:50], Y[:50])
    with pytest.raises(ValueError, match="has no meaning here: y tells the labels"):
        model.partial_fit(X[:2], Y[:2], classes=["-"])
    with pytest.raises(ValueError, match="'zz' is not known"):
        model.similar_concepts("zz")
    assert len(model.similar_concepts("anna", 2)) == 2


@pytest.mark.parametrize(
    "change",
    [
        lambda header, arrays: header["settings"].update(window=9),
        lambda header, arrays: header["settings"].update(strategy="any"),
        lambda header, arrays: header["words"].pop(),
        lambda header, arrays: header["words"].__setitem__(0, header["words"][1]),
        lambda header, arrays: header["labels"].remove("-"),
        lambda header, arrays: header["labels"].append("zz"),
        lambda header, arrays: header.update(relations=["location", "state"]),
        lambda header, arrays: header.update(seed=-1),
        lambda header, arrays: arrays.update(h=arrays["h"][:-1]),
        lambda header, arrays: arrays.update(names=arrays["names"].astype(np.float64)),
        lambda header, arrays: arrays["g_words"].__setitem__(0, np.nan),
    ],
)
def test_forged_files(change, tmp_path):
    ConceptLabeler(max_iter=1, **FEW).fit(X[:9], Y[:9]).save(tmp_path / "m")
    file = read_model(tmp_path / "m")
    arrays = {name: array.copy() for name, array in file.arrays.items()}
    change(file.meta, arrays)
    write_model(tmp_path / "f", file.kind, file.meta, arrays)
    with pytest.raises(ModelFileError):
        structsvm.load(tmp_path / "f")
