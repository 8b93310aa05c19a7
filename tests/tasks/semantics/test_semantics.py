"""SemanticParser: what it learns from bags, streams, files, bad input; RoboCup and GeoQuery."""

import os
import pickle
from contextlib import contextmanager
from itertools import chain
from types import SimpleNamespace

import numpy as np
import pytest
from forgeries import forgeries
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV

import structsvm
from structsvm import Checkpoint, ModelFileError
from structsvm.checkpoint import STATES
from structsvm.datasets import fetch_geoquery, fetch_robocup, make_ambig_child_world, make_ambig_house
from structsvm.metrics import alignment_error, meaning_scores
from structsvm.model_file import read_model, write_model
from structsvm.structures.meanings import MeaningGrammar, parse_meaning
from structsvm.tasks import Hybrid, Ospas, SemanticParser
from structsvm.tasks.semantics.model import SemanticModel
from structsvm.tasks.semantics.problem import SemanticProblem
from structsvm.tasks.semantics.solver import TURN
from structsvm.tasks.semantics.trees import folded, relations_in, symbols_in


def OspasParser(*args, **params):
    """A `SemanticParser` with the parameters of its method among its own."""
    own = {name: params.pop(name) for name in Ospas.parameter_names() if name in params}
    return SemanticParser(*args, method=Ospas(**own), **params)


needs_data = pytest.mark.skipif("STRUCTSVM_DATA" not in os.environ, reason="STRUCTSVM_DATA names no data folder")


def error_of(parser, data):
    found = [[symbol for _, symbol in pairs] for pairs in parser.predict_alignment(data.sentences)]
    return alignment_error(data.alignment, found)


# ---- learning ----------------------------------------------------------------------------------


@pytest.mark.parametrize("strategy", ["order_free", "random"])
@pytest.mark.parametrize("level", [0, 3])
def test_alignments_are_found_in_one_pass(strategy, level):
    house, test = make_ambig_house(2000, level, random_state=0), make_ambig_house(300, 0, random_state=1)
    parser = OspasParser(strategy=strategy, random_state=0).fit(house.sentences, house.bags)
    assert error_of(parser, test) < 0.05
    assert parser.score(test.sentences, test.meanings) > 0.97
    assert parser.n_iter_ == parser.result_.n_iter == 1
    assert parser.result_.n_argmax >= 2000 * 3 and np.isnan(parser.result_.gap)


def test_left_to_right_learns_too_but_less():
    house, test = make_ambig_house(1500, 1, random_state=0), make_ambig_house(200, 0, random_state=1)
    errors = [
        error_of(OspasParser(strategy=s, random_state=0).fit(house.sentences, house.bags), test)
        for s in ("left_right", "order_free")
    ]
    assert errors[1] <= errors[0] < 1.0


@pytest.mark.parametrize("level", [0, 2])
def test_nested_meanings(level):
    world, test = make_ambig_child_world(900, level, random_state=0), make_ambig_child_world(100, 0, random_state=9)
    parser = OspasParser(C=1.0).fit(world.sentences, world.bags)
    scores = meaning_scores(test.meanings, parser.predict(test.sentences))
    assert scores.f1 > 0.9
    assert max(meaning.count("(") for (meaning,) in test.meanings) == 4
    assert parser.relations_["saw"] == {2} and "mommy" in parser.symbols_


def test_several_meanings_of_one_sentence():
    house = make_ambig_house(1200, 0, random_state=0)
    pairs = list(zip(house.sentences, house.meanings, strict=True))
    both = [(f"{a} and {b}", [*m, *n]) for (a, m), (b, n) in zip(pairs[::2], pairs[1::2], strict=True)]
    parser = OspasParser(role_window=1).fit(house.sentences, house.meanings)
    train = [s for s, _ in both[:500]]
    parser.partial_fit(train, [m for _, m in both[:500]])
    predicted = parser.predict([s for s, _ in both[500:]])
    assert np.mean([len(p) for p in predicted]) > 1.3
    assert meaning_scores([m for _, m in both[500:]], predicted).f1 > 0.35
    assert max(map(len, OspasParser(max_meanings=1).fit(house.sentences, house.meanings).predict(train))) == 1


def test_noise_is_survived():
    """Three bags in ten without the right meaning."""
    house, test = make_ambig_house(2000, 2, random_state=0), make_ambig_house(200, 0, random_state=1)
    rng = np.random.default_rng(0)
    others = make_ambig_house(2000, 1, random_state=2).bags
    bags = [other if rng.random() < 0.3 else bag for bag, other in zip(house.bags, others, strict=True)]
    settings = {"strategy": "random", "average": True, "max_iter": 5, "random_state": 0}
    for refine, least in ((0, 0.8), (1, 0.95)):
        parser = OspasParser(**settings, refine=refine).fit(house.sentences, bags)
        assert parser.score(test.sentences, test.meanings) > least


def test_the_second_of_two_equal_arguments():
    """defense(p, p): one word fills both arguments, and only where that was seen."""
    players = [f"p{k}" for k in range(8)]
    sentences = [f"{p} defends" for p in players] * 20 + [
        f"{p} passes to {q}" for p in players for q in players if p != q
    ]
    bags = [f"defense({p},{p})" for p in players] * 20 + [f"pass({p},{q})" for p in players for q in players if p != q]
    parser = OspasParser().fit(sentences, bags)
    assert parser.predict(["p3 defends", "p1 passes to p6"]) == [["defense(p3,p3)"], ["pass(p1,p6)"]]


def test_extra_columns_and_ngrams_are_features():
    sentences = [f"{colour} {k} runs" for colour in ("red", "blue") for k in range(5)] * 15
    bags = [f"run({s.split()[0]}{s.split()[1]})" for s in sentences]
    assert OspasParser(max_iter=3).fit(sentences, bags).score(sentences, bags) < 0.8
    assert OspasParser(max_iter=3, ngrams=2).fit(sentences, bags).score(sentences, bags) == 1.0
    tagged = [[(word, first) for word in s.split()] for s, first in zip(sentences, [s.split()[0] for s in sentences])]
    assert OspasParser(max_iter=3, ngrams=1).fit(tagged, bags).predict_alignment(tagged[:1])[0][0][0] == "red"
    assert OspasParser(max_iter=3, window=1).fit(sentences, bags).score(sentences, bags) > 0.0


def test_refining_chooses_meanings():
    house, test = make_ambig_house(300, 3, random_state=0), make_ambig_house(200, 0, random_state=1)
    plain, refined = (OspasParser(refine=k, random_state=0).fit(house.sentences, house.bags) for k in (0, 2))
    assert refined.score(test.sentences, test.meanings) >= plain.score(test.sentences, test.meanings) - 0.02
    assert (plain.n_iter_, refined.n_iter_) == (1, 3)  # a pass for each time
    assert len(refined.result_.history["n_iter"]) >= 3 and refined.result_.n_argmax > 2 * plain.result_.n_argmax


def test_folded_constants():
    tree = parse_meaning("answer(city(loc_2(stateid('new york'))))")
    assert folded(tree) == ("answer", ("city", ("loc_2", "stateid('new york')")))
    assert folded(parse_meaning("f()")) == ("f",) and folded("a") == "a"
    sentences = [f"cities of {name}" for name in ("ohio", "texas", "iowa")] * 10
    bags = [f"answer(city(stateid('{s.split()[-1]}')))" for s in sentences]
    grammar = MeaningGrammar(
        "Q -> answer ( @C )\nC -> city ( @S )\nS -> stateid ( @N )\nN -> ' ohio '\nN -> ' texas '\nN -> ' iowa '"
    )
    parser = OspasParser(fold_constants=True, grammar=grammar, max_iter=3).fit(sentences, bags)
    assert "stateid('texas')" in parser.symbols_ and "stateid" not in parser.symbols_
    assert parser.score(sentences, bags) == 1.0


def test_symbols_and_roles_of_trees():
    tree = parse_meaning("f(a,g(b,b),a)")
    assert sorted(symbol.name for symbol in symbols_in(tree)) == ["a", "b", "f", "g"]
    found = {relation.name: [{s.name: role for s, role in roles.items()} for roles in of_one]
             for relation, of_one in relations_in([tree]).items()}  # fmt: skip
    assert found == {"f": [{"a": (0, 2), "g": (1,)}], "g": [{"b": (0, 1)}]}


# ---- streams, files, scikit-learn ----------------------------------------------------------------


@pytest.mark.parametrize("params", [{}, {"strategy": "random", "average": True, "random_state": 3}])
def test_streams_and_files(params, tmp_path):
    house = make_ambig_house(600, 1, random_state=0)
    whole = OspasParser(**params).fit(house.sentences, house.bags)
    stream = OspasParser(**params)
    # All symbols and roles at the first portion: then the portions make no difference.
    stream.partial_fit(house.sentences, house.bags)
    parts = OspasParser(**params)
    parts.model_ = SemanticModel(parts)
    parts.model_.register(parts.model_.read(house.sentences, house.bags).bags)
    for a in range(0, 600, 130):
        parts.partial_fit(house.sentences[a : a + 130], house.bags[a : a + 130])
        parts.save(tmp_path / "part")
        parts = pickle.loads(pickle.dumps(structsvm.load(tmp_path / "part")))
    for other in (stream, parts):
        np.testing.assert_array_equal(other.model_.symbols.weights, whole.model_.symbols.weights)
        np.testing.assert_array_equal(other.model_.roles.weights, whole.model_.roles.weights)
        assert other.predict(house.sentences) == whole.predict(house.sentences)
    assert parts.n_iter_ == 5 and parts.result_.n_argmax == whole.result_.n_argmax


def test_new_words_and_symbols_come_later(tmp_path):
    parser = OspasParser().partial_fit(["anna runs", "bo runs"] * 2, ["run(anna)", "run(bo)"] * 2)
    for _ in range(30):
        parser.partial_fit(["anna sits", "cem runs", "cem sits"], ["sit(anna)", "run(cem)", "sit(cem)"])
    assert parser.predict(["bo sits", "cem runs"]) == [["sit(bo)"], ["run(cem)"]]
    assert parser.predict(["zoe 漢字"]) == [[]] or parser.predict(["zoe 漢字"])  # words never seen: no error


def test_files(tmp_path):
    house = make_ambig_house(200, 0, random_state=0)
    grammar = "S -> 'eat' '(' A ',' B ')'\nA -> 'john'\nB -> 'cake'"
    parser = OspasParser(grammar=grammar, max_meanings=2, ngrams=2).fit(house.sentences, house.bags)
    parser.save(tmp_path / "m")
    loaded = structsvm.load(tmp_path / "m")
    assert isinstance(loaded, SemanticParser) and loaded.grammar.text == grammar
    assert {k: v for k, v in loaded.get_params().items() if k not in ("grammar", "method")} == {
        k: v for k, v in parser.get_params().items() if k not in ("grammar", "method")
    }
    assert loaded.predict(house.sentences) == parser.predict(house.sentences)
    assert loaded.result_.n_argmax == parser.result_.n_argmax
    assert all(meaning == "eat(john,cake)" for meanings in loaded.predict(house.sentences) for meaning in meanings)


def test_files_hold_what_the_model_was_trained_with(tmp_path):
    house = make_ambig_house(60, random_state=0)
    parser = OspasParser().fit(house.sentences, house.bags)
    wanted = parser.predict(house.sentences)
    parser.set_params(method__window=1, method__average=True).save(tmp_path / "m")
    loaded = structsvm.load(tmp_path / "m")
    assert loaded.predict(house.sentences) == wanted and (loaded.method.window, loaded.method.average) == (0, False)
    parser.set_params(method="hybrid").save(tmp_path / "m")
    loaded = structsvm.load(tmp_path / "m")
    assert loaded.predict(house.sentences) == wanted and loaded.method == "ospas"


def test_damaged_files(tmp_path):
    house = make_ambig_house(50, 0, random_state=0)
    OspasParser().fit(house.sentences, house.bags).save(tmp_path / "m")
    file = read_model(tmp_path / "m")
    relation = next(r for r in file.meta["relation_roles"] if r[1] == 2)
    for meta, arrays in (
        ({"params": {"C": -1.0}}, {}),
        ({"params": None}, {}),
        ({"params": file.meta["params"] | {"window": 0}}, {}),
        ({"params": file.meta["params"] | {"method": {"group": "Ospas", "params": {"window": 1.0}}}}, {}),
        ({"params": file.meta["params"] | {"method": "hybrid"}}, {}),
        ({"symbols": file.meta["symbols"][:-1]}, {}),
        ({"symbols": [["x", None]] * len(file.meta["symbols"])}, {}),
        ({"symbols": [*file.meta["symbols"][:-1], ["x", 99]]}, {}),
        ({"roles": [[], [99], *file.meta["roles"][2:]]}, {}),
        ({"relation_roles": [[relation[0], 1, [1, 2]]]}, {}),
        ({"relation_roles": [[relation[0], 2, [999]]]}, {}),
        ({"nested": [["f", 1]]}, {}),
        ({"grammar": "nonsense"}, {}),
        ({"result": {}}, {}),
        ({}, {"symbols.weights": file.arrays["symbols.weights"][:3]}),
        ({}, {"roles.weights": file.arrays["roles.weights"] + np.nan}),
        ({}, {"symbols.name_starts": file.arrays["symbols.name_starts"][:-1]}),
    ):
        write_model(tmp_path / "d", "semantics", file.meta | meta, file.arrays | arrays)
        with pytest.raises(ModelFileError, match="not a sound semantics model"):
            structsvm.load(tmp_path / "d")


def test_as_an_estimator():
    house = make_ambig_house(200, 0, random_state=0)
    search = GridSearchCV(OspasParser(), {"C": [1e-6, 0.1]}, cv=2).fit(house.sentences, house.meanings)
    assert search.best_score_ > 0.3
    parser = clone(search.best_estimator_)
    with pytest.raises(NotFittedError):
        parser.predict(["john eats"])
    assert repr(SemanticParser(C=0.5)) == "SemanticParser(C=0.5)"
    parser.fit(house.sentences, house.bags)
    assert pickle.loads(pickle.dumps(parser.set_params(verbose=False))).symbols_ == parser.symbols_


def test_parameters_of_the_method_nest(tmp_path):
    house = make_ambig_house(60, 0, random_state=0)
    grid = {"method__refine": [0, 1], "method__window": [0]}
    search = GridSearchCV(SemanticParser(method=Ospas(window=1), random_state=0), grid, cv=2)
    best = search.fit(house.sentences, house.meanings).best_estimator_
    assert best.method.window == 0 and best.method is not search.estimator.method
    best.set_params(method__ngrams=2).fit(house.sentences, house.meanings).save(tmp_path / "m")
    loaded = structsvm.load(tmp_path / "m")
    assert loaded.method.get_params() == Ospas(ngrams=2, refine=best.method.refine).get_params()
    with pytest.raises(ValueError, match="The 'refine' parameter of Ospas must be an int in the range"):
        best.set_params(method__refine=-1).fit(house.sentences, house.meanings)
    with pytest.raises(ValueError, match="Ospas has no parameter 'features'"):
        best.set_params(method__features=())
    with pytest.raises(ValueError, match="The 'method' parameter of SemanticParser must be 'hybrid' or 'ospas' or"):
        SemanticParser(method="krisp").fit(house.sentences, house.meanings)


@pytest.mark.parametrize(("name", "kind"), [("hybrid", Hybrid), ("ospas", Ospas)])
def test_a_name_means_the_defaults(name, kind, tmp_path):
    """For warm starts, too; files store what the user wrote."""
    house = make_ambig_house(20, 0, random_state=0)
    parsers = [SemanticParser(method=method, max_iter=1, warm_start=True, random_state=0) for method in (name, kind())]
    for parser, other in zip(parsers, parsers[::-1], strict=True):
        method = parser.method
        parser.fit(house.sentences, house.meanings).set_params(method=other.method)
        parser.fit(house.sentences, house.meanings).save(tmp_path / "m")
        stored = structsvm.load(tmp_path / "m").method
        assert stored == name if isinstance(other.method, str) else repr(stored) == repr(kind())
        parser.set_params(method=method)
    assert parsers[0].predict(house.sentences) == parsers[1].predict(house.sentences)


# ---- going on, Ctrl-C, errors --------------------------------------------------------------------


def same(one, other):
    np.testing.assert_array_equal(one.model_.symbols.weights, other.model_.symbols.weights)
    np.testing.assert_array_equal(one.model_.roles.weights, other.model_.roles.weights)
    assert one.symbols_ == other.symbols_ and one.model_.relation_roles == other.model_.relation_roles


@contextmanager
def stop_at(call, error, when="before"):
    """Raise an error when so many sentences have taken their symbols: before or after the features of their roles.

    Gives a list that a visit of a sentence makes longer.
    """
    visits = []
    role_words = SemanticProblem.role_words

    def failing(*arguments):
        visits.append(arguments)
        if len(visits) == call + 1:
            if when == "after":
                role_words(*arguments)
            raise error
        return role_words(*arguments)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SemanticProblem, "role_words", failing)
        yield visits


@pytest.mark.parametrize("call", [0, 17, 40, 57, 80, 97, 120, 137])
@pytest.mark.parametrize("when", ["before", "after"])
def test_ctrl_c_at_any_time_leaves_a_whole_model(tmp_path, call, when):
    """Two passes of forty sentences, and again to refine: the model predicts, is saved, and goes on."""
    house = make_ambig_house(40, 1, random_state=0)
    parser = OspasParser(max_iter=2, refine=1, random_state=0)
    whole = clone(parser).set_params(method__refine=0).fit(house.sentences, house.bags)
    with (
        stop_at(call, KeyboardInterrupt, when),
        pytest.raises(KeyboardInterrupt, match="holds the model as it was then"),
    ):
        parser.fit(house.sentences, house.bags)
    assert parser.result_.status == "interrupted" and parser.n_iter_ == min(call // 40, 2)
    assert parser.result_.n_argmax > 0 or call == 0
    if call >= 80:  # the refinement has not had all its passes
        same(parser, whole)
    parser.save(tmp_path / "m")
    predicted = parser.predict(house.sentences)
    assert structsvm.load(tmp_path / "m").predict(house.sentences) == predicted
    assert parser.partial_fit(house.sentences, house.bags).n_iter_ == min(call // 40, 2) + 1
    if call >= 80:
        same(parser, whole.partial_fit(house.sentences, house.bags))


def test_an_error_leaves_the_old_model():
    house, child = make_ambig_house(60, 1, random_state=0), make_ambig_child_world(30, 1, random_state=0)
    parser = OspasParser(warm_start=True).fit(house.sentences, house.bags)
    untouched = pickle.loads(pickle.dumps(parser))
    for train in (parser.fit, parser.partial_fit):
        with stop_at(7, RuntimeError("broken")), pytest.raises(RuntimeError, match="broken"):
            train(child.sentences, child.bags)
        same(parser, untouched)
        assert parser.n_iter_ == 1 and len(parser.model_.roles.encoder) == len(untouched.model_.roles.encoder)
    same(parser.partial_fit(child.sentences, child.bags), untouched.partial_fit(child.sentences, child.bags))


PARAMS = [{}, {"strategy": "random", "average": True, "random_state": 3}, {"strategy": "left_right"}]


@pytest.mark.parametrize("params", PARAMS)
def test_warm_start_goes_on_bit_for_bit(params, tmp_path):
    house, child = make_ambig_house(150, 1, random_state=0), make_ambig_child_world(30, 1, random_state=0)
    whole = OspasParser(max_iter=3, **params).fit(house.sentences, house.bags)
    parser = OspasParser(warm_start=True, **params).fit(house.sentences, house.bags)
    parser.save(tmp_path / "m")
    parser = structsvm.load(tmp_path / "m")
    parser.partial_fit(house.sentences, house.bags)
    same(parser.fit(house.sentences, house.bags), whole)
    assert (parser.n_iter_, parser.result_.n_argmax) == (3, whole.result_.n_argmax)
    # Other sentences, with symbols of their own, are learnt as by partial_fit.
    same(parser.fit(child.sentences, child.bags), whole.partial_fit(child.sentences, child.bags))
    once = OspasParser(**params).fit(house.sentences, house.bags)
    same(parser.set_params(warm_start=False).fit(house.sentences, house.bags), once)
    assert parser.n_iter_ == 1


@pytest.mark.parametrize("change", [{"window": 1}, {"ngrams": 2}, {"role_window": 1}, {"lowercase": False},
                                    {"fold_constants": True}, {"average": True}])  # fmt: skip
def test_other_features_are_refused(change):
    house = make_ambig_house(30, random_state=0)
    parser = OspasParser(warm_start=True).fit(house.sentences, house.bags)
    (name,) = change
    place = name if name == "lowercase" else f"method__{name}"
    for train in (parser.set_params(**{place: change[name]}).fit, parser.partial_fit):
        with pytest.raises(ValueError, match=f"another '{name}'; set it back, or train afresh"):
            train(house.sentences, house.bags)
    parser.set_params(**{place: OspasParser().get_params()[place]}, C=0.2)
    parser.set_params(method__max_meanings=1, method__strategy="random")
    assert parser.fit(house.sentences, house.bags).model_.settings.max_meanings == 1


@pytest.mark.parametrize("call", [61, 119, 181, 239, 301])
@pytest.mark.parametrize("params", [{}, {"strategy": "random", "average": True}])
def test_checkpoints(tmp_path, params, call):
    """Two passes of sixty sentences, and twice again to refine; killed in one of them."""
    house = make_ambig_house(60, 2, random_state=0)
    parser = OspasParser(max_iter=2, refine=2, random_state=0, **params)
    whole = clone(parser).fit(house.sentences, house.bags)
    parser.set_params(checkpoint=tmp_path / "c")
    with stop_at(call, RuntimeError("killed")), pytest.raises(RuntimeError, match="killed"):
        parser.fit(house.sentences, house.bags)
    again = clone(parser)
    with stop_at(-1, None) as visits:
        again.fit(house.sentences, house.bags)
    assert len(visits) == 60 * (6 - call // 60)
    same(again, whole)
    assert (again.n_iter_, again.result_.n_argmax) == (6, whole.result_.n_argmax)
    # The last checkpoint is of pass 5; Ctrl-C after it leaves what the refinement before has learnt.
    with stop_at(5, KeyboardInterrupt), pytest.raises(KeyboardInterrupt):
        parser.fit(house.sentences, house.bags)
    same(parser, clone(parser).set_params(method__refine=1, checkpoint=None).fit(house.sentences, house.bags))
    assert parser.n_iter_ == 4
    with pytest.raises(ModelFileError, match="of another solver"):
        parser.set_params(C=0.5).fit(house.sentences, house.bags)
    with pytest.raises(ModelFileError, match="of another problem"):
        parser.set_params(C=0.1).fit(house.sentences[::-1], house.bags[::-1])


def test_checkpoints_come_as_often_as_asked(monkeypatch, tmp_path):
    house = make_ambig_house(20, 1, random_state=0)
    written = []
    monkeypatch.setattr("structsvm.checkpoint.write_model", lambda path, kind, about, arrays: written.append(arrays))
    OspasParser(max_iter=7, checkpoint=Checkpoint(tmp_path / "c", every=3)).fit(house.sentences, house.bags)
    assert [int(arrays["run"][0]) for arrays in written] == [3, 6]


def test_damaged_checkpoints(tmp_path):
    house = make_ambig_house(20, 1, random_state=0)
    parser = OspasParser(max_iter=2, refine=1, checkpoint=tmp_path / "c")
    parser.fit(house.sentences, house.bags)
    file = read_model(tmp_path / "c")
    assert file.arrays["turn"] == [1]
    table = {key: array for key, array in (STATES["ospas"] | TURN).items() if key in file.arrays}
    forged = [(key, forgery) for key, wanted in table.items() for forgery in forgeries(file.arrays[key], wanted)]
    for name, value in (
        ("turn", None),
        ("chosen", np.full(20, 7)),
        ("chosen", np.full(20, -1)),
        ("chosen", file.arrays["chosen"][1:]),
        ("seed", None),
        ("counters", np.array([-1, 0])),
        ("roles.weights", file.arrays["roles.weights"][1:]),
        ("whole.roles.weights", file.arrays["whole.roles.weights"][1:]),
        ("whole.seed", None),
        ("roles.names", file.arrays["roles.names"][1:]),
        ("symbols.weights", np.zeros((1000, 2))),
        *forged,
    ):
        arrays = {k: v for k, v in file.arrays.items() if k != name}
        write_model(tmp_path / "c", "checkpoint", file.meta, arrays | ({} if value is None else {name: value}))
        with pytest.raises(ModelFileError, match="not a sound checkpoint"):
            parser.fit(house.sentences, house.bags)


def test_the_history_and_callbacks_see_passes():
    house = make_ambig_house(60, 1, random_state=0)
    parser = OspasParser(max_iter=4).fit(house.sentences, house.bags)
    history = parser.result_.history
    assert history["n_iter"][-1] == 4.0 and (np.diff(history["n_argmax"]) >= 0).all()
    assert history["n_argmax"][-1] == parser.result_.n_argmax
    assert parser.result_.primal_norm == pytest.approx(
        0.5 * sum((tagger.weights**2).sum() for tagger in (parser.model_.symbols, parser.model_.roles))
    )
    callback = pytest.importorskip("sklearn.callback")
    monitor = callback.ScoringMonitor(scoring={"f1": lambda parser, X, y: parser.score(X, y)})
    parser = OspasParser(max_iter=2, refine=1).set_callbacks(monitor).fit(house.sentences, house.bags)
    scores = [row["f1"] for row in monitor.get_logs().data]
    assert len(scores) == 4 and scores[-1] == parser.score(house.sentences, house.bags) < 1.0
    once = OspasParser().fit(house.sentences, house.bags)
    assert scores[0] == once.score(house.sentences, house.bags)


def test_sample_weight_scales_steps():
    house = make_ambig_house(100, 1, random_state=0)
    n = len(house.sentences)
    double = OspasParser(C=0.02).fit(house.sentences, house.bags)
    same(OspasParser(C=0.01).fit(house.sentences, house.bags, sample_weight=np.full(n, 2.0)), double)
    weight = np.where(np.arange(n) < 50, 1.0, 0.0)
    half = OspasParser().fit(house.sentences, house.bags, weight).model_.symbols.weights
    first = OspasParser()
    first.model_ = SemanticModel(first)
    first.model_.register(first.model_.read(house.sentences, house.bags).bags)
    first = first.partial_fit(house.sentences[:50], house.bags[:50]).model_.symbols.weights
    np.testing.assert_array_equal(half[: len(first)], first)
    assert not half[len(first) :].any()
    with pytest.raises(ValueError, match="sample_weight has shape"):
        OspasParser().fit(house.sentences, house.bags, weight[1:])
    with pytest.raises(ValueError, match="the bags tell their symbols"):
        OspasParser().partial_fit(house.sentences, house.bags, ["eat"])


# ---- bad input -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("X", "y", "error", "message"),
    [
        (["a", "b"], [["f(a)"], []], ValueError, "sentence 1: the bag is empty"),
        (["a", "b"], [["f(a)"], ["f(a"]], ValueError, r"sentence 1: .*brackets open: they are unbalanced"),
        (["a", " "], [["f(a)"], ["f(a)"]], ValueError, "sentence 1 has no words"),
        (["a"], [["f(a)"], ["f(a)"]], ValueError, "there are 1 sentences and 2 bags"),
        ([], [], ValueError, "there are no sentences to train on"),
        (["a"], None, ValueError, "the target y is None"),
        (["a"], [[3]], TypeError, "sentence 0: a meaning representation is text or nested tuples, got 3"),
        (["a"], ["-"], ValueError, "sentence 0: the constant '-' is what words have that mean nothing"),
        (["a"], ["f(g(-))"], ValueError, "sentence 0: the constant '-' is what words have that mean nothing"),
        (["a"], [[("f", "new york")]], ValueError, "sentence 0: a name where a comma or a bracket should stand"),
        (["a"], [[("f(x)", "a")]], ValueError, r"sentence 0: 'f\(x\)' is no name of a relation"),
        (["a"], [3], TypeError, "sentence 0: the bag must be a list"),
        ([3], [["f(a)"]], TypeError, "sentence 0 must be a str or a list of words, got 3"),
        ([[3]], [["f(a)"]], TypeError, "sentence 0 has the token 3"),
        ([[("a", "b"), ("c",)]], [["f(a)"]], ValueError, "sentence 0 has tokens of 2 and of 1 columns"),
        (["a"], [[f"f({','.join('abcdefghijklm')})"]], ValueError, "sentence 0: f has 13 arguments, more than 12"),
    ],
)
def test_data_that_do_not_fit(X, y, error, message):
    parser = OspasParser()
    with pytest.raises(error, match=message):
        parser.fit(X, y)
    assert not hasattr(parser, "model_")
    parser.fit(["anna runs"], ["run(anna)"])
    before = parser.model_.symbols.weights
    with pytest.raises(error, match=message):
        parser.partial_fit(X, y)
    np.testing.assert_array_equal(parser.model_.symbols.weights, before)


@pytest.mark.parametrize("meaning", ["f([b,c],a[1])", "(f a {b c})", ("f", ("g", "a"), "[b")], ids=str)
def test_lists_in_brackets_are_named(meaning):
    with pytest.warns(structsvm.AdviceWarning, match=r"sentence 1: '[\[{]b' is read as a constant. Lists in brackets"):
        OspasParser().fit(["a", "b", "c"], ["f([a],{1})", meaning, meaning])
    OspasParser().fit(["a"], ["f([a],{1},'[b',a[1])"])  # warnings are errors


def test_odd_but_sound_data():
    parser = OspasParser().fit(
        ["ein wort", "x", "größe 漢字", "x x x"],
        [["f(a)", "f(a)", "f( a )"], ["f(a,b,g(c,d))"], ["f(größe,漢字)"], ["stop()"]],
    )
    assert parser.relations_["f"] == {1, 2, 3}  # arities are told apart
    assert all(isinstance(meanings, list) for meanings in parser.predict(["x", "größe 漢字", "unseen"]))


@pytest.mark.parametrize(
    "params",
    [{"C": 0.0}, {"strategy": "best"}, {"max_iter": 0}, {"refine": -1}, {"window": -1}, {"ngrams": 0}, {"grammar": 3},
     {"max_meanings": 0}, {"complete": 1}, {"random_state": -1}],
)  # fmt: skip
def test_parameters(params):
    (name,) = params
    owner = "Ospas" if name in Ospas.parameter_names() else "SemanticParser"
    with pytest.raises(ValueError, match=f"The '{name}' parameter of {owner} must be"):
        OspasParser(**params).fit(["a"], ["f(a)"])


def test_grammars_from_files(tmp_path):
    (tmp_path / "g").write_text("S -> 'f' '('\n")
    with pytest.raises(ValueError, match="g, line 1: "):
        OspasParser(grammar=tmp_path / "g").fit(["a"], ["f(a)"])
    with pytest.raises(FileNotFoundError):
        OspasParser(grammar=str(tmp_path / "none")).fit(["a"], ["f(a)"])


# ---- real data -----------------------------------------------------------------------------------


@needs_data
def test_robocup():
    data = fetch_robocup()
    assert {year: (len(g.sentences), len(g.gold_sentences)) for year, g in data.games.items()} == {
        2001: (672, 520),
        2002: (459, 376),
        2003: (398, 320),
        2004: (343, 323),
    }
    train = [data.games[year] for year in (2001, 2002, 2003)]
    settings = {"strategy": "random", "max_iter": 5, "average": True, "random_state": 0, "max_meanings": 1}
    test = data.games[2004]
    for sentences, bags, f1 in (("gold_sentences", "gold_meanings", 0.8), ("sentences", "bags", 0.6)):
        X, y = ([*chain.from_iterable(getattr(g, name) for g in train)] for name in (sentences, bags))
        parser = OspasParser(grammar=data.grammar, **settings).fit(X, y)
        assert parser.score(test.gold_sentences, test.gold_meanings) > f1
    assert "purple 7" in fetch_robocup(join_players=False).games[2001].sentences[2]


def parser_of_geoquery(data, seed, max_iter):
    return OspasParser(
        grammar=data.grammar,
        fold_constants=True,
        max_meanings=1,
        strategy="random",
        average=True,
        max_iter=max_iter,
        random_state=seed,
    )


@needs_data
def test_geoquery():
    data = fetch_geoquery()
    assert repr(data) == "GeoQuery(n_train=600, n_test=280)"
    assert {level: round(np.mean([len(bag) for bag in bags]), 2) for level, bags in data.bags.items()} == {
        1: 2.03,
        2: 3.02,
        3: 3.93,
    }
    parser = parser_of_geoquery(data, 0, max_iter=1).fit(data.X_train[:200], data.y_train[:200])
    predicted = parser.predict(data.X_test[:100])
    assert all(data.grammar.accepts(parse_meaning(m)) for meanings in predicted for m in meanings)
    assert meaning_scores(data.y_test[:100], predicted).n_correct > 5


@pytest.mark.slow
@needs_data
def test_geoquery_is_learnt():
    data = fetch_geoquery()
    found = []
    for seed in range(3):  # the seeds make a great difference: 0.14 to 0.47
        parser = parser_of_geoquery(data, seed, max_iter=5).fit(data.X_train, data.y_train)
        found.append(meaning_scores(data.y_test, parser.predict(data.X_test)).f1)
    assert np.mean(found) > 0.2


def test_twenty_words_become_a_relation_in_turn():
    """The twenty of thirty relations whose best word loses least by it."""
    tried = []

    def parse_labelled(tokens, scores, label_ids):
        tried.extend(label_ids)
        return [SimpleNamespace(value=float(k)) for k in range(len(label_ids))]

    scores = np.zeros((4, 31))
    scores[:, 0] = 1.0
    scores[2, 1:] = np.linspace(0.9, 0.1, 30)
    relations = [SimpleNamespace(arity=None), *[SimpleNamespace(arity=1)] * 30]
    model = SimpleNamespace(symbols=SimpleNamespace(labels=relations), _parse_labelled=parse_labelled)
    best = SemanticModel._parse_changed(model, None, scores, [0, 0, 0, 0], SimpleNamespace(value=3.0))
    assert tried == [[0, 0, k, 0] for k in range(1, 21)]
    assert best.value == 19.0


@pytest.mark.parametrize("method", [Hybrid(), Ospas()], ids=["hybrid", "ospas"])
def test_sentences_of_unknown_words_are_a_warning(method):
    house = make_ambig_house(20, 1, random_state=0)
    parser = SemanticParser(method=method, max_iter=2, random_state=0).fit(house.sentences, house.bags)
    parser.predict(house.sentences)
    with pytest.warns(structsvm.AdviceWarning, match="12 of 20 sentences have no feature that the model knows"):
        parser.predict(["unseen words"] * 12 + house.sentences[:8])
    parser.predict(["unseen words"] * 9)  # too few to tell
