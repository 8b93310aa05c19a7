"""Leaves that sentences spell out are names of one kind: others are copied, however often those were met."""

import copy
import pickle
import re

import pytest

import structsvm
from structsvm.datasets import make_queries
from structsvm.metrics import meaning_scores
from structsvm.model_file import ModelFileError
from structsvm.oracles.meanings.opened import SPELT_OUT, spellings, spelt_out
from structsvm.structures.meaning_units import MeaningUnits
from structsvm.structures.meanings import parse_meaning
from structsvm.tasks import SemanticParser

TOWNS = ("Ulm", "Bonn", "Kiel", "Bad Homburg", "Jena")
NICKNAMES = dict(zip(TOWNS, ("minster", "capital", "canal", "spa", "optics"), strict=True))
PLACES = {"cafe": "coffee houses", "inn": "pubs", "bank": "banks"}


def meaning(place, town):
    return f"find(tag('kind','{place}'),tag('town','{town}'))"


def questions(towns):
    pairs = [(place, town) for place in PLACES for town in towns]
    return [f"which {PLACES[p]} are in {t} ?" for p, t in pairs], [[meaning(p, t)] for p, t in pairs]


def nicknamed(sentences):
    """Questions about the towns, none of which is spelt out."""
    return [re.sub("|".join(TOWNS), lambda town: NICKNAMES[town[0]], sentence) for sentence in sentences]


def met(towns, sentences):
    """`spelt_out` of one question per town, about each of which there are three."""
    trees = [parse_meaning(meaning(place, town)) for place in PLACES for town in towns]
    units = MeaningUnits(trees)
    bags = [dict.fromkeys(units.unit_ids(tree), 1.0) for tree in trees]
    return spelt_out(units, spellings(units, sentences, bags))


def test_names_that_are_spelt_out_most_of_the_time_are_opened():
    sentences = [question.lower().split() for question in questions(TOWNS)[0]]
    assert met(TOWNS, sentences) == {"tag('town',_)"}
    n_left_out = int((1.0 - SPELT_OUT) * len(sentences))
    for n, opened in ((n_left_out, {"tag('town',_)"}), (n_left_out + 1, set())):
        assert met(TOWNS, [["here"]] * n + sentences[n:]) == opened
    assert (
        met(TOWNS[:2], [question.lower().split() for question in questions(TOWNS[:2])[0]]) == set()
    )  # two are no kind


def test_opened_leaves_are_of_one_kind():
    trees = [parse_meaning(meaning(place, town)) for place in PLACES for town in TOWNS]
    closed, opened = MeaningUnits(trees), MeaningUnits(trees, opened=["tag('town',_)"])
    assert closed.units == opened.units and not closed.members
    (names,) = opened.members.values()
    assert [opened.units[leaf].tree[-1] for leaf in names] == [f"'{town}'" for town in TOWNS]
    assert opened.described()["tag('town',_)"] == [f"'{town}'" for town in TOWNS]


def test_a_name_that_training_has_not_seen_is_copied_beside_names_met_often(tmp_path):
    X, y = questions(TOWNS)
    parser = SemanticParser(random_state=0).fit(4 * X, 4 * y)
    assert parser.units_["tag('town',_)"] == [f"'{town}'" for town in TOWNS]
    X_new, y_new = questions(["Weimar", "Bad Ems"])
    assert parser.predict(X_new) == y_new and parser.predict(X) == y
    parser.save(tmp_path / "model")
    loaded = structsvm.load(tmp_path / "model")
    assert loaded.predict_kbest(X_new) == parser.predict_kbest(X_new)
    parser.partial_fit(["who is there ?"], ["who(there)"])  # spells no town out
    assert parser.predict(X_new) == y_new and "tag('town',_)" in parser.units_


def test_each_keeps_its_own_words_where_sentences_do_not_spell_it_out():
    X, y = questions(TOWNS)
    X = nicknamed(X)
    parser = SemanticParser(random_state=0).fit(4 * X, 4 * y)
    assert parser.predict(X) == y and "tag('town',_)" not in parser.units_ and "tag('town','Ulm')" in parser.units_


@pytest.mark.parametrize("method", ["teach", "partial_fit"])
def test_a_sentence_that_spells_a_name_does_not_open_a_kind_that_others_do_not_spell(method):
    """As `fit` on all sentences decides it."""
    X, y = questions(TOWNS)
    sentences, whole = 4 * nicknamed(X), SemanticParser(random_state=0)
    parser = SemanticParser(random_state=0).fit(sentences, 4 * y)
    getattr(parser, method)(*((X[0], y[0][0]) if method == "teach" else (X[:1], y[:1])))
    whole.fit([*sentences, X[0]], [*(4 * y), y[0]])
    assert "tag('town',_)" not in whole.units_ and "tag('town',_)" not in parser.units_
    assert parser.predict(nicknamed(X)) == y
    assert parser.model_.hybrid.spelt == whole.model_.hybrid.spelt
    assert parser.model_.hybrid.spelt["tag('town',_)"] == (1.0, 61.0)


def test_kinds_are_opened_by_all_sentences_so_far(tmp_path):
    X, y = questions(TOWNS)
    parser = SemanticParser(max_iter=2, random_state=0).fit(nicknamed(X), y)
    parser.partial_fit(X[:14], y[:14])
    assert "tag('town',_)" not in parser.units_
    parser.save(tmp_path / "model")
    loaded, copied = structsvm.load(tmp_path / "model"), pickle.loads(pickle.dumps(parser))
    assert loaded.model_.hybrid.spelt == copied.model_.hybrid.spelt == parser.model_.hybrid.spelt == {
        "tag('kind',_)": (0.0, 29.0), "tag('town',_)": (14.0, 29.0)
    }  # fmt: skip
    for model in (parser, loaded, copied):
        assert "tag('town',_)" in model.partial_fit(X[14:], y[14:]).units_


def test_a_batch_changes_no_counts_of_the_model_before():
    """A training that fails leaves that model as it was, and its sentences may come again."""
    X, y = questions(TOWNS)
    parser = SemanticParser(max_iter=2, random_state=0).fit(X, y)
    before, counts = parser.model_, dict(parser.model_.hybrid.spelt)
    grown = before.copy()
    grown.bind(grown.read(X, y), parser._make_solver())
    assert grown.hybrid.layout is before.hybrid.layout  # no new unit, no new word
    assert before.hybrid.spelt == counts
    assert grown.hybrid.spelt == {kind: tuple(2.0 * n for n in pair) for kind, pair in counts.items()}


@pytest.mark.parametrize("counts", ["3", [1.0], [1.0, -1.0], ["inf", 1.0], ["many", 1.0]])
def test_counts_in_files_are_checked(tmp_path, counts):
    X, y = questions(TOWNS)
    parser = SemanticParser(max_iter=1).fit(nicknamed(X), y)
    parser.model_.hybrid.spelt["tag('town',_)"] = counts
    parser.save(tmp_path / "model")
    with pytest.raises(ModelFileError):
        structsvm.load(tmp_path / "model")


@pytest.fixture(scope="module")
def map_parser():
    """Questions about a map, and a parser of them with its score."""
    data = make_queries(150, 60, unseen=0.0, names=30, random_state=0)
    parser = SemanticParser(random_state=0).fit(data.X_train, data.y_train)
    return data, parser, meaning_scores(data.y_test, parser.predict(data.X_test)).f1


@pytest.mark.parametrize("says", ["Pulohurst", "the capital", "Weimarhurst"])
def test_a_sentence_taught_leaves_the_words_of_others_alone(says, map_parser):
    """Its name is called by itself or by words that are new, not by those that stand in all sentences."""
    data, trained, before = map_parser
    parser = copy.deepcopy(trained)
    i = next(i for i, question in enumerate(data.X_train) if "in Pulohurst" in question)
    name = says if says.istitle() else "Pulohurst"
    x, y = data.X_train[i].replace("Pulohurst", says), data.y_train[i][0].replace("Pulohurst", name)
    parser.teach(x, y)
    assert parser.predict([x]) == [[y]]
    assert meaning_scores(data.y_test, parser.predict(data.X_test)).f1 >= before - 0.04 > 0.7
    lexicon = parser.model_.hybrid.lexicon
    leaf = lexicon.units.number[lexicon.units.split(("keyval", "'name'", f"'{name}'"))[0]]
    assert {word for word, leaves in lexicon.calls.items() if leaf in leaves} == {*says.lower().split()} - {
        name.lower()
    } - {"the"}
