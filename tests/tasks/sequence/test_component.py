"""The component of spaCy's pipelines."""

import pytest

from structsvm.metrics import scheme_of
from structsvm.metrics._chunks import chunk_counts
from structsvm.tasks import SequenceLabeler

spacy = pytest.importorskip("spacy")
component = pytest.importorskip("structsvm.tasks.sequence.component")

X = [["Ann", "Lee", "left", "."], ["Rome", "is", "old", "."], ["old", "Ann", "left", "Rome", "."]] * 3
Y = [["B-PER", "I-PER", "O", "O"], ["B-LOC", "O", "O", "O"], ["O", "B-PER", "O", "B-LOC", "O"]] * 3


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    path = tmp_path_factory.mktemp("spacy") / "names.model"
    SequenceLabeler(C=1.0, constraints="bio", random_state=0).fit(X, Y).save(path)
    return path


def entities(doc):
    return [(entity.text, entity.label_) for entity in doc.ents]


def test_entities_of_documents_with_and_without_sentences(path, tmp_path):
    nlp = spacy.blank("en")
    nlp.add_pipe("structsvm", config={"model": str(path)})
    doc = nlp("Ann Lee left. Rome is old.")
    assert entities(doc) == [("Ann Lee", "PER"), ("Rome", "LOC")]
    assert entities(nlp("")) == []
    nlp.add_pipe("sentencizer", first=True)
    texts = ["Ann Lee left. Rome is old."] * 3 + [""]
    assert list(map(entities, nlp.pipe(texts, batch_size=2))) == [entities(doc)] * 3 + [[]]

    nlp.to_disk(tmp_path / "pipeline")
    for other in (spacy.load(tmp_path / "pipeline"), nlp.from_bytes(nlp.to_bytes())):
        assert entities(other("Ann Lee left.")) == [("Ann Lee", "PER")]


def test_labels_go_to_attributes_and_extensions(path):
    nlp = spacy.blank("en")
    for name, target in (("one", "tag_"), ("two", "_.kind")):
        nlp.add_pipe("structsvm", name, config={"model": str(path), "target": target})
    doc = nlp("old Ann left")
    assert [token.tag_ for token in doc] == [token._.kind for token in doc] == ["O", "B-PER", "O"]


def test_probabilities_of_entities_and_tokens(path, tmp_path):
    labeler = SequenceLabeler(C=1.0, loss="log", random_state=0).fit(X, Y)
    labeler.save(tmp_path / "m")
    nlp = spacy.blank("en")
    nlp.add_pipe("structsvm", config={"model": str(tmp_path / "m"), "probabilities": True})
    doc = nlp("Ann Lee left Rome.")
    words = [[(token.text,) for token in doc]]
    (spans,) = labeler.predict_spans(words, probabilities=True)
    assert [entity._.probability for entity in doc.ents] == pytest.approx([span[3] for span in spans]) and doc.ents
    assert [span[:3] for span in spans] == [(entity.start, entity.end, entity.label_) for entity in doc.ents]
    nlp = spacy.blank("en")
    nlp.add_pipe("structsvm", config={"model": str(tmp_path / "m"), "target": "tag_", "probabilities": True})
    best = labeler.predict_marginals(words)[0].max(axis=1)
    assert [token._.probability for token in nlp("Ann Lee left Rome.")] == pytest.approx(best.tolist(), abs=1e-3)
    SequenceLabeler(C=1.0, probability=False, random_state=0).fit(X, Y).save(tmp_path / "margin")
    nlp = spacy.blank("en")
    nlp.add_pipe("structsvm", config={"model": str(tmp_path / "margin"), "probabilities": True})
    with pytest.raises(ValueError, match="needs probabilities, and the scores of this model are margins"):
        nlp("Ann left")
    nlp = spacy.blank("en")
    nlp.add_pipe("structsvm", config={"model": str(path)})
    assert all(entity._.probability is None for entity in nlp("Ann Lee left.").ents)


def test_what_is_missing_is_named(path):
    nlp = spacy.blank("en")
    nlp.add_pipe("structsvm", "names")
    with pytest.raises(ValueError, match="'names' has no model: give model=PATH"):
        nlp("Ann")
    nlp = spacy.blank("en")
    nlp.add_pipe("structsvm", config={"model": str(path), "columns": ["text", "lower_"]})
    with pytest.raises(ValueError, match="expected 1 columns without the label, found 2"):
        nlp("Ann")


@pytest.mark.parametrize(
    ("labels", "found"),
    [
        ("B-A I-A O I-A", [(0, 2, "A"), (3, 4, "A")]),
        ("I-A I-B B-B I-A", [(0, 1, "A"), (1, 2, "B"), (2, 3, "B"), (3, 4, "A")]),
        ("B-A I-A E-A S-A S-B O", [(0, 3, "A"), (3, 4, "A"), (4, 5, "B")]),
    ],
)
def test_chunks(labels, found):
    labels = labels.split()
    assert scheme_of(labels).chunks(labels) == found
    assert chunk_counts([labels], [labels])[0].tolist() == [len(found)]
