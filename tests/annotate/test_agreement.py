"""Agreement against values worked out by others, and by hand."""

import math

import pytest
from sklearn.metrics import cohen_kappa_score

from structsvm.annotate.agreement import agreement, cohen_kappa, krippendorff_alpha, units_of
from structsvm.annotate.answers import Answer


def test_kappa_is_scikit_learns():
    pairs = list(zip("aabbbcaabc", "abbbacaabb"))
    assert cohen_kappa(pairs) == pytest.approx(cohen_kappa_score(*zip(*pairs)))


def test_alpha_of_krippendorffs_example():
    """Krippendorff 2011, Computing Krippendorff's alpha-reliability, example C: four observers, twelve units."""
    units = ["111", "2232", "3333", "3333", "2222", "1234", "4444", "1121", "2222", "555", "11", "3"]
    assert krippendorff_alpha([list(unit) for unit in units]) == pytest.approx(0.743, abs=0.001)


def test_of_two_observers():
    """Example A of the same paper: ten units, two observers, binary."""
    one, other = "0100000001", "1110010000"
    assert krippendorff_alpha(list(zip(one, other))) == pytest.approx(0.095, abs=0.001)


def test_nothing_to_disagree_about():
    assert math.isnan(krippendorff_alpha([["a", "a"]])) and math.isnan(cohen_kappa([("a", "a")]))
    assert math.isnan(krippendorff_alpha([["a"]]))
    assert str(agreement([{"eve": Answer(label="a")}])) == "no text has been labelled by two annotators"


def test_texts_without_spans_have_been_labelled_all_the_same():
    found = agreement([{"eve": Answer(), "bob": Answer()}, {"eve": Answer()}, {"bob": Answer(), "eve": Answer()}])
    assert found.n_texts == 2 and found.n_units == 0
    assert str(found) == "in no text that two annotators have labelled is there a span"
    partial = Answer(((0, 1, "a"),), complete=False)
    assert agreement([{"eve": Answer(), "bob": partial}]).n_texts == 0


def test_a_wrong_boundary_is_a_wrong_span():
    eve, bob = Answer(((0, 2, "a"), (3, 4, "b"))), Answer(((0, 1, "a"), (3, 4, "b")))
    assert units_of({"eve": eve, "bob": bob}) == [
        {"eve": None, "bob": "a"},
        {"eve": "a", "bob": None},
        {"eve": "b", "bob": "b"},
    ]
    found = agreement([{"eve": eve, "bob": bob}])
    assert found.n_units == 3 and found.kappas["bob", "eve"] == (cohen_kappa([("a", None), (None, "a"), ("b", "b")]), 3)
    assert units_of({"eve": eve, "bob": Answer(((0, 1, "a"),), complete=False)}) == []


def test_kappa_of_two_does_not_depend_on_others():
    eve, bob = Answer(((0, 1, "a"), (2, 3, "b"))), Answer(((0, 1, "a"), (2, 3, "a")))
    eager = Answer(tuple((k, k + 1, "a") for k in range(10)))
    alone, among = (agreement([own | {"eve": eve, "bob": bob}]) for own in ({}, {"zoe": eager}))
    assert among.kappas["bob", "eve"] == alone.kappas["bob", "eve"] and alone.kappas["bob", "eve"][1] == 2
    assert among.n_units == 10


def test_two_who_have_marked_nothing_are_shown():
    """Where others have: no unit is theirs, and they are no pair that has never met."""
    eager = Answer(((0, 1, "a"),))
    found = agreement([{"bob": Answer(), "eve": Answer(), "zoe": eager}, {"tom": eager}])
    assert found.kappas.keys() == {("bob", "eve"), ("bob", "zoe"), ("eve", "zoe")}
    kappa, n = found.kappas["bob", "eve"]
    assert math.isnan(kappa) and n == 0 and found.kappas["bob", "zoe"][1] == 1
    assert "bob and eve: neither has marked a span" in str(found) and "(0 units)" not in str(found)
