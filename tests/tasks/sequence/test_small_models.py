"""Models whose weights are mostly 0: how weights become 0, and what files then leave out."""

import io
import warnings

import numpy as np
import pytest
from forgeries import forgeries

import structsvm
from structsvm import AdviceWarning
from structsvm.datasets import make_sequences
from structsvm.features.columns import Columns
from structsvm.model_file import ModelFileError, read_model, write_model
from structsvm.stored_values import Matrix, Record, matrix_of, units_of_rows
from structsvm.tasks import SequenceLabeler, TokenFeatures
from structsvm.tasks.common.selection.choice import Choice, ChosenLeast
from structsvm.tasks.common.selection.pruning import BITS, FINE, MOST_CHANGED, SAFETY, is_fine, least_weight, n_counted
from structsvm.tasks.sequence.model import SequenceModel

X, Y = make_sequences(400, n_labels=5, n_words=300, mean_length=8.0, random_state=0)
X_NEW, Y_NEW = make_sequences(200, n_labels=5, n_words=300, mean_length=8.0, random_state=1)


def dicts(sequences):
    return [[{"w": token[0], "shape": str(len(token[0]))} for token in tokens] for tokens in sequences]


def numbers(sequences):
    return [[{"w": token[0], "length": 1.5 * len(token[0])} for token in tokens] for tokens in sequences]


FORMS = {
    "columns": (lambda sequences: sequences, {}),
    "templates": (Columns.from_sequences, {"templates": "crf++"}),
    "dicts": (dicts, {}),
    "numbers": (numbers, {"solver": "elastic_likelihood", "loss": "log"}),
    "bigrams": (dicts, {"features": TokenFeatures(bigrams="w")}),
    "greedy": (Columns.from_sequences, {"inference": "greedy"}),
    "segments": (Columns.from_sequences, {"segments": True}),
}
each_form = pytest.mark.parametrize(("given", "params"), FORMS.values(), ids=FORMS)


def trained(given, **params):
    return SequenceLabeler(random_state=0, max_iter=4, **params).fit(given(X), Y)


def contents(model, **options):
    stream = io.BytesIO()
    model.save(stream, **options)
    return stream.getvalue()


@pytest.mark.filterwarnings("ignore::structsvm.ConvergenceWarning")
@each_form
def test_a_file_without_weights_that_are_0_predicts_the_same(given, params):
    model = trained(given, **params)
    assert model.validation_["least_weight"] > 0.0
    assert (model.model_.weights == 0.0).mean() > 0.2
    whole, small = structsvm.load(contents(model, training_state=True)), structsvm.load(contents(model))
    assert model.feature_names_ == whole.feature_names_
    assert set(small.feature_names_) <= set(model.feature_names_)
    assert len(small.feature_names_) < len(model.feature_names_) or given is dicts  # whose features all have some
    assert small.n_features_in_ == len(small.feature_names_) == len(small.emission_)
    assert small.emission_.any(axis=1).all() or "features" in params
    new = given(X_NEW)
    for labeler in (whole, small):
        assert labeler.predict(new) == model.predict(new)
        np.testing.assert_array_equal(labeler.transition_, model.transition_)
    if "inference" not in params:
        for one, other in zip(model.predict_kbest(new[:5], 2), small.predict_kbest(new[:5], 2), strict=True):
            assert one == other
    assert contents(small) == contents(structsvm.load(contents(small)))


def test_weights_that_no_output_feels_are_0():
    """A quarter of the largest size at which held-out outputs change no more than they may."""
    model = trained(Columns.from_sequences)
    held_out = [(model.model_, model._prepare(Columns.from_sequences(X_NEW), Y_NEW, None, model.model_.copy())[1])]
    size = least_weight(held_out)
    weights = model.model_.weights
    n_units = n_counted(model.model_.held_out_scores(held_out[0][1]))

    def n_changed(size):
        other = model.model_.copy()
        other.weights = model.model_.pruned(size)
        return (other.outputs_of(held_out[0][1]) != model.model_.outputs_of(held_out[0][1])).sum()

    assert 0.0 < size < np.abs(weights).max()
    assert n_changed(SAFETY * size) <= MOST_CHANGED * n_units < n_changed(2.0**0.5 * SAFETY * size)
    assert least_weight(held_out, most_changed=0.0) <= size <= least_weight(held_out, most_changed=0.1)


def test_other_weights_have_16_bits(monkeypatch):
    """Whole multiples of a power of 2 per feature, each closer to what was learnt than an eighth of the size."""
    model, given = trained(Columns.from_sequences, loss="log"), trained(Columns.from_sequences, loss="log", C=0.01)
    file = read_model(contents(model))
    assert file.arrays["weights.data"].dtype == np.int16
    table = model.model_.weights.reshape(model.model_.oracle.n_rows, -1)
    units = units_of_rows(table, BITS)
    assert units is not None and units_of_rows(given.model_.weights.reshape(table.shape), BITS) is None
    assert 0.0 < 2.0 ** units.max() <= FINE * model.validation_["least_weight"]
    monkeypatch.setattr(SequenceModel, "without_unfelt", SequenceModel.pruned)
    change = np.abs(model.model_.weights - trained(Columns.from_sequences, loss="log").model_.weights)
    assert 0.0 < change.max() <= FINE / 2.0 * model.validation_["least_weight"]


def rows(sequences):
    """A column of small numbers beside one of large ones."""
    return [np.array([(1e-3 * len(token[0]) + 1.0, 1e6 * (len(token[0]) % 2)) for token in x]) for x in sequences]


@pytest.mark.filterwarnings("ignore::structsvm.ConvergenceWarning")
@pytest.mark.parametrize("given", [rows, numbers])
def test_weights_of_numbers_keep_their_digits(given):
    model = trained(given)
    size, weights = model.validation_["least_weight"], model.model_.weights
    assert is_fine(weights, size) and model.model_.units is not None
    assert units_of_rows(weights.reshape(model.model_.oracle.n_rows, -1), BITS) is None
    np.testing.assert_array_equal(weights, model.model_.pruned(size))


def test_weights_keep_their_digits_where_the_size_is_small():
    weights = np.array([1.0, 1e-3, 3e-5], dtype=np.float32)
    assert is_fine(weights, 1e-3) and not is_fine(weights, 1e-4) and not is_fine(weights, 0.0)
    assert is_fine(0.0 * weights, 1e-3)


def test_weights_of_transitions_stay():
    model = trained(Columns.from_sequences, C=0.1).model_
    table, oracle = model.pruned(np.inf).reshape(-1, model.oracle.stride), model.oracle
    history = slice(oracle.n_token_features, oracle.first_bigram_row)
    assert not table[: oracle.n_token_features].any()
    np.testing.assert_array_equal(table[history], model.weights.reshape(table.shape)[history])


def test_weights_are_0_only_where_held_out_examples_say_so():
    for params in ({"C": 0.1}, {"C": 0.1, "loss": "log"}):
        model = trained(Columns.from_sequences, **params)
        assert model.model_.choice is None
        assert len(structsvm.load(contents(model)).feature_names_) == len(model.feature_names_)
    model = SequenceLabeler(random_state=0).fit(X[:15], Y[:15])  # too few to hold some out
    assert len(structsvm.load(contents(model)).feature_names_) == len(model.feature_names_)
    stream = SequenceLabeler(random_state=0).partial_fit(X, Y)
    assert len(structsvm.load(contents(stream)).feature_names_) == len(stream.feature_names_)


def test_the_choice_of_a_size_is_stored_and_checked():
    model = trained(Columns.from_sequences, loss="hamming")
    choice = structsvm.load(contents(model)).model_.choice
    assert choice == model.model_.choice
    assert choice.get(ChosenLeast).least_weight == model.validation_["least_weight"]
    for wrong in (-1.0, float("inf"), float("nan")):
        with pytest.raises(ValueError, match="weights below"):
            Choice.from_json(choice.to_json() | {"least_weight": wrong})


def test_training_from_a_small_file_says_that_it_begins_anew():
    model = trained(Columns.from_sequences)
    small = structsvm.load(contents(model)).set_params(warm_start=True)
    with pytest.warns(AdviceWarning, match="save.path, training_state=True"):
        small.fit(Columns.from_sequences(X), Y)
    assert len(small.feature_names_) < len(model.feature_names_)
    whole = structsvm.load(contents(model, training_state=True)).set_params(warm_start=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error", AdviceWarning)
        whole.fit(Columns.from_sequences(X), Y)


# ---- the form of files --------------------------------------------------------------------------

RECORD = Record({"weights": Matrix("n_rows", "n_columns", of=lambda matrix: (matrix, False))})


@pytest.mark.parametrize("n_columns", [1, 8, 256, 257, 70_000])
@pytest.mark.parametrize("share", [0.0, 0.01, 1.0])
def test_matrices_are_whole_or_sparse_and_always_the_same(n_columns, share):
    rng = np.random.default_rng(0)
    matrix = np.where(rng.random((7, n_columns)) < share, rng.normal(size=(7, n_columns)), 0.0).astype(np.float32)
    header, arrays = RECORD.write(matrix)
    assert sum(array.nbytes for array in arrays.values()) <= matrix.nbytes
    assert ("weights" in arrays) == (share == 1.0)
    stored = RECORD.read(header, arrays).arrays(n_rows=7, n_columns=n_columns)
    np.testing.assert_array_equal(matrix_of(stored, "weights", matrix.shape), matrix)


@pytest.fixture(scope="module", params=[1.0, 1.1], ids=["16 bits", "floats"])
def small(request):
    model = trained(Columns.from_sequences)
    model.model_.weights = model.model_.pruned(0.3 * float(np.abs(model.model_.weights).max()))
    model.model_.weights *= np.float32(request.param)
    return contents(model)


def test_forged_sparse_weights_are_refused(small, tmp_path):
    file, table = read_model(small), Matrix("n_rows", "stride").table_of("weights")
    parts = [name for name in file.arrays if name.startswith("weights")]
    kinds = {"weights.data", "weights.indices", "weights.counts"}
    is_float = file.arrays["weights.data"].dtype.kind == "f"
    assert set(parts) == kinds | (set() if is_float else {"weights.exponents"})
    for name in parts:
        array = file.arrays[name]
        backwards = [array[::-1].copy()] if name == "weights.indices" else []
        for forgery in [None, *forgeries(array, table[name]), *backwards, array[:-1]]:
            arrays = {key: value for key, value in (file.arrays | {name: forgery}).items() if value is not None}
            write_model(tmp_path / "forged", file.kind, file.meta, arrays)
            with pytest.raises(ModelFileError, match=r"array 'weights(\.\w+)?' "):
                structsvm.load(tmp_path / "forged")
    write_model(tmp_path / "none", file.kind, file.meta, {k: v for k, v in file.arrays.items() if k not in parts})
    with pytest.raises(ModelFileError, match="array 'weights' is missing"):
        structsvm.load(tmp_path / "none")
