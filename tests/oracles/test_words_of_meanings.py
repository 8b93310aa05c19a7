"""Words of sentences as meanings read them: without case, and without marks at their ends."""

import pickle

import pytest

from structsvm.datasets import make_queries
from structsvm.oracles.meanings.words import Folded, shape_of, unmarked
from structsvm.tasks import Hybrid, SemanticParser


@pytest.mark.parametrize(("word", "wanted"), [("Paris?", "paris"), ("St.", "st"), ("?!", "?!"), ("3.5,", "3.5")])
def test_marks_at_the_end_of_a_word_are_no_part_of_it(word, wanted):
    folded = Folded(word)
    assert folded == wanted and folded.written == word and shape_of(folded) == shape_of(Folded(unmarked(word)))
    assert pickle.loads(pickle.dumps(folded)).written == word


def test_marks_that_stand_at_a_word_change_no_prediction():
    data = make_queries(60, 20, random_state=0)
    parser = SemanticParser(max_iter=2, random_state=0).fit(data.X_train, data.y_train)
    with_marks = [sentence.replace(" ?", ", ?") for sentence in data.X_test]
    assert parser.predict(with_marks) == parser.predict(data.X_test)


def test_phrases_of_a_lexicon_are_folded_as_sentences_are():
    """`casefold` writes ß as ss, and "St." is read without its mark."""
    words = "where is the St. Große Straße in ulm"
    sentences = [words.replace("St. Große Straße", name) for name in ("mill", "inn", "oak", "St. Große Straße")]
    meanings = [f"where(name({name}),in(ulm))" for name in ("mill", "inn", "oak", "grosse")]
    method = Hybrid(lexicon={"St. Große Straße": "name(grosse)"})
    parser = SemanticParser(method=method, max_iter=2, random_state=0).fit(sentences * 3, meanings * 3)
    assert ("st", "grosse", "strasse") in parser.model_.hybrid.lexicon.phrases
    assert parser.predict([words])[0] == [meanings[-1]]
