"""The members that make a class an oracle, and the declarations of an oracle."""

import pytest
from python_oracles import Multiclass

from structsvm import Oracle, UnsupportedFormulation

VERBS = ("joint_feature", "loss", "argmax")


@pytest.mark.parametrize("missing", VERBS)
def test_an_oracle_has_three_verbs(missing):
    verbs = {name: lambda *_: None for name in VERBS if name != missing}
    with pytest.raises(TypeError, match=missing):
        type("Mine", (Oracle,), verbs)()
    type("Mine", (Oracle,), verbs | {missing: lambda *_: None})()


@pytest.mark.parametrize("rescaling", ["margin", "slack", None])
@pytest.mark.parametrize("penalty", ["linear", "quadratic", None])
@pytest.mark.parametrize("declared", [(("margin",), ("linear",)), (("slack",), ("quadratic", None)), ((), ())])
def test_only_declared_formulations_are_bound(rescaling, penalty, declared):
    """Without rescaling, as perceptrons ask, the penalty has no meaning."""
    oracle = Multiclass(3, 4)
    oracle.rescalings, oracle.penalties = declared
    wrong = "rescaling" if rescaling not in oracle.rescalings else "penalty" if penalty not in oracle.penalties else ""
    if rescaling is None or not wrong:
        oracle.check_formulation(rescaling, penalty)
    else:
        with pytest.raises(UnsupportedFormulation, match=f"^{wrong}=.* that Multiclass does not declare"):
            oracle.check_formulation(rescaling, penalty)
