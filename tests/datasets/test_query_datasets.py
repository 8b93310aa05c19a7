"""Simulated questions to a map."""

import re
from collections import Counter

import pytest

from structsvm.datasets import make_queries
from structsvm.structures.meanings import format_meaning, parse_meaning

LANGUAGES = ("terms", "funql", "lambda")
QUOTED = re.compile(r"'([A-Z][^']*)'")


def names_in(meanings):
    return [name for meaning in meanings for name in QUOTED.findall(meaning[0])]


@pytest.mark.parametrize("language", LANGUAGES)
def test_meanings_are_texts_of_trees_and_names_stand_in_the_questions(language):
    data = make_queries(200, 100, language=language, random_state=0)
    for question, (meaning,) in zip(data.X_train + data.X_test, data.y_train + data.y_test, strict=True):
        assert format_meaning(parse_meaning(meaning)) == meaning
        assert all(name in question for name in QUOTED.findall(meaning))
    assert data.bags == data.y_train


@pytest.mark.parametrize("unseen", [0.0, 0.5, 1.0])
def test_the_share_of_names_that_no_training_question_has(unseen):
    data = make_queries(2000, 1000, unseen=unseen, random_state=1)
    known = set(names_in(data.y_train))
    assert len(known) > 1500  # about 1,900 names are drawn
    of_test = names_in(data.y_test)
    assert abs(sum(name not in known for name in of_test) / len(of_test) - unseen) < 0.05


def test_training_questions_do_not_depend_on_the_share_of_names_in_test_questions():
    parts = [make_queries(30, 20, unseen=unseen, random_state=4) for unseen in (0.0, 0.5, 1.0)]
    assert all((part.X_train, part.y_train) == (parts[0].X_train, parts[0].y_train) for part in parts)
    assert len({tuple(part.X_test) for part in parts}) == 3


def test_the_languages_say_the_same_questions():
    first, *others = [make_queries(20, 10, language=language, random_state=3) for language in LANGUAGES]
    assert all((first.X_train, first.X_test) == (other.X_train, other.X_test) for other in others)
    assert all(first.y_train != other.y_train for other in others)


def test_bags_have_the_right_meaning_and_others():
    data = make_queries(400, 1, level=2, random_state=2)
    assert all(right in bag for (right,), bag in zip(data.y_train, data.bags, strict=True))
    assert 2.7 < sum(map(len, data.bags)) / 400 < 3.2
    assert any(right != bag[0] for (right,), bag in zip(data.y_train, data.bags, strict=True))


def test_names_that_are_met_again():
    data = make_queries(1000, 500, names=50, random_state=1)
    n_met, of_test = Counter(names_in(data.y_train)), names_in(data.y_test)
    assert len(n_met) <= 50 and n_met.most_common(1)[0][1] > 100  # a sixth of some 1,000 names
    assert abs(sum(name not in n_met for name in of_test) / len(of_test) - 0.5) < 0.07


@pytest.mark.parametrize(
    ("name", "value"), [("n_train", 0), ("unseen", 1.5), ("level", -1), ("language", "sql"), ("names", 0)]
)
def test_bad_parameters(name, value):
    with pytest.raises(ValueError, match=f"The '{name}' parameter of make_queries must be"):
        make_queries(**{name: value})
