"""Leaves that sentences spell out are names of one kind: others are copied, however often those were met."""

import structsvm
from structsvm.oracles.meanings.opened import SPELT_OUT, spelt_out
from structsvm.structures.meaning_units import MeaningUnits
from structsvm.structures.meanings import parse_meaning
from structsvm.tasks import SemanticParser

TOWNS = ("Ulm", "Bonn", "Kiel", "Bad Homburg", "Jena")
PLACES = {"cafe": "coffee houses", "inn": "pubs", "bank": "banks"}


def meaning(place, town):
    return f"find(tag('kind','{place}'),tag('town','{town}'))"


def questions(towns):
    pairs = [(place, town) for place in PLACES for town in towns]
    return [f"which {PLACES[p]} are in {t} ?" for p, t in pairs], [[meaning(p, t)] for p, t in pairs]


def met(towns, sentences):
    """`spelt_out` of one question per town, about each of which there are three."""
    trees = [parse_meaning(meaning(place, town)) for place in PLACES for town in towns]
    units = MeaningUnits(trees)
    bags = [dict.fromkeys(units.unit_ids(tree), 1.0) for tree in trees]
    return spelt_out(units, sentences, bags)


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
    nicknames = dict(zip(TOWNS, ("minster", "capital", "canal", "spa", "optics"), strict=True))
    X = [question.replace(town, nicknames[town]) for question, town in zip(X, TOWNS * 3, strict=True)]
    parser = SemanticParser(random_state=0).fit(4 * X, 4 * y)
    assert parser.predict(X) == y and "tag('town',_)" not in parser.units_ and "tag('town','Ulm')" in parser.units_
