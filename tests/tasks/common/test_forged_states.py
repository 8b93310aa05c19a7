"""Forged training states in model files: each array is checked on load, before anything trains on."""

import warnings

import numpy as np
import pytest
from cases import CASES
from forgeries import forgeries

import structsvm
from structsvm.checkpoint import STATES, checked_state, kind_of, table_of
from structsvm.model_file import ModelFileError, read_model, write_model

# These keep no state.
STATELESS = ("ospas", "perceptron of meanings")
CHECKED = {name: case for name, case in CASES.items() if name not in STATELESS}


def saved(case, path):
    """The model file of a case, of two passes."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        case.fit(**case.passes(2)).save(path, training_state=True)
    return path


@pytest.fixture(scope="module", params=CHECKED)
def trained(request, tmp_path_factory):
    """A case, its model file, the training state in it, and the table of that."""
    case = CHECKED[request.param]
    path = saved(case, tmp_path_factory.mktemp("models") / "sound.model")
    state = read_model(path).under("state.")
    return case, path, state, table_of(state)


def test_cases_have_every_kind_of_state(tmp_path):
    kinds = {kind_of(read_model(saved(case, tmp_path / "m")).under("state.")) for case in CHECKED.values()}
    assert kinds | {"ospas"} == STATES.keys()  # only checkpoints have one of OSPAS


def test_every_array_of_a_state_is_described_and_checked(trained):
    case, path, state, table = trained
    assert set(state) <= set(table)
    sizes = structsvm.load(path, **case.load)._fitted().state_sizes()
    checked_state(state, **sizes)
    for name, array in state.items():
        for k, forgery in enumerate(forgeries(array, table[name])):
            if name == "run" and forgery is None:  # the state of a batch has none
                continue
            forged = {key: value for key, value in (state | {name: forgery}).items() if value is not None}
            with pytest.raises(ValueError, match=rf"^training state: array '{name}' |as uint8 numbers") as caught:
                checked_state(forged, **sizes)
            assert name in str(caught.value), k


def test_a_forged_state_is_found_by_load(trained, tmp_path):
    case, path, state, _ = trained
    file = read_model(path)
    for name in ("random", "support") if "random" in state else ("support", "beta"):
        if name in state:
            write_model(tmp_path / "a", file.kind, file.meta, file.arrays | {f"state.{name}": state[name][None]})
            with pytest.raises(ModelFileError, match=rf"a: not a sound \w+ model: training state: array '{name}' has"):
                structsvm.load(tmp_path / "a", **case.load)


def test_a_state_of_labels_is_none_of_sequences(tmp_path):
    file, other = (read_model(saved(CASES[name], tmp_path / name)) for name in ("cutting plane", "larank"))
    arrays = {name: array for name, array in file.arrays.items() if not name.startswith("state.")}
    states = {name: array for name, array in other.arrays.items() if name.startswith("state.")}
    write_model(tmp_path / "forged", file.kind, file.meta, arrays | states)
    with pytest.raises(ModelFileError, match="a training state of kind 'kernel_dual', which has 'n_labels', unlike"):
        structsvm.load(tmp_path / "forged")


def test_states_of_other_projects_are_left_alone():
    foreign = {"kind": np.frombuffer(b"theirs", dtype=np.uint8), "anything": np.array([np.nan])}
    checked_state(foreign)
    with pytest.raises(ValueError, match="training state: array 'run' has shape"):
        checked_state(foreign | {"run": np.zeros(3)})
