"""A pipeline component of spaCy that labels the tokens of a `Doc` (extra ``structured-svm[spacy]``)."""

from __future__ import annotations

from spacy.language import Language

from structsvm.tasks.sequence.documents import LabelerComponent
from structsvm.tasks.sequence.estimator import SequenceLabeler


@Language.factory(
    "structsvm", default_config={"model": None, "columns": ["text"], "target": "ents", "probabilities": False}
)
def make_component(
    nlp: Language, name: str, model: str | None, columns: list[str], target: str, probabilities: bool
) -> LabelerComponent:
    """The component of a model file: ``nlp.add_pipe("structsvm", config={"model": PATH})``."""
    labeler = None if model is None else SequenceLabeler.load(model)
    return LabelerComponent(name, labeler, columns, target, probabilities)
