"""F1 over meanings and alignment error, by hand."""

import pytest

from structsvm.metrics import alignment_error, meaning_scores
from structsvm.structures.meanings import MeaningGrammar


def test_precision_is_over_valid_meanings():
    grammar = MeaningGrammar("S -> 'f' '(' X ')'\nX -> 'a'\nX -> 'b'")
    true = [["f(a)"], ["f(b)"], "f(a)", [("f", "b")]]
    pred = [["f( a )"], ["f(c)"], [], ["f(a)"]]
    scores = meaning_scores(true, pred, grammar=grammar)
    assert (scores.n_true, scores.n_valid, scores.n_correct) == (4, 2, 1)
    assert (scores.precision, scores.recall, scores.f1) == (0.5, 0.25, pytest.approx(1 / 3))
    assert meaning_scores(true, pred).n_valid == 3


def test_each_meaning_counts_once():
    scores = meaning_scores([["f(a)", "g(b)"]], [["f(a)", "f(a)", "g(b)"]])
    assert (scores.n_true, scores.n_valid, scores.n_correct) == (2, 3, 2)
    assert meaning_scores([["f(a)"]], [[]]).f1 == 0.0
    assert meaning_scores([["f(a)"]], [["f(a)"]]).f1 == 1.0


def test_alignment_error():
    assert alignment_error([["a", "-"], ["b"]], [["a", "-"], ["-"]]) == 0.5
    with pytest.raises(ValueError, match="sentence 1: y_true has 2 symbols and y_pred has 1"):
        alignment_error([["a"], ["b", "c"]], [["a"], ["b"]])
    with pytest.raises(ValueError, match="sentence 0: expected lists of symbols, got 'ab'"):
        alignment_error(["ab"], [["a", "b"]])
    for true, pred, message in (([["a"]], [], "y_true has 1 sentences and y_pred has 0"), ([], [], "no sentences to")):
        with pytest.raises(ValueError, match=message):
            alignment_error(true, pred)


def test_what_cannot_be_scored():
    with pytest.raises(ValueError, match="y_true has 1 sentences and y_pred has 2"):
        meaning_scores([["a"]], [["a"], ["b"]])
    with pytest.raises(ValueError, match="no meanings to find"):
        meaning_scores([[]], [["a"]])
    with pytest.raises(ValueError, match=r"y_pred\[0\]: .*unbalanced"):
        meaning_scores([["a"]], [["f("]])
    with pytest.raises(TypeError, match=r"y_true\[0\]: "):
        meaning_scores([[3]], [["a"]])


@pytest.mark.parametrize("by_grammar", [False, True])
def test_arguments_in_any_order(by_grammar):
    """Where the metric or the grammar says so, at any depth; each argument as often as it comes; nothing else."""
    rules = "S -> 'f' '(' C ',' C ')'\nC -> 'and' '(' C ',' C ',' C ')'\nC -> 'a'\nC -> 'b'\nC -> 'f' '(' C ',' C ')'"
    said = {"grammar": MeaningGrammar(f"%any_order and or\n{rules}")} if by_grammar else {"any_order": ["and", "or"]}
    true = "f(and(a,f(and(a,a,b),b),b),a)"
    for text, is_right in (
        (true, True),
        ("f(and(f(and(b,a,a),b),b,a),a)", True),
        ("f(a,and(a,f(and(a,a,b),b),b))", False),  # f in another order
        ("f(and(a,f(and(a,b,b),b),b),a)", False),
    ):
        assert meaning_scores([true], [text], **said).n_correct == is_right
        assert meaning_scores([true], [text]).n_correct == (text == true)
    with pytest.raises(TypeError, match="any_order must be a list of names of relations, got the text 'and'"):
        meaning_scores([true], [true], any_order="and")
