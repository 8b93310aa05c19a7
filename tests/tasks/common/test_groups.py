"""Groups of parameters: values of one parameter of an estimator, with parameters of their own."""

import inspect
import json

import pytest
from sklearn.base import clone

from structsvm import tasks
from structsvm.parameters import ParameterGroup, declared, parameter
from structsvm.tasks.common.parameters import check_settled, params_from_json, params_to_json
from structsvm.tasks.registry import ESTIMATORS, GROUPS

GROUP = [getattr(tasks, name) for name in GROUPS]
# More belong into groups: issues to come need room.
MOST_PARAMETERS = 20


def holders(group):
    """Names of estimators and of the parameters that a group may be the value of."""
    for entry in ESTIMATORS:
        kind = getattr(tasks, entry.name)
        for name, constraints in vars(kind).get("_constraints", {}).items():
            accepted = [getattr(constraint, "kind", None) for constraint in constraints]
            if any(group in (kinds if isinstance(kinds, tuple) else (kinds,)) for kinds in accepted):
                yield kind, name


@pytest.mark.parametrize("entry", ESTIMATORS, ids=lambda entry: entry.name)
def test_estimators_have_few_parameters(entry):
    assert len(inspect.signature(getattr(tasks, entry.name)).parameters) <= MOST_PARAMETERS


@pytest.mark.parametrize("group", GROUP, ids=lambda kind: kind.__name__)
def test_a_group_is_the_value_of_a_parameter(group):
    assert issubclass(group, ParameterGroup)
    found = list(holders(group))
    assert found
    group().validate()  # the defaults
    for kind, name in found:
        model = kind(**{name: group()})
        assert clone(model).get_params()[name] == group() and clone(model).get_params()[name] is not getattr(
            model, name
        )
        own = group.parameter_names()[-1]
        assert f"{name}__{own}" in model.get_params()
        model.set_params(**{f"{name}__{own}": object()})
        with pytest.raises(ValueError, match=rf"The '{own}' parameter of {group.__name__} must be"):
            model._check_params()


@pytest.mark.parametrize("group", GROUP, ids=lambda kind: kind.__name__)
def test_groups_in_files(group):
    header, arrays = params_to_json({"own": group(), "none": None})
    assert not arrays
    header = json.loads(json.dumps(header))
    assert params_from_json(header, {}, [group]) == {"own": group(), "none": None}
    with pytest.raises(KeyError):
        params_from_json(header, {})
    header["own"]["params"]["strange"] = 1
    with pytest.raises(TypeError, match="strange"):
        params_from_json(header, {}, [group])


def test_groups_are_compared_by_their_parameters():
    @declared
    class Own(ParameterGroup):
        bits: object = parameter(default=1)

    @declared
    class Other(Own):
        pass

    assert Own(bits=2) == Own(bits=2) != Own() and Own() != 3
    check_settled([("own", Own(bits=(1, 2)), Own(bits=[1, 2]))])
    for wanted in (Own(bits=3), Other(bits=2), None):
        with pytest.raises(ValueError, match="the model was trained with another 'own'"):
            check_settled([("own", wanted, Own(bits=2))])
