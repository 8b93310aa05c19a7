"""Sentences as text: what parsers and parsers of meanings read as the list of its words, and what is none."""

import pytest

from structsvm.tasks import DependencyParser, GrammarParser, SemanticParser, SequenceLabeler, TaggedParser

WORDS = [["cats", "sleep"], ["the", "dog", "barks"]] * 5
ARCS = [[(2, "nsubj"), (0, "root")], [(2, "det"), (3, "nsubj"), (0, "root")]] * 5
TREES = ["(S (NP (N cats)) (VP (V sleep)))", "(S (NP (D the) (N dog)) (VP (V barks)))"] * 5
TAGS = {"cats": "N", "sleep": "V", "the": "D", "dog": "N", "barks": "V"}
TAGGED = [[(word, TAGS[word]) for word in sentence] for sentence in WORDS]


def grammar():
    return GrammarParser(C=0.1, random_state=0, terminals="words", features=None).fit(WORDS, TREES)


def tagged():
    parts = DependencyParser(C=0.1, random_state=0), SequenceLabeler(C=1.0, random_state=0)
    return TaggedParser(*parts, n_folds=2).fit(TAGGED, ARCS)


MAKE = {
    "dependency": lambda: DependencyParser(C=0.1, random_state=0).fit(WORDS, ARCS),
    "grammar": grammar,
    "tagged": tagged,
    "semantics": lambda: SemanticParser(random_state=0).fit(WORDS, ["sleep(cats)", "bark(dog)"] * 5),
}


@pytest.mark.parametrize("name", MAKE)
def test_text_is_cut_at_blanks(name):
    model = MAKE[name]()
    texts = ["the dog  barks", "cats sleep\n"]
    found = model.predict(texts)
    assert found == model.predict([text.split() for text in texts])
    assert model.predict(["the dog barks"]) == found[:1]
    assert model.predict_kbest(texts, 2) == model.predict_kbest([text.split() for text in texts], 2)
    with pytest.raises((ValueError, TypeError), match="X must be a list of sentences, got"):
        model.predict("the dog barks")
    if name != "semantics":  # whose sentences may be commands of a word
        with pytest.raises(ValueError, match=r"seems to be the words of one, \['the', 'dog'\]: give \[X\], or"):
            model.predict(["the", "dog"])


@pytest.mark.parametrize("name", ["dependency", "grammar"])
def test_training_on_text(name):
    y = ARCS if name == "dependency" else TREES
    model = MAKE[name]()
    other = type(model)(**model.get_params()).fit([" ".join(words) for words in WORDS], y)
    assert (other.coef_ == model.coef_).all()
    with pytest.raises(ValueError, match=r"sentence 0: a sentence must be .* seems to be a tree: '\(S"):
        model.predict(TREES)
