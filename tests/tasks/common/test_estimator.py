"""Checks of the estimators and models of all tasks before they train."""

import warnings

import numpy as np
import pytest
from cases import BATCH, CASES, CLASSES, ROWS, TABLE, taking_part
from python_oracles import Multiclass
from scipy.sparse import csr_array
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.utils import get_tags

import structsvm
from structsvm import LaRank, LatentSVM, Perceptron
from structsvm.datasets import make_treebank
from structsvm.estimator import InputsAndOutputs, StructuredModel
from structsvm.tasks import GrammarParser, SequenceLabeler, TaxonomyClassifier
from structsvm.tasks.common.training import Job


def test_a_wide_gap_after_all_passes_is_a_warning():
    rows, y = np.random.default_rng(0).normal(loc=100.0, size=(60, 2)), np.arange(60) % 2
    message = r"LaRank stopped after 20 passes at a relative gap of .* a smaller C than 1\.0$"
    with pytest.warns(structsvm.ConvergenceWarning, match=message):
        model = TaxonomyClassifier(C=1.0, standardize=False, random_state=0).fit(rows, y)
    assert model.result_.status == "max_iter" and model.result_.relative_gap > 0.5
    TaxonomyClassifier(C=1.0, standardize=False, max_iter=20, random_state=0).fit(rows, y)  # as many as were asked for


# Their gap counts as a share of what there is to gain over w = 0.
OF_GAIN = ("kernel taxonomy", "larank")


def is_open(case):
    """Whether a C can be given, and passes, solver and tolerance are the estimator's own."""
    params = case.make().get_params()
    open_ones = (params.get("max_iter"), params.get("tol"), case.params.get("solver"))
    return "C" in params and open_ones == (None, None, None) and case.kind not in BATCH


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if is_open(case)])
def test_a_wide_gap_at_a_given_C_is_a_warning_of_every_estimator(name, recwarn):
    """Few passes of an estimator's own, or none that would change much, are no reason for silence."""
    case = CASES[name]
    warnings.simplefilter("always")
    result = case.fit(C=1e4).result_
    cure = f"stopped after {result.n_iter} passes at a relative gap of {result.relative_gap:.2g}: set max_iter or tol"
    texts = [str(one.message) for one in recwarn if one.category is structsvm.ConvergenceWarning]
    if name not in OF_GAIN:
        assert len(texts) == (result.relative_gap > 0.5)
    assert all(cure in text and "or give a smaller C than 10000.0" in text for text in texts)


@pytest.mark.parametrize("name", ["sequence", "greedy"])
def test_training_goes_on_until_the_gap_is_not_wide(name):
    case = CASES[name]
    result = case.fit(C=1e4).result_
    assert result.relative_gap <= 0.5
    assert case.fit(C=1e4, max_iter=result.n_iter - 1).result_.relative_gap > 0.5


@pytest.mark.parametrize("name", ["graph", "cut", "taxonomy", "multilabel, none", "ordering", "dependency"])
def test_a_wide_gap_at_a_large_C_is_that_of_as_many_passes(name):
    case = CASES[name]
    with pytest.warns(structsvm.ConvergenceWarning, match=r"passes at a relative gap of .* a smaller C than 10000\.0$"):
        result = case.fit(C=1e4).result_
    assert result.status == "max_iter" and result.relative_gap > 0.5
    assert case.fit(C=1e4, max_iter=result.n_iter).result_.primal == result.primal


@pytest.mark.parametrize("name", ["open graph", "open ordering", "dependency", "open dependency"])
def test_a_wide_gap_after_passes_that_were_asked_for_is_none(name):
    case = CASES[name]
    with pytest.warns(structsvm.ConvergenceWarning, match="a smaller C than"):
        result = case.fit(C=1e4).result_
    assert result.status in ("max_iter", "settled") and result.relative_gap > 0.9
    case.fit(C=1e4, max_iter=3)


def test_a_wide_gap_of_a_parser_is_a_warning():
    trees = make_treebank(300, random_state=0)
    with pytest.warns(structsvm.ConvergenceWarning, match="LaRank stopped after 6 passes at a relative gap of"):
        GrammarParser(C=1e4, loss="zero_one", random_state=0).fit(trees)


def test_a_wide_gap_names_uneven_features():
    rows, y = np.random.default_rng(0).normal(loc=100.0, size=(60, 2)) * [1.0, 1e4], np.arange(60) % 2
    for X in (rows, csr_array(rows)):
        with pytest.warns(structsvm.ConvergenceWarning, match="features of very different sizes, as here"):
            TaxonomyClassifier(C=1.0, standardize=False, random_state=0).fit(X, y)


def test_a_wide_gap_at_a_chosen_C_is_no_warning():
    rows, y = np.random.default_rng(0).normal(loc=100.0, size=(60, 2)), np.arange(60) % 2
    model = TaxonomyClassifier(standardize=False, random_state=0).fit(rows, y)
    assert model.result_.status == "max_iter" and model.result_.relative_gap > 0.5


@pytest.mark.parametrize("name", CASES)
def test_default_trainings_and_predictions_warn_of_nothing(name):
    """Warnings are errors in the suite."""
    case = CASES[name]
    params = {key: value for key, value in case.params.items() if key not in ("C", "max_iter", "solver", "gamma")}
    model = case.kind(**params, **({"solver": case.params["solver"]} if case.kind is structsvm.StructuredSVM else {}))
    case.train(model).predict(case.questions)


def test_inputs_without_known_features_are_a_warning():
    X, y = [[{"w": "a"}, {"w": "b"}]] * 6, [["A", "B"]] * 6
    model = SequenceLabeler(random_state=0).fit(X, y)
    with pytest.warns(structsvm.AdviceWarning, match="7 of 12 tokens have no feature that the model knows"):
        model.predict([[{"w": "a"}] * 5 + [{"w": "z"}] * 7])
    model.predict([[{"w": "a"}] * 6 + [{"w": "z"}] * 6])
    model.predict([[{"w": "z"}] * 9])  # too few to tell
    texts = ["red wine", "white wine", "red car", "white car"] * 3
    model = TaxonomyClassifier(vectorizer=CountVectorizer(), random_state=0).fit(
        texts, ["wine", "wine", "car", "car"] * 3
    )
    with pytest.warns(structsvm.AdviceWarning, match="10 of 12 documents have no feature that the model knows"):
        model.predict(["blue"] * 10 + ["red"] * 2)


def test_the_solver_is_checked_before_the_data():
    with pytest.raises(ValueError, match="'C' parameter of LaRank must be"):
        SequenceLabeler(solver=LaRank(C=-1.0)).fit([[{}]], [["A"]])


def test_a_model_checks_the_solver_before_it_binds():
    model = StructuredModel()
    model.oracle = Multiclass(3, 4)
    with pytest.raises(ValueError, match="'rescaling' parameter of LaRank must be"):
        Job(model, InputsAndOutputs(np.eye(4)[:2], [0, 1]), LaRank(rescaling="both"))


@pytest.mark.parametrize("name", ["C", "max_iter", "tol", "random_state", "checkpoint"])
def test_parameters_beside_a_solver_object(name):
    with pytest.raises(
        ValueError, match=f"The '{name}' parameter is set beside a solver object, .*=LaRank\\({name}=...\\)"
    ):
        SequenceLabeler(solver=LaRank(), **{name: 1 if name != "checkpoint" else "c"}).fit([[{"w": "a"}]], [["A"]])


@pytest.mark.parametrize(
    ("solver", "name", "says"),
    [
        (LatentSVM(LaRank()), "C", r"its own; set it there and not here: solver=LatentSVM\(LaRank\(C=\.\.\.\)\)$"),
        (LatentSVM(LaRank()), "tol", r"solver=LatentSVM\(tol=\.\.\.\)$"),
        (Perceptron(), "C", "which has no such parameter; leave it out$"),
        (LatentSVM(Perceptron()), "C", "which has no such parameter; leave it out$"),
    ],
    ids=["wrapped", "wrapper", "none", "none wrapped"],
)
def test_a_parameter_beside_a_solver_object_belongs_to_it_or_to_the_one_it_wraps(solver, name, says):
    with pytest.raises(ValueError, match=says):
        SequenceLabeler(solver=solver, **{name: 1}).fit([[{"w": "a"}]], [["A"]])


def test_parameters_without_meaning_for_the_perceptron():
    for name in ("C", "tol"):
        with pytest.raises(ValueError, match=f"The '{name}' parameter has no meaning for solver='perceptron'"):
            SequenceLabeler(solver="perceptron", **{name: 1.0}).fit([[{"w": "a"}]], [["A"]])


def test_arrays_are_read_unless_a_map_is_asked_for(tmp_path):
    rng = np.random.default_rng(0)  # weights of columns are stored whole
    X, y = list(rng.normal(size=(30, 6, 40))), rng.choice([*"ABCDEFGH"], size=(30, 6)).tolist()
    SequenceLabeler(C=1.0, random_state=0).fit(X, y).save(tmp_path / "m")
    for load in (SequenceLabeler.load, structsvm.load):
        assert load(tmp_path / "m").model_.weights.flags.writeable
        assert not load(tmp_path / "m", mmap=True).model_.weights.flags.writeable


@pytest.mark.filterwarnings("ignore::structsvm.ConvergenceWarning")
@taking_part("labels that exclude one another", {name: case for name, case in TABLE.items() if case.has_rows})
def test_machines_of_two_classes_say_so(case):
    tags = get_tags(case.make()).classifier_tags
    if tags is None:
        return
    if tags.multi_class:
        assert len(case.make().fit(ROWS, CLASSES).classes_) == 3
        return
    with pytest.raises(ValueError, match=r"two classes|2 classes|binary"):
        case.make().fit(ROWS, CLASSES)
