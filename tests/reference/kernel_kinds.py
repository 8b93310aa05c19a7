"""The kernel classifiers of the registry, for tests of all of them."""

from importlib import import_module

from structsvm.tasks import registry
from structsvm.tasks.common.classifier import Classifier
from structsvm.tasks.kernel.classifier import KernelClassifier

CLASSIFIERS = [
    kind
    for entry in registry.ESTIMATORS
    if issubclass(kind := getattr(import_module(f"structsvm.tasks.{entry.module}"), entry.name), Classifier)
]
KINDS = [kind for kind in CLASSIFIERS if issubclass(kind, KernelClassifier)]
# All estimators of which a kernel may be a function.
WITH_FUNCTIONS = [
    kind
    for entry in registry.ESTIMATORS
    if "kernel" in (kind := getattr(import_module(f"structsvm.tasks.{entry.module}"), entry.name))().get_params()
]


def machine(kind, **params):
    """A classifier with C and seed, where it has these."""
    settings = {"C": 1.0, "random_state": 0} | params
    return kind(**{name: value for name, value in settings.items() if name in kind().get_params()})
