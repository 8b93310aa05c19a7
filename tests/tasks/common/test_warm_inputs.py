"""Parameters about inputs between two trainings of one model: another value is refused by name."""

import copy
import warnings

import pytest
from cases import CASES
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer

import structsvm
from structsvm import tasks
from structsvm.tasks.registry import ESTIMATORS

# Another value than that of the case, by parameter, or by estimator and parameter.
OTHER = {
    "alphabet": "dna",
    "band": 3,
    "classes": "hydrophobicity",
    "coef0": 1.0,
    "contrast": False,
    "degree": 2,
    "dimension": 5,
    "fit_intercept": False,
    "gamma": "scale",
    "gaps": "linear",
    "hidden": 9,
    "inference": "greedy",
    "interactions": "full",
    "kernel": "linear",
    "context": "letters",
    "letter_gaps": True,
    "lowercase": False,
    "max_weights": 40,
    "mode": "local",
    "neighbours": 8,
    "order": 2,
    "prior": None,
    "relations": ["beside"],
    "segments": True,
    "standardize": False,
    "subtypes": False,
    "symmetric": False,
    "templates": "attributes",
    "terminals": "words",
    "window": 2,
    ("TaxonomyClassifier", "attributes"): "flat",
    ("TaxonomyClassifier", "taxonomy"): [("top", label) for label in "abc"],
    ("SequenceLabeler", "features"): tasks.TokenFeatures(min_count=2),
    ("GrammarParser", "features"): tasks.SpanFeatures(bits=10),
    ("GrammarParser", "grammar"): tasks.TreebankGrammar(v=2),
    ("DependencyParser", "features"): tasks.ArcFeatures(row_bits=10),
    ("DependencyParser", "projective"): True,
    ("SemanticParser", "method"): tasks.Ospas(),
}
# Parameters about training, outputs and predictions: they are followed, or settled in tests of their own.
OTHERS = {
    *("C", "alpha", "average", "budget", "cache_size", "checkpoint", "class_weight", "learning_rate", "loss", "margin"),
    *("max_iter", "max_visits", "n_jobs", "n_reprocess", "probability", "process", "random_state", "schedule"),
    *("selection", "solver", "steps", "strategy", "t0", "tau", "tol", "unknown", "verbose", "warm_start", "k"),
    *("broken", "constraints", "decode", "leaf_only", "max_chart_bytes", "max_length", "max_table", "on_no_parse"),
    ("DependencyParser", "order"),  # the features of pairs of arcs join those of arcs
    ("GraphLabeler", "method"),
    ("SGDQNClassifier", "method"),
    ("SemanticParser", "grammar"),  # it is asked again at each training
    ("TaxonomyClassifier", "vectorizer"),  # below
    ("TaxonomyClassifier", "kernel"),  # another model
    *(("TaggedParser", name) for name in ("parser", "tagger", "n_folds")),  # without warm starts
}
FIRST = {case.kind.__name__: case for case in reversed(CASES.values())}


def key_of(kind, name, table):
    return (kind, name) if (kind, name) in table else name


def about_inputs():
    for entry in ESTIMATORS:
        for name in getattr(tasks, entry.name)().get_params(deep=False):
            if key_of(entry.name, name, OTHERS) not in OTHERS:
                yield entry.name, name


@pytest.fixture(scope="module")
def trained():
    """Trained models of the first case of each estimator, by its name."""
    found = {}

    def of(name):
        if name not in found:
            case = FIRST[name]
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                found[name] = case.train(case.without_choice(warm_start=True, **case.passes(1)))
        return copy.deepcopy(found[name])

    return of


@pytest.mark.filterwarnings("ignore::structsvm.AdviceWarning", "ignore::structsvm.ConvergenceWarning")
@pytest.mark.parametrize(("kind", "name"), list(about_inputs()))
def test_another_value_is_refused(trained, kind, name, tmp_path):
    model, case = trained(kind), FIRST[kind]
    wanted = rf"another ('{name}\b|'{name}__|'min_count'|kernel)"
    changed = {name: OTHER[key_of(kind, name, OTHER)]}
    before = case.predicted(model)
    model.save(tmp_path / "m")
    for one in (model, structsvm.load(tmp_path / "m", **case.load).set_params(warm_start=True)):
        case.train(copy.deepcopy(one))
        one.set_params(**changed)
        for method in ["fit", *["partial_fit"] * case.is_stream]:
            with pytest.raises(ValueError, match=wanted):
                case.train(one, method=method)
        assert case.predicted(one) == before


def test_another_vectorizer_is_refused(tmp_path):
    texts, y = ["a cat", "two dogs", "my cat", "a dog"] * 3, ["c", "d"] * 6
    model = tasks.TaxonomyClassifier(vectorizer=TfidfVectorizer(min_df=2), C=1.0, max_iter=1, warm_start=True)
    model.fit(texts, y).save(tmp_path / "m")
    for one in (model, structsvm.load(tmp_path / "m")):
        one.set_params(vectorizer=TfidfVectorizer(min_df=2), warm_start=True).fit(texts, y)
        for other in (TfidfVectorizer(), CountVectorizer(min_df=2), None):
            one.set_params(vectorizer=other)
            for method in (one.fit, one.partial_fit):
                with pytest.raises(ValueError, match="the model was trained with another 'vectorizer'; set it back"):
                    method(texts, y)
