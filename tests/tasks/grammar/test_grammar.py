"""The parser: grammars off treebanks, training, fallbacks, files, the command line."""

import copy
import json
import os
import threading
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

import structsvm
from structsvm import AdviceWarning, LaRank, ModelFileError
from structsvm.cli import main
from structsvm.datasets import fetch_treebank_sample, make_treebank
from structsvm.metrics import bracket_scores
from structsvm.model_file import read_model, write_model
from structsvm.oracles.cky import NoParseError
from structsvm.solvers import ConditionalLikelihood
from structsvm.structures.rules import Rule, Terminal, parse_rules
from structsvm.structures.trees import parse_tree, read_trees, write_trees
from structsvm.tasks import GrammarParser, SpanFeatures, TreebankGrammar
from structsvm.tasks.grammar.terminals import ENGLISH, Terminals, common_endings, word_class
from structsvm.tasks.grammar.trees import encode_trees

pytestmark = pytest.mark.filterwarnings("ignore:the grammar has no tree for:structsvm.AdviceWarning")

TRAIN = make_treebank(150, max_length=12, random_state=0)
TEST = make_treebank(60, max_length=12, random_state=1)
SENTENCES = [tree.tokens() for tree in TEST]


def f1(parser, trees=TEST):
    return bracket_scores(trees, parser.predict([tree.tokens() for tree in trees])).f1


# ---- training ------------------------------------------------------------------------------------


@pytest.mark.parametrize("solver", ["larank", "cutting_plane", "frank_wolfe"])
@pytest.mark.parametrize("loss", ["f1", "hamming", "zero_one"])
def test_solvers_and_losses(solver, loss):
    parser = GrammarParser(C=0.1, solver=solver, loss=loss, tol=0.02, max_iter=300, random_state=0).fit(TRAIN[:40])
    assert parser.result_.status == "converged"
    assert -1e-12 <= parser.result_.relative_gap <= 0.02
    assert f1(parser, TRAIN[:40]) > 0.8


@pytest.mark.parametrize("solver", ["passive_aggressive", "perceptron"])
def test_online_solvers_learn(solver):
    parser = GrammarParser(solver=solver, max_iter=5, random_state=0).fit(TRAIN)
    assert f1(parser) > 0.6


def test_training_beats_relative_frequencies():
    trees = make_treebank(300, random_state=3)
    generative = GrammarParser.from_counts(trees)
    assert f1(GrammarParser(C=0.3, max_iter=10, random_state=0).fit(trees)) > f1(generative) > 0.6


def test_formulations_and_solver_objects():
    models = [
        GrammarParser(solver=LaRank(C=0.5, rescaling=r, penalty=p, max_iter=3, random_state=0)).fit(TRAIN[:30])
        for r in ("margin", "slack")
        for p in ("linear", "quadratic")
    ]
    assert len({m.result_.dual for m in models}) == 4
    named = GrammarParser(C=0.5, max_iter=3, random_state=0).fit(TRAIN[:30])
    assert named.result_.dual == models[0].result_.dual
    assert GrammarParser().fit(TRAIN[:10]).model_.params == GrammarParser().get_params(deep=False)
    assert repr(clone(models[0]).get_params()) == repr(models[0].get_params())


def test_sample_weight_repeats_trees():
    twice = GrammarParser(C=0.3, solver="cutting_plane", tol=1e-6).fit([*TRAIN[:10], *TRAIN[:5]])
    weight = np.ones(10)
    weight[:5] = 2.0
    other = GrammarParser(C=0.3, solver="cutting_plane", tol=1e-6).fit(TRAIN[:10], sample_weight=weight)
    assert other.result_.primal == pytest.approx(twice.result_.primal, rel=1e-5)


def test_threads_give_the_same_model():
    one = GrammarParser(C=0.3, solver="cutting_plane", max_iter=4, tol=0.5, random_state=0).fit(TRAIN)
    two = clone(one).set_params(n_jobs=2).fit(TRAIN)
    assert np.array_equal(one.coef_, two.coef_)
    assert one.predict(SENTENCES) == two.predict(SENTENCES)


def test_batches_are_parsed_as_one(monkeypatch):
    parser = GrammarParser(0.1, terminals="both", max_iter=1, random_state=0).fit(TRAIN)
    few = [SENTENCES[0], [], [("ice", "??")], *SENTENCES[1:5]]
    whole = parser.predict(few)
    assert whole[1] is None
    monkeypatch.setattr("structsvm.tasks.grammar.model.BATCH", 2)
    assert parser.predict(few) == whole
    with pytest.raises(ValueError, match="sentence 3: a token must be a str or a pair"):
        parser.predict([*few[:3], [("a", "b", "c")]])


def test_threads_that_fail_stop_the_others(monkeypatch):
    model, ended = GrammarParser(0.1, max_iter=1, random_state=0).fit(TRAIN).model_, threading.Event()
    few = [3 * words for words in SENTENCES[:6]]  # charts that are large enough to look whether they are to stop
    assert model.predict(few, on_no_parse="flat", n_jobs=3) == model.predict(few, on_no_parse="flat")
    first, at_work = model.oracle.parse_all, threading.Event()

    def parse_all(*arguments, words, parser, cost):
        number = parsers.index(parser)  # in the order in which threads made them
        if number == 1:
            try:
                while True:
                    list(first(*arguments, words=words, parser=parser, cost=cost))
                    at_work.set()
            except KeyboardInterrupt:
                ended.set()
                raise
        if number == 0 and at_work.wait():
            raise ValueError("no words")
        yield from first(*arguments, words=words, parser=parser, cost=cost)

    parsers, make, all_have_one = [], model.oracle.parser, threading.Barrier(3, timeout=60.0)

    def parser():
        made = make()
        parsers.append(made)
        all_have_one.wait()
        return made

    monkeypatch.setattr(model.oracle, "parser", parser)
    monkeypatch.setattr(model.oracle, "parse_all", parse_all)
    with pytest.raises(ValueError, match=r"sentence \d+: no words"):
        model.predict(few, on_no_parse="flat", n_jobs=3)
    assert ended.wait(60.0) and len(parsers) == 3


def test_warm_start_goes_on():
    parser = GrammarParser(1.0, warm_start=True, max_iter=2, random_state=0).fit(TRAIN)
    first = parser.result_.dual
    assert parser.fit(TRAIN).result_.dual > first and parser.n_iter_ == 4
    # Other trees: their problem around the present weights, as `partial_fit` solves it.
    batch = copy.deepcopy(parser).partial_fit(TRAIN[:-1])
    parser.set_params(max_iter=1).fit(TRAIN[:-1])
    assert parser.n_iter_ == 1 and np.array_equal(parser.coef_, batch.coef_)
    with pytest.raises(ValueError, match="trained with another 'grammar__v'"):
        parser.set_params(grammar=TreebankGrammar(v=2)).fit(TRAIN)


@pytest.mark.parametrize(
    ("first", "then"),
    [
        (None, {}),
        ({"features": SpanFeatures(bits=6)}, {"loss": "f1"}),
        ({"loss": "log", "C": 1.0}, {}),
        ({}, {"loss": "log", "C": 1.0}),
    ],
    ids=["pcfg", "hamming-f1", "log-hamming", "hamming-log"],
)
def test_weights_of_another_kind_are_where_training_starts(first, then):
    usual = {"C": 0.3, "solver": "larank", "loss": "hamming", "max_iter": 1, "random_state": 0}
    trees = TRAIN[:12]
    if first is None:
        parser = GrammarParser.from_counts(trees, warm_start=True, **usual)
    else:
        parser = GrammarParser(warm_start=True, **usual | first).fit(trees)
    weights, rules = parser.coef_.copy(), parser.model_.oracle.grammar
    params = usual | then
    parser.set_params(**params).fit(trees)
    oracle = parser.model_.oracle
    assert oracle.grammar is rules and oracle.loss_name == params["loss"] and oracle.span_features
    assert parser.n_iter_ == 1 and parser.predict(SENTENCES[:1])[0] is not None
    assert parser.temperature_ == (1.0 if params["loss"] == "log" else None)
    base = np.concatenate([weights, np.zeros(oracle.n_features - len(weights))])
    kind = ConditionalLikelihood if params["loss"] == "log" else LaRank
    solver = kind(C=params["C"], max_iter=1, random_state=0)
    problem = oracle.bind(None, encode_trees(parser.model_.terminals, 1, trees), **solver.formulation())
    assert np.array_equal(parser.coef_, solver.solve(problem, base=base).weights)
    # From here on, the same run.
    before = parser.result_.n_iter
    assert parser.fit(trees).n_iter_ == before + 1


def test_sentences_and_their_trees():
    parser = GrammarParser(max_iter=1, random_state=0).fit(TRAIN)
    for X in ([tree.tokens() for tree in TRAIN], [[tag for _, tag in tree.tokens()] for tree in TRAIN]):
        assert np.array_equal(GrammarParser(max_iter=1, random_state=0).fit(X, TRAIN).coef_, parser.coef_)
    assert parser.score(SENTENCES, TEST) == parser.score(TEST) > 0.0
    by_word = GrammarParser(terminals="words", max_iter=1).fit(
        [["a", "(", ")"]], ["(S (NN a) (-LRB- -LRB-) (-RRB- -RRB-))"]
    )
    assert str(by_word.predict([["a", "(", ")"]])[0]) == "(S (NN a) (-LRB- -LRB-) (-RRB- -RRB-))"
    weights, tree = parser.coef_, "(S (DT a) (NN b))"
    for X, message in (
        ([], "X has 0 sentences, y has 1 trees"),
        ([["DT"]], "sentence 0: it has 1 tokens, and its tree 2 words"),
        ([["DT", "b"]], r"sentence 0: its token 1 is 'b', and its tree has \('b', 'NN'\) there"),
        ([["DT", ("c", "NN")]], "sentence 0: its token 1 is"),
        ([["DT", 3]], "sentence 0: its token 1 is 3"),
        (["DT"], "sentence 0: it has 1 tokens, and its tree 2 words"),
        ([tree], "a sentence must be a list of words or text, and this seems to be a tree"),
    ):
        for call in (parser.fit, parser.partial_fit, parser.score):
            with pytest.raises(ValueError, match=message):
                call(X, [tree])
    assert parser.coef_ is weights


@pytest.mark.parametrize("terminals", ["tags", "words"])
def test_partial_fit(terminals):
    parser = GrammarParser(None, terminals=terminals, grammar=TreebankGrammar(h=None), random_state=0).partial_fit(
        TRAIN
    )
    first = GrammarParser(None, terminals=terminals, grammar=TreebankGrammar(h=None), max_iter=1, random_state=0).fit(
        TRAIN
    )
    assert np.array_equal(parser.coef_, first.coef_) and parser.n_iter_ == 1
    grammar = parser.model_.oracle.grammar
    parser.partial_fit([tree.tokens() for tree in TRAIN[:30]], TRAIN[:30], None, np.ones(30))
    assert parser.model_.oracle.grammar is grammar and (parser.coef_ != first.coef_).any()
    assert parser.result_.n_iter == 1 and parser.result_.dual <= parser.result_.primal
    before = vars(parser).copy()
    for tree, message in (
        ("(TOP (S (DT a) (XX b)))", "tree 1: the grammar has no rule S -> "),
        ("(X (S (DT a) (NN b)))", "tree 1: the root 'X' is not a start symbol"),
    ):
        with pytest.raises(ValueError, match=message):
            parser.partial_fit([str(TRAIN[0]), tree])
    with pytest.raises(ValueError, match="has no meaning here: trees have no classes"):
        parser.partial_fit(TRAIN, None, ["S"])
    with pytest.raises(ValueError, match="trained with another 'grammar__h'"):
        parser.set_params(grammar=TreebankGrammar(h=1)).partial_fit(TRAIN)
    assert vars(parser) == before | {"grammar": parser.grammar}
    # And `fit` goes on from there.
    parser.set_params(grammar=TreebankGrammar(h=None), warm_start=True, max_iter=1)
    again = copy.deepcopy(parser).partial_fit(TRAIN)
    assert np.array_equal(parser.fit(TRAIN).coef_, again.coef_)


def test_words_of_a_stream_that_no_class_knows():
    parser = GrammarParser(terminals="words", random_state=0).partial_fit(["(S (NN a) (VB b))", "(S (NN c) (VB b))"])
    assert parser.model_.oracle.grammar.terminals == ["<unk>", "b"]
    parser.partial_fit(["(S (NN Walking) (VB b))"])
    with pytest.raises(ValueError, match="the grammar has no rule VB -> '<unk>'"):
        parser.partial_fit(["(S (NN a) (VB Walking))"])


@pytest.mark.parametrize(
    "changes",
    [
        {"grammar__h": None},
        {"grammar__v": 2},
        {"features__templates": ()},
        {"features__bits": 3},
        {"terminals": "tags"},
        {"grammar__min_count": 3},
        {"grammar__max_unary": 9},
        {"max_length": 300},
        {"max_chart_bytes": 10**9},
    ],
)
def test_warm_start_with_another_grammar(changes, tmp_path):
    parser = GrammarParser(terminals="words", warm_start=True, max_iter=1, random_state=0).fit(TRAIN[:20])
    parser.set_params(grammar=TreebankGrammar(), features=SpanFeatures())  # as None
    weights, name = parser.coef_.copy(), next(iter(changes))
    before = parser.get_params()[name]
    with pytest.raises(ValueError, match=f"trained with another '{name}'"):
        parser.set_params(**changes).fit(TRAIN[:20])
    assert np.array_equal(parser.coef_, weights)
    parser.set_params(**{name: before}).fit(TRAIN[:20]).save(tmp_path / "m.model")
    loaded = GrammarParser.load(tmp_path / "m.model")
    assert loaded.n_iter_ == 2 and loaded.loss == loaded.model_.oracle.loss_name == "hamming"


# ---- the grammar ---------------------------------------------------------------------------------


def test_rules_of_the_treebank():
    parser = GrammarParser.from_counts(["(S (NP (DT a) (NN b)) (VP (VB c)))", "( (S (NP-SBJ (NN b)) (VP (VB d))))"])
    rules = dict(parser.grammar_)
    assert rules[Rule("NP", (Terminal("DT"), Terminal("NN")))] == pytest.approx(np.log(0.5))
    assert rules[Rule("TOP", ("S",))] == 0.0 and len(rules) == 5
    assert "NP -> 'DT' 'NN' [0.5]" in parser.grammar_text().splitlines()
    assert "VP -> 'VB'" in parser.grammar_text(weights=False).splitlines()
    assert parse_rules(parser.grammar_text(weights=False)) == list(rules)


LABELS = [
    "(S (NP (PRP$ '') (NN x)) (ADVP|PRT (RB `` )) (. .))",
    """(S (-LRB- -LRB-) (# ") ($ $) (: --) (, ,) (ADVP|PRT (RP a#b)) (-RRB- -RRB-))""",
]


def check_text(trees, **options):
    """The text is what it was made from, for us and for NLTK."""
    nltk = pytest.importorskip("nltk")
    parser = GrammarParser.from_counts(trees, **options)
    text = parser.grammar_text(weights=False)
    assert parse_rules(text) == [rule for rule, _ in parser.grammar_]
    assert len(nltk.CFG.fromstring(text).productions()) == len(parser.grammar_)
    read = nltk.PCFG.fromstring(parser.grammar_text()).productions()
    assert [p.prob() for p in read] == pytest.approx([np.exp(weight) for _, weight in parser.grammar_])


@pytest.mark.parametrize("options", [{"h": None}, {"h": 0}, {"h": 1, "v": 2}])
@pytest.mark.parametrize("terminals", ["tags", "words"])
def test_every_label_of_a_treebank_can_be_written(options, terminals):
    check_text(LABELS, terminals=terminals, grammar=TreebankGrammar(**options))


@pytest.mark.parametrize(
    "options", [{"grammar": TreebankGrammar(h=None)}, {"grammar": TreebankGrammar(h=1)}, {"terminals": "words"}]
)
def test_treebank_sample_as_text(options):
    if "STRUCTSVM_DATA" not in os.environ:
        pytest.skip("STRUCTSVM_DATA does not name a data folder")
    check_text(fetch_treebank_sample().train[:1000], **options)


def test_labels_that_look_like_tags():
    trees = ["(S (X a) (B b))", "(S ('X' (C c)) (B b))"]
    for h in (None, 1):
        parser = GrammarParser(max_iter=1, grammar=TreebankGrammar(h=h), features=SpanFeatures(templates=())).fit(trees)
        assert [rule for rule, _ in parser.grammar_] == [
            Rule("S", (Terminal("X"), Terminal("B"))),
            Rule("S", ("'X'", Terminal("B"))),
            Rule("'X'", (Terminal("C"),)),
        ]
        assert len(parser.coef_) == 3


def test_the_memory_of_children_is_chosen_by_what_templates_see():
    def order(**params):
        return GrammarParser(C=0.1, max_iter=1, **params).fit(TRAIN[:5]).model_.oracle.grammar.h

    assert order() == order(terminals="both") == order(terminals="words") == 0
    assert order(features=SpanFeatures(templates="rule split.terminal")) == 0
    assert order(loss="log") == order(features=SpanFeatures(templates=())) == 1
    assert GrammarParser.from_counts(TRAIN[:5]).model_.oracle.grammar.h == 1
    assert order(grammar=TreebankGrammar(h=2)) == 2 and order(grammar=TreebankGrammar(h=None)) is None


@pytest.mark.parametrize("options", [{"h": 0}, {"h": 1}, {"h": 2, "v": 2}, {"v": 3}])
def test_markovisation_and_span_features(options):
    parser = GrammarParser(max_iter=6, random_state=0, grammar=TreebankGrammar(**options)).fit(TRAIN)
    predicted = parser.predict(SENTENCES)
    assert [tree.tokens() for tree in predicted] == SENTENCES
    assert not any("^" in node.label or "<" in node.label for tree in predicted for node in tree.preorder())
    assert f1(parser) > 0.6


def test_templates():
    few = GrammarParser(
        C=0.1, max_iter=3, features=SpanFeatures(templates="first.terminal  last.terminal # a pair\n\nlength", bits=4)
    )
    few.fit(TRAIN[:40])
    templates = few.model_.oracle.templates
    assert templates.texts == ("first.terminal last.terminal", "length") and templates.n_rows == 9 + 2**4
    assert len(few.coef_) == len(few.model_.oracle.grammar.features) + 25 * len(few.model_.oracle.grammar.categories)
    with pytest.raises(ValueError, match=r"template 'first.word': no column 'word'; there are terminal$"):
        clone(few).set_params(features=SpanFeatures(templates=["first.word"])).fit(TRAIN[:5])
    with pytest.raises(ValueError, match="The 'templates' parameter of SpanFeatures must be"):
        clone(few).set_params(features=SpanFeatures(templates=3)).fit(TRAIN[:5])
    with pytest.raises(ValueError, match="trained with another 'features__bits'"):
        clone(few).set_params(warm_start=True).fit(TRAIN[:5]).set_params(features__bits=5).fit(TRAIN[:5])


# The tag does not tell whether "on x" belongs to the noun; the word does.
CHAIRS = [
    f"(S (NP (PRP I)) (VP (VBD saw) (NP (NP (DT a) (NN {noun})) (PP (IN on) (NP (NN {last}))))))"
    for noun in ("man", "cat", "dog")
    for last in ("legs", "feet")
] + [
    f"(S (NP (PRP I)) (VP (VBD saw) (NP (DT a) (NN {noun})) (PP (IN on) (NP (NN {last})))))"
    for noun in ("man", "cat", "dog")
    for last in ("monday", "sunday")
]


def test_words_beside_tags(tmp_path):
    by_tags = GrammarParser(C=1.0, max_iter=10, random_state=0).fit(CHAIRS)
    both = clone(by_tags).set_params(terminals="both").fit(CHAIRS)
    assert both.score(CHAIRS) == 1.0 > by_tags.score(CHAIRS)
    sentence = parse_tree(CHAIRS[-1].replace("man", "hen")).tokens()
    assert "(VP (VBD saw) (NP (DT a)" in str(both.predict([sentence])[0])
    for bad in ([tag for _, tag in sentence], ["I", *sentence[1:]]):
        with pytest.raises(ValueError, match=r"sentence 0: with terminals='both' a token must be a pair \(word, tag\)"):
            both.predict([bad])
    path = tmp_path / "both.model"
    both.save(path)
    loaded = structsvm.load(path)
    assert loaded.predict([sentence]) == both.predict([sentence]) and loaded.score(CHAIRS) == 1.0
    assert loaded.model_.oracle.templates.texts == both.model_.oracle.templates.texts


def test_tags_of_sentences_may_be_others_than_those_of_their_trees():
    trees = [parse_tree(text) for text in CHAIRS]
    wrong = [[(word, "XX" if word == "saw" else tag) for word, tag in tree.tokens()] for tree in trees]
    parser = GrammarParser(C=1.0, terminals="both", max_iter=5, random_state=0).fit(wrong, trees)
    assert parser.predict(wrong)[0].tokens() == wrong[0]
    assert parser.score(wrong, trees) > 0.9
    with pytest.raises(ValueError, match="sentence 0: its token 0 is 'I'; with terminals='both' it must be a pair"):
        parser.fit([tree.leaves() for tree in trees], trees)
    with pytest.raises(ValueError, match=r"sentence 1: its token 2 is \('the', 'DT'\), and its tree has"):
        parser.fit([wrong[0], [*wrong[1][:2], ("the", "DT"), *wrong[1][3:]]], trees[:2])


def test_start_symbols():
    trees = [*(f"(S (NN a{k}))" for k in range(3)), "(FRAG (NN b))"]
    generative = GrammarParser.from_counts(trees)
    assert generative.start_ == {"S": pytest.approx(np.log(0.75)), "FRAG": pytest.approx(np.log(0.25))}
    assert str(generative.predict([["NN"]])[0]) == "(S (NN NN))"
    parser = GrammarParser(C=10.0, features=SpanFeatures(templates=()), tol=1e-6, max_iter=100, random_state=0)
    parser.fit([*trees[-1:], "(S (NN a) (VB b))"] * 2)
    assert len(parser.grammar_) == 2 and len(parser.coef_) == 4
    assert parser.start_["FRAG"] + dict(parser.grammar_)[Rule("FRAG", (Terminal("NN"),))] == pytest.approx(
        parser.predict_kbest([["NN"]], 1)[0][0][1]
    )
    assert GrammarParser.from_counts(TRAIN[:5]).start_ == {"TOP": 0.0}


# ---- sentences -----------------------------------------------------------------------------------


def test_tokens():
    parser = GrammarParser(max_iter=2, random_state=0).fit(TRAIN)
    sentence = SENTENCES[0]
    by_pair, by_tag = parser.predict([sentence, [tag for _, tag in sentence]])
    assert by_pair.leaves() == [word for word, _ in sentence]
    assert by_tag.leaves() == [tag for _, tag in by_pair.tokens()]
    for bad, message in (
        (["NN", 3], "sentence 1: a token must be a str or a pair"),
        (None, "sentence 1: a sentence must be a list of tokens, got None"),
        (["NN"] * 501, "sentence 1: a sentence of 501 words is longer than the cap max_length=500"),
    ):
        with pytest.raises(ValueError, match=message):
            parser.predict([sentence, bad])
        with pytest.raises(ValueError, match=message):
            parser.predict_kbest([sentence, bad], 2)
    for k in (0, -1, 1.5, "x"):
        with pytest.raises(ValueError, match="k must be an integer of at least 1"):
            parser.predict_kbest([sentence], k)
    with pytest.raises(ValueError, match="there are no trees"):
        parser.score([])


def test_what_the_grammar_does_not_cover():
    parser = GrammarParser(max_iter=2, random_state=0).fit(TRAIN)
    with pytest.warns(AdviceWarning, match=r"no tree for 1 of 2 sentences \(50.0%; sentence 1 is the first\)"):
        assert str(parser.predict([SENTENCES[0], [("a", "XX"), ("(", "YY")]])[1]) == "(TOP (XX a) (YY -LRB-))"
    with pytest.warns(AdviceWarning, match="no tree for 1 of 1 sentences"):
        assert parser.predict_kbest([["XX"]], 3) == [[(parse_tree("(TOP (XX XX))"), -np.inf)]]
    parser.set_params(on_no_parse="raise")
    for predict in (parser.predict, lambda sentences: parser.predict_kbest(sentences, 2)):
        with pytest.raises(NoParseError, match="sentence 1: the grammar has no tree for 'XX'"):
            predict([SENTENCES[0], ["XX"]])


@pytest.mark.parametrize("v", [1, 2])
@pytest.mark.parametrize("root", ["TOP", "S"])
def test_only_roots_have_a_label_that_only_roots_had(v, root):
    """Such as TOP, above one constituent, which then stands there by itself; S, which also occurs below, stays."""
    tree = "(TOP (S (NP a b) (VP c)))" if root == "TOP" else "(S (NP a b) (VP c (S (NP a b) (VP c))))"
    parser = GrammarParser(C=1.0, grammar=TreebankGrammar(v=v, min_count=1), terminals="words", random_state=0).fit(
        [tree] * 3
    )
    with pytest.warns(AdviceWarning, match="no tree for 1 of 1"):
        found = str(parser.predict([["a", "b", "c", *"aabca"]])[0])
    assert found.startswith("(TOP (S (NP a b) (VP c)) a (S" if root == "TOP" else "(S (S (NP a b) (VP c))"), found


def test_what_is_decoded():
    """Brackets where scores are known to be logarithms of probabilities; files and threads keep the choice."""
    parser = GrammarParser(C=0.01, max_iter=2, random_state=0).fit(TRAIN)
    likely, best = (parser.set_params(decode=decode).predict(SENTENCES) for decode in ("brackets", "tree"))
    assert best == [ranked[0][0] for ranked in parser.predict_kbest(SENTENCES, 1)] != likely
    assert parser.set_params(decode=None, n_jobs=2).predict(SENTENCES) == likely
    assert parser.model_.predict(SENTENCES) == likely
    parser.model_.temperature = 1e-3
    assert parser.predict(SENTENCES) == best
    for params in ({"loss": "f1"}, {"solver": LaRank(C=1.0, rescaling="slack"), "C": None}):
        other = GrammarParser(**{"C": 1.0, "max_iter": None, "random_state": None} | params).fit(TRAIN[:20])
        assert other.predict(SENTENCES) == other.set_params(decode="tree").predict(SENTENCES)
        with pytest.raises(ValueError, match="decode='brackets' needs probabilities, and the scores of this model"):
            other.set_params(decode="brackets").predict(SENTENCES)
    pcfg = GrammarParser.from_counts(TRAIN)
    assert pcfg.score(TEST) >= pcfg.set_params(decode="tree").score(TEST)


@pytest.mark.parametrize("terminals", ["tags", "words"])
def test_labels_keep_their_circumflex(terminals):
    tree = parse_tree("(S^x (NP^S (^x a) (N^ b)))")
    parser = GrammarParser(terminals=terminals, grammar=TreebankGrammar(min_count=1), max_iter=1).fit([tree])
    sentence = tree.tokens()
    assert parser.predict([sentence])[0] == parser.predict_kbest([sentence], 1)[0][0][0] == tree
    uncovered = sentence[::-1] if terminals == "tags" else ["b", "a"]
    assert str(parser.predict([uncovered])[0]) == "(S^x (N^ b) (^x a))"
    with pytest.raises(ValueError, match=r"tree 0: the label .* has a '\^', which vertical Markovisation uses"):
        GrammarParser(grammar=TreebankGrammar(v=2)).fit([tree])


def test_labels_that_annotations_would_spoil():
    trees = ["(S (NP^S (A x) (B y)) (V z))", "(S (NP^V (C x) (B y)) (V z))"]
    with pytest.raises(ValueError, match=r"the labels 'NP\^S' and 'NP\^V' differ only after a '\^'"):
        GrammarParser().fit(trees)
    empty = ["(S ( (N x) (V y)) (V z))", "(S (N x) (V z))"] * 5
    with pytest.raises(ValueError, match="tree 0: a node below 'S' has no label, to which v=2 would add"):
        GrammarParser(grammar=TreebankGrammar(v=2)).fit(empty)
    assert GrammarParser(random_state=0).fit(empty).score(empty) == 1.0


@pytest.mark.parametrize("loss", ["f1", "zero_one"])
def test_likely_brackets_where_c_is_chosen(loss):
    trees = make_treebank(40, random_state=0)
    parser = GrammarParser(loss=loss, decode="brackets", probability=True, max_iter=3, random_state=0).fit(trees)
    assert parser.C_ > 0.0 and parser.temperature_ > 0.0 and parser.score(trees) > 0.5


def test_a_root_without_rules_is_left_out_with_its_tree():
    trees = ["(S (NP (N x)) (VP (V y)))"] * 10
    with pytest.warns(AdviceWarning, match=r"1 of 11 trees .* are left out.*tree 10 is the first"):
        parser = GrammarParser(C=1.0, random_state=0).fit([*trees, "(X (... (N x) (V y)))"])
    assert str(parser.predict([["N", "V"]])[0]) == "(S (NP (N N)) (VP (V V)))"


@pytest.mark.parametrize("terminals", ["tags", "both"])
def test_functions_of_tags_in_sentences(terminals):
    marked = [parse_tree("(S (NP (D la) (N-F casa)) (VP (V es) (A roja)))")] * 5
    X = [list(tree.tokens()) for tree in marked]
    for given in ((marked,), (X, marked)):
        parser = GrammarParser(terminals=terminals, C=1.0, random_state=0).fit(*given)
        assert parser.score(marked) == parser.score(X, marked) == 1.0
        assert str(parser.predict(X[:1])[0]).startswith("(S (NP (D la) (N")


def test_odd_input_of_sentences():
    trees = make_treebank(10, random_state=0)
    parser = GrammarParser(terminals="words", C=1.0, max_iter=1, random_state=0).fit(trees)
    with pytest.raises(ValueError, match="sentence 0: a word and its tag must not be empty, got ''"):
        parser.predict([[""]])
    for X in (None, 5, "a b"):
        with pytest.raises(ValueError, match="X must be a list of sentences"):
            parser.score(X, trees)
    assert parser.score((tree.leaves() for tree in trees), trees) == parser.score(trees)
    for k in (True, 0, 1.5):
        with pytest.raises(ValueError, match="k must be"):
            parser.predict_kbest([trees[0].leaves()], k)
    assert len(parser.predict_kbest([trees[0].leaves()[:2]], 10**30)) == 1
    with pytest.raises(ValueError, match=r"'templates' parameter of SpanFeatures must have str\. Got 5"):
        GrammarParser(features=SpanFeatures(templates=[5])).fit(trees)
    with pytest.raises(ValueError, match="'columns' must return"):
        GrammarParser(features=SpanFeatures(columns=lambda words: None)).fit(trees)
    tags = GrammarParser(C=1.0, max_iter=1, random_state=0).fit(trees)
    with pytest.raises(ValueError, match="sentence 0: a word and its tag must not be empty"):
        tags.predict([[("a", ""), *trees[0].tokens()]])


def test_flat_trees_have_the_heaviest_root():
    trees = ["(FRAG (NN b))", *(f"(S (NN a{k}) (VB b))" for k in range(3))]
    assert str(GrammarParser.from_counts(trees).predict([["XX"]])[0]) == "(S (XX XX))"


def test_kbest():
    parser = GrammarParser(max_iter=5, random_state=0).fit(TRAIN)
    for sentence, ranked in zip(SENTENCES[:10], parser.predict_kbest(SENTENCES[:10], 5), strict=True):
        assert ranked[0][0] == parser.predict([sentence])[0]
        scores = [score for _, score in ranked]
        assert scores == sorted(scores, reverse=True) and len({str(tree) for tree, _ in ranked}) == len(ranked)


def test_words():
    parser = GrammarParser(terminals="words", max_iter=8, random_state=0).fit(TRAIN)
    predicted = parser.predict([tree.leaves() for tree in TEST])
    assert [tree.leaves() for tree in predicted] == [tree.leaves() for tree in TEST]
    assert bracket_scores(TEST, predicted).tag_accuracy > 0.5
    assert parser.predict([[("never", "ZZ"), ("Seen", "ZZ"), ("Seen", "ZZ")]])[0].leaves() == ["never", "Seen", "Seen"]
    generative = GrammarParser.from_counts(TRAIN, terminals="words")
    assert np.isfinite(generative.coef_).all() and generative.score(TEST) > 0.3
    assert parser.score(TEST) == bracket_scores(TEST, parser.predict(SENTENCES)).f1


def test_a_sentence_without_a_tree_does_not_walk_through_the_lexicon():
    parser = GrammarParser(
        terminals="words", grammar=TreebankGrammar(min_count=1), max_iter=1, C=1.0, random_state=0
    ).fit(["(S (A a) (B b))"] * 3)
    grammar = parser.model_.oracle.grammar
    assert str(parser.predict([["b", "a"]])[0]) == "(S (B b) (A a))"
    grammar.lexical_number = None  # the numbers by terminal are enough
    assert str(parser.predict([["b", "a", "a"]])[0]) == "(S (B b) (A a) (A a))"


def test_word_classes():
    words = {
        "1,200.5": "<unk-number>",
        "walking": "<unk-ing>",
        "Boston": "<unk-Cap>",
        "USA": "<unk-CAPS>",
        "B-52s": "<unk-Cap-digit-dash-s>",
        "x": "<unk>",
    }
    assert {word: word_class(word, ENGLISH) for word in words} == words
    assert word_class("1" * 200_000 + "x", ENGLISH) == "<unk-digit>"  # in no quadratic time
    assert word_class("+", ENGLISH) == word_class(":/.", ENGLISH) == "<unk>"


def test_endings_are_learnt():
    rare = [f"{chr(97 + k % 26)}x{'aeiou'[k % 5]}{end}" for k in range(30) for end in ("heit", "\u03c9\u03bd")]
    found = common_endings([*rare, *(f"{k}%" for k in range(40))])
    assert found[:2] == ("heit", "eit") and "\u03c9\u03bd" in found and "%" not in found
    assert (
        word_class("Freiheit", found) == "<unk-Cap-heit>"
        and word_class("\u03bb\u03cc\u03b3\u03c9\u03bd", found) == "<unk-\u03c9\u03bd>"
    )
    trees = [parse_tree(f"(S (NN {word}))") for word in rare]
    terminals = Terminals.of_trees("words", trees, 2)
    assert terminals.endings == found and terminals.of_word("Klugheit") == "<unk-Cap-heit>"
    assert GrammarParser(terminals="words", C=1.0, max_iter=1).fit(trees).model_.terminals.endings == found


# ---- bad input -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("trees", "message"),
    [
        ([], "there are no trees"),
        (
            "(S (A a))",
            r"GrammarParser learns from examples, not from the text '\(S \(A a\)\)': .*read_trees reads files",
        ),
        (parse_tree("(S (A a))"), "trees must be a list"),
        (None, "trees must be a list of trees, got None"),
        (["(S (A a)"], "tree 0: .*lacks 1 closing brackets"),
        (["(S (A a))", 3], "tree 1: expected a tree, got 3"),
        (["(S (-NONE- *))"], "tree 0: nothing is left"),
        (["(S (A a))", "(S (A a) b)"], "tree 1: the word 'b' has no tag"),
        (["(A a)"], "tree 0: the tree is only a tag and its word"),
        (["(S (A a) " + "(A a)" * 500 + ")"], "tree 0: 501 words are more than the cap max_length=500"),
    ],
)
def test_bad_trees(trees, message):
    with pytest.raises(ValueError, match=message):
        GrammarParser().fit(trees)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"C": -1.0}, "The 'C' parameter of GrammarParser must be a float in the range"),
        ({"loss": "f2"}, "The 'loss' parameter of GrammarParser must be 'hamming'"),
        ({"grammar": TreebankGrammar(h=-1)}, "The 'h' parameter of TreebankGrammar must be"),
        ({"grammar": TreebankGrammar(v=0)}, "The 'v' parameter of TreebankGrammar must be"),
        ({"grammar": SpanFeatures()}, "The 'grammar' parameter of GrammarParser must be a TreebankGrammar or None"),
        ({"features": SpanFeatures(bits=25)}, "The 'bits' parameter of SpanFeatures must be"),
        ({"features": False}, "The 'features' parameter of GrammarParser must be a SpanFeatures or None"),
        ({"terminals": "chars"}, "The 'terminals' parameter"),
        ({"solver": LaRank(), "C": 1.0}, "'C' parameter is set beside a solver object"),
        ({"max_chart_bytes": 100}, "above the cap max_chart_bytes=100"),
        ({"max_chart_bytes": 2**63}, "The 'max_chart_bytes' parameter"),
        ({"max_length": 2**70}, "The 'max_length' parameter"),
    ],
)
def test_bad_parameters(options, message):
    with pytest.raises(ValueError, match=message):
        GrammarParser(**options).fit(TRAIN[:5])


def test_unary_cycles_in_trees_are_merged():
    parser = GrammarParser(max_iter=2, grammar=TreebankGrammar(clean=False)).fit(
        ["(S (A (B (A (NN a)))) (VB b))", "(S (NP (NP (NN a))) (VB b))"]
    )
    assert [str(rule) for rule, _ in parser.grammar_][:2] == ["S -> A 'VB'", "A -> 'NN'"]
    deep = "(S (A (NN a)) " + "(S (A (NN a)) " * 390 + "(B (NN b))" + ")" * 391
    assert GrammarParser(max_iter=1).fit([deep]).predict([["NN"] * 392])[0].leaves() == ["NN"] * 392


# ---- files and the command line ------------------------------------------------------------------


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"grammar": TreebankGrammar(h=1, v=2), "features": SpanFeatures()},
        {
            "grammar": TreebankGrammar(h=0),
            "features": SpanFeatures(templates="last.terminal\nrule split.terminal\nrule first.terminal"),
        },
        {"terminals": "words"},
        {"solver": LaRank(C=0.2, max_iter=2)},
    ],
)
def test_save_and_load(tmp_path, options):
    parser = GrammarParser(random_state=0, max_iter=None if "solver" in options else 2, **options)
    if isinstance(parser.solver, LaRank):
        parser.random_state = None
    parser.fit(TRAIN[:60]).save(tmp_path / "m.model", training_state=True)
    for mmap in (False, True):
        other = structsvm.load(tmp_path / "m.model", mmap=mmap)
        assert isinstance(other, GrammarParser) and repr(other) == repr(parser)
        assert other.predict(SENTENCES) == parser.predict(SENTENCES)
        assert other.grammar_ == parser.grammar_
    if "solver" not in options:
        other = structsvm.load(tmp_path / "m.model").set_params(warm_start=True).fit(TRAIN[:60])
        assert other.result_.dual == parser.set_params(warm_start=True).fit(TRAIN[:60]).result_.dual


def test_damaged_models(tmp_path):
    path = tmp_path / "m.model"
    GrammarParser(max_iter=1, random_state=0).fit(TRAIN[:10]).save(path)
    file = read_model(path)
    changes = [
        ("weights", file.arrays["weights"][:-1], "array 'weights' has shape"),
        ("weights", file.arrays["weights"] * np.nan, "array 'weights' has values that are not finite"),
        ("rules", file.arrays["rules"] + 1000, "array 'rules' has values from"),
        ("rule_sizes", file.arrays["rule_sizes"][1:], "array 'rules' has .* symbols"),
    ]
    for name, array, message in changes:
        write_model(path, "grammar", file.meta, file.arrays | {name: array})
        with pytest.raises(ModelFileError, match=message):
            structsvm.load(path)
    for name in ("grammar", "oracle", "terminals", "params", "v"):
        write_model(path, "grammar", {k: v for k, v in file.meta.items() if k != name}, file.arrays)
        with pytest.raises(ModelFileError, match="not a sound grammar model"):
            structsvm.load(path)


def run(*arguments, code=0, **options):
    done = CliRunner().invoke(main, [str(a) for a in arguments], **options)
    assert done.exit_code == code, done.output
    return done.output


# Click 8.4 deprecates a stream that has no other name in click 8.1.
in_process = pytest.mark.filterwarnings("ignore:'get_(text|binary)_stream' is deprecated:DeprecationWarning")


@in_process
def test_command_line(tmp_path):
    write_trees(tmp_path / "train.mrg", TRAIN)
    write_trees(tmp_path / "test.mrg", TEST)
    model = tmp_path / "m.model"
    said = run("train", "grammar", tmp_path / "train.mrg", "--model", model, "--max-iter", 4, "--loss", "f1")
    assert said.startswith("150 trees, ") and "primal" in said
    parser = structsvm.load(model)
    scores = json.loads(run("evaluate", model, tmp_path / "test.mrg", "--json"))
    expected = bracket_scores(TEST, parser.predict(SENTENCES))
    assert scores["f1"] == expected.f1 and scores["accuracy"] == expected.accuracy
    assert "Bracketing F-measure" in run("evaluate", model, tmp_path / "test.mrg")
    lines = run("predict", model, tmp_path / "test.mrg").splitlines()
    assert lines == [str(tree) for tree in parser.predict(SENTENCES)]
    text = "\n".join(" ".join(f"{word}/{tag}" for word, tag in sentence) for sentence in SENTENCES)
    assert run("predict", model, "-", input=text).splitlines() == lines
    tags = " ".join(tag for _, tag in SENTENCES[0])
    assert run("predict", model, "-", input=tags).startswith("(TOP (")
    run("predict", model, tmp_path / "test.mrg", "-o", tmp_path / "out.mrg", "--pretty")
    assert read_trees(tmp_path / "out.mrg") == parser.predict(SENTENCES)
    ranked = run("predict", model, "-", "-k", 2, input=tags).splitlines()
    assert ranked[0].startswith("# 1 ") and parse_tree(ranked[1]).label == "TOP"
    assert "NP -> 'DT' 'NN'" in run("inspect", model, "--label", "NP")
    run("train", "grammar", tmp_path / "train.mrg", "--model", model, "--pcfg", "-q")
    assert structsvm.load(model).get_params() == GrammarParser(random_state=0).get_params()
    assert json.loads(run("evaluate", model, tmp_path / "test.mrg", "--json"))["f1"] > 0.5


@in_process
def test_command_line_errors(tmp_path):
    (tmp_path / "bad.mrg").write_text("(S (A a))\n(S (A a)\n")
    model = tmp_path / "m.model"
    said = run("train", "grammar", tmp_path / "bad.mrg", "--model", model, code=1)
    assert "bad.mrg:2: the tree that begins here lacks 1 closing brackets" in said and not model.exists()
    write_trees(tmp_path / "train.mrg", TRAIN[:10])
    run("train", "grammar", tmp_path / "train.mrg", "--model", model, "-q", "--max-iter", 1)
    assert "no sentences" in run("predict", model, "-", input="\n", code=1)
    assert "is not one of the nonterminals" in run("inspect", model, "--label", "XX", code=1)
    model.unlink()
    for smoothing in ("inf", "nan"):
        options = ("--model", model, "--pcfg", "--smoothing", smoothing)
        said = run("train", "grammar", tmp_path / "train.mrg", *options, code=2)
        assert f"--smoothing must be a number in [0, inf). Got {smoothing}" in said
    assert not model.exists()


@in_process
@pytest.mark.filterwarnings("ignore::structsvm.AdviceWarning")
@pytest.mark.parametrize("terminals", ["words", "both"])
def test_words_with_a_slash(tmp_path, terminals):
    write_trees(tmp_path / "train.mrg", TRAIN[:20])
    model = tmp_path / "m.model"
    run("train", "grammar", tmp_path / "train.mrg", "-m", model, "-q", "--max-iter", 1, "--terminals", terminals)
    if terminals == "both":
        assert "sentence 1: with terminals='both' a token must be a pair (word, tag), got 'b'" in run(
            "predict", model, "-", input="1/2/CD\n1/2/CD b\n", code=1
        )
    texts = ["1/2/CD\n1/2/CD b/NN\n", *(["1/2\n1/2 b\n"] if terminals == "words" else [])]
    for text in texts:
        lines = [line for line in run("predict", model, "-", input=text).splitlines() if line.startswith("(")]
        assert [parse_tree(line).leaves() for line in lines] == [["1/2"], ["1/2", "b"]]


@in_process
@pytest.mark.filterwarnings("always:.*not covered by the grammar:structsvm.AdviceWarning")
def test_lines_of_output_are_those_of_the_sentences(tmp_path):
    write_trees(tmp_path / "train.mrg", TRAIN)
    model = tmp_path / "m.model"
    run("train", "grammar", tmp_path / "train.mrg", "--model", model, "-q", "--max-iter", 1)
    tags = " ".join(tag for _, tag in SENTENCES[0])
    text = f"{tags}\n\nXX YY\n{tags}\nXX\n"
    done = CliRunner().invoke(main, ["predict", str(model), "-"], input=text)
    best = str(structsvm.load(model).predict([tags.split()])[0])
    assert done.stdout.splitlines() == [best, "", "(TOP (XX XX) (YY YY))", best, "(TOP (XX XX))"]
    assert done.stderr == "warning: 2 of 4 sentences (50.0%) are not covered by the grammar\n"
    done = CliRunner().invoke(main, ["predict", str(model), "-", "-k", "1"], input=text)
    assert CliRunner().invoke(main, ["predict", str(model), "-", "-q"], input=text).stderr == ""
    lines = done.stdout.splitlines()
    assert lines[1] == best and lines[2:5] == ["", "# 1 -inf", "(TOP (XX XX) (YY YY))"] and len(lines) == 9
    assert done.stderr == "warning: 2 of 4 sentences (50.0%) are not covered by the grammar\n"


@in_process
def test_a_sentence_that_begins_with_a_bracket(tmp_path):
    (tmp_path / "t.mrg").write_text("(S (-LRB- -LRB-) (NN a) (-RRB- -RRB-))\n")
    for terminals in ("tags", "words"):
        options = ("-q", "--terminals", terminals, *(("--min-count", 1) if terminals == "words" else ()))
        run("train", "grammar", tmp_path / "t.mrg", "--model", tmp_path / "m", *options)
        sentence = "( a )\n" if terminals == "words" else "(/-LRB- a/NN )/-RRB-\n"
        assert run("predict", tmp_path / "m", "-", input=sentence) == (tmp_path / "t.mrg").read_text()


@in_process
@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("(S (A a))\n()\n", "t.mrg:2: an empty tree, ()"),
        ("(S (A a)))\n", "t.mrg:1: a closing bracket without an opening one"),
        ("", "t.mrg: no trees (the file is empty)"),
        ("(S (-NONE- *))\n", "tree 0: nothing is left of it without empty elements"),
        ("(A " * 10_000 + "x" + ")" * 10_000, "tree 0: the tree is only a tag and its word, (A x)"),
        ("(S (A (B b) " * 10_000 + "(C c)" + "))" * 10_000, "tree 0: 10001 words are more than the cap max_length=500"),
        ("".join(f"(N{k} " for k in range(1000)) + "(T x) (T y)" + ")" * 1000, "more than 100000 chains of up to"),
        ("(S " + "(A a)" * 501 + ")", "tree 0: 501 words are more than the cap max_length=500"),
    ],
)
def test_files_that_cannot_be_trained_on(tmp_path, text, message):
    (tmp_path / "t.mrg").write_text(text)
    said = run("train", "grammar", tmp_path / "t.mrg", "--model", tmp_path / "m.model", code=1)
    assert message in said and len(said) < 500 and list(tmp_path.iterdir()) == [tmp_path / "t.mrg"]


@in_process
def test_words_that_are_brackets_and_sentences_of_one_word(tmp_path):
    (tmp_path / "t.mrg").write_text("(S (-LRB- -LRB-) (NN a) (-RRB- -RRB-))\n(S (NN a))\n")
    model = tmp_path / "m.model"
    run("train", "grammar", tmp_path / "t.mrg", "--model", model, "-q")
    assert run("predict", model, tmp_path / "t.mrg").splitlines() == (tmp_path / "t.mrg").read_text().splitlines()
    tagged = run("predict", model, "-", input="(/-LRB- b/NN )/-RRB-\nc/NN\n")
    assert tagged.splitlines() == ["(S (-LRB- -LRB-) (NN b) (-RRB- -RRB-))", "(S (NN c))"]
    (tmp_path / "bad").write_text("(S\n(NP))")
    assert "bad:2: a node without children, (NP)" in run("predict", model, tmp_path / "bad", code=1)
    said = run("predict", model, "-", input="NN " * 501, code=1)
    assert "sentence 0: a sentence of 501 words is longer than the cap max_length=500" in said


@in_process
def test_pictures(tmp_path):
    write_trees(tmp_path / "train.mrg", TRAIN)
    model, picture = tmp_path / "m.model", tmp_path / "p.png"
    run("train", "grammar", tmp_path / "train.mrg", "--model", model, "-q", "--max-iter", 2)
    for command in ("evaluate", "inspect"):
        arguments = (tmp_path / "train.mrg",) if command == "evaluate" else ()
        said = run(command, model, *arguments, "--plot", picture)
        assert f"picture: {picture}" in said and picture.stat().st_size > 0
        picture.unlink()
    run("train", "grammar", tmp_path / "train.mrg", "--model", model, "-q", "--pcfg")
    assert "has no training history" in run("inspect", model, "--plot", picture, code=1)


def test_demo(tmp_path):
    said = run("demo", "grammar", "-o", tmp_path / "demo.png")
    assert "LaRank, F1 loss: F1" in said and Path(tmp_path / "demo.png").stat().st_size > 0


# ---- NLTK, and words in the place of tags ----------------------------------------------------------


BANK = [
    "(S (NP (DT the) (NN cat)) (VP (VBZ sleeps)))",
    "(S (NP (DT a) (NN dog)) (VP (VBZ sees) (NP (DT the) (NN cat))))",
]


def test_words_are_refused_by_a_parser_of_tags():
    parser = GrammarParser(C=1.0, max_iter=1, random_state=0).fit(BANK)
    for sentence in (["the", "cat", "sleeps"], ["sleeps"], ["The", "unicorn"], ["the", "cat", "sees", "DT"]):
        with pytest.raises(ValueError, match=r"sentence 0: .* Are they words"):
            parser.predict([sentence])
    with pytest.raises(ValueError, match=r"sentence 1: its pairs must be \(word, tag\)"):
        parser.predict_kbest([["DT", "NN", "VBZ"], [("DT", "the"), ("NN", "cat"), ("VBZ", "sleeps")]], 2)
    # A tag that training has not seen is none of these.
    with pytest.warns(AdviceWarning, match="no tree for 2 of 2"):
        trees = parser.predict([["DT", "NN", "XX"], ["XX", "YY"]])
    assert [tree.leaves() for tree in trees] == [["DT", "NN", "XX"], ["XX", "YY"]]


def test_trees_of_nltk_in_and_out():
    nltk = pytest.importorskip("nltk")
    theirs = [nltk.Tree.fromstring(text) for text in BANK]
    parser = GrammarParser(C=1.0, max_iter=1, random_state=0).fit(theirs)
    sentences = [tree.pos() for tree in theirs]
    assert [tree.to_nltk() for tree in parser.predict(sentences)] == theirs
    assert (GrammarParser(C=1.0, max_iter=1, random_state=0).fit(sentences, theirs).coef_ == parser.coef_).all()
    assert parser.score(theirs) == bracket_scores(theirs, BANK_TREES).f1 == 1.0


BANK_TREES = list(map(parse_tree, BANK))


def test_the_likeliest_of_several_start_symbols():
    trees = ["(S (NP (NN ice)) (VP (VBZ is)))"] * 100 + ["(FRAG (NP (NN ice)) (VP (VBZ is)))"]
    for order in (1, -1):
        parser = GrammarParser.from_counts(trees[::order], decode="brackets")
        assert parser.predict([["NN", "VBZ"]])[0].label == "S"
        (found,) = parser.predict_kbest([["NN", "VBZ"]], 3, probabilities=True)
        assert found[0][0].label == "S" and found[0][1] > 0.95


def test_own_columns_of_words_beside_nodes():
    """Values of a callable are as good as the columns of words: the same model."""
    trees = ["(S a (X (N b) (N p)))", "(S (X a (N b)) (N q))"] * 10
    params = {
        "terminals": "words",
        "grammar": TreebankGrammar(min_count=1, h=None),
        "C": 1.0,
        "prior": None,
        "random_state": 0,
    }
    whole = "last.{0}\nlast+1.{0}\nfirst.{0}"
    one = GrammarParser(features=SpanFeatures(templates=whole.format("word")), **params).fit(trees)
    other = GrammarParser(
        features=SpanFeatures(templates=whole.format("own1"), columns=lambda words: [word.lower() for word in words]),
        **params,
    ).fit(trees)
    assert other.result_.primal == pytest.approx(one.result_.primal)
    assert one.score(trees) == other.score(trees) == 1.0  # words without tags


def test_features_of_words_need_words():
    pairs = [["DT", "NN", "VBZ"]] * 5, ["(S (NP (DT the) (NN cat)) (VP (VBZ eats)))"] * 5
    parser = GrammarParser(
        terminals="tags", features=SpanFeatures(columns=lambda words: list(words)), C=1.0, random_state=0
    ).fit(*pairs)
    assert parser.predict([[("the", "DT"), ("cat", "NN"), ("eats", "VBZ")]])[0].label == "S"
    with pytest.raises(ValueError, match=r"with features of words a token must be a pair \(word, tag\), got 'DT'"):
        parser.predict([["DT", "NN", "VBZ"]])


def test_groups_nest_as_solvers_do(tmp_path):
    parser = GrammarParser(C=0.3, max_iter=2, random_state=0, grammar=TreebankGrammar(), features=SpanFeatures(bits=6))
    grid = {"grammar__v": [1, 2], "features__templates": [None, ()]}
    search = GridSearchCV(parser, grid, cv=2).fit([tree.tokens() for tree in TRAIN[:20]], TRAIN[:20])
    assert len(search.cv_results_["params"]) == 4 and parser.grammar.v == 1
    parser.set_params(grammar__v=2, features__templates=("length", "split.terminal")).fit(TRAIN[:20])
    parser.save(tmp_path / "m", training_state=True)
    other = structsvm.load(tmp_path / "m")
    assert repr(other) == repr(parser) and other.predict(SENTENCES) == parser.predict(SENTENCES)
    assert other.set_params(warm_start=True).fit(TRAIN[:20]).n_iter_ == 4
    with pytest.raises(ValueError, match="trained with another 'grammar__v'"):
        other.set_params(grammar__v=1).fit(TRAIN[:20])
    file = read_model(tmp_path / "m")
    for wrong in ({"group": "Nothing"}, {"params": {"depth": 1}}, {"params": {"v": 0}}, {"group": "SpanFeatures"}):
        params = file.meta["params"] | {"grammar": file.meta["params"]["grammar"] | wrong}
        write_model(tmp_path / "wrong", file.kind, file.meta | {"params": params}, file.arrays)
        with pytest.raises(ModelFileError, match="not a sound grammar model"):
            structsvm.load(tmp_path / "wrong")
