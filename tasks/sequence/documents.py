"""Labels of documents that have the form of spaCy's: tokens, sentences, spans.

spaCy itself is imported only where a program has imported it before, to register extensions.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice, repeat
from pathlib import Path
from typing import TYPE_CHECKING, Self

from structsvm.features.columns import Columns
from structsvm.metrics import Scheme
from structsvm.tasks.sequence.estimator import SequenceLabeler

if TYPE_CHECKING:
    from spacy.tokens import Doc, Span


class LabelerComponent:
    """Labels each sentence of a document, or the whole where sentences are not marked.

    Parameters
    ----------
    name : str
        Its name in the pipeline.
    labeler : SequenceLabeler, optional
        Trained on words (lists of str), or on as many columns as `columns` names; None: `from_disk` brings it.
    columns : list of str
        Attributes of tokens: "text", "lower_", "tag_" (if a tagger has run before), ... A document lends the model the
        columns that it was trained on, in their order.
    target : str
        Where labels go: "ents" (of labels in a scheme such as BIO, as `Doc.ents`), an attribute such as "tag_" or
        "pos_", or an extension, "_.chunk".
    probabilities : bool, default=False
        Whether each entity, or token, has the probability that it is right as its extension ``_.probability``;
        ValueError for a model without probabilities.
    """

    def __init__(
        self,
        name: str,
        labeler: SequenceLabeler | None,
        columns: Sequence[str],
        target: str,
        probabilities: bool = False,
    ) -> None:
        self.name, self.labeler, self.columns, self.target = name, labeler, list(columns), target
        self.probabilities = probabilities
        self._register()

    def _register(self) -> None:
        """Let tokens and spans have the extensions that are written; those that are there stay."""
        if "spacy" not in sys.modules:
            return
        from spacy.tokens import Span, Token

        own = [(Span, "probability"), (Token, "probability")] * self.probabilities
        for kind, extension in [*own, *[(Token, self.target[2:])] * self.target.startswith("_.")]:
            if not kind.has_extension(extension):
                kind.set_extension(extension, default=None)

    def __call__(self, doc: Doc) -> Doc:
        return next(self.pipe([doc]))

    def pipe(self, stream: Iterable[Doc], *, batch_size: int | Iterable[int] = 128) -> Iterator[Doc]:
        """Label documents, `batch_size` at a time, or as many as its items say, one after the other.

        Raises
        ------
        ValueError
            For a size below 1, and for sizes that end before the documents do.
        """
        stream = iter(stream)
        sizes = iter(batch_size) if isinstance(batch_size, Iterable) else repeat(batch_size)
        for first in stream:
            size = int(next(sizes, 0))
            if size < 1:
                raise ValueError("'batch_size' must be at least 1, or sizes that do not end before the documents")
            yield from self._labelled([first, *islice(stream, size - 1)])

    def _labelled(self, docs: list[Doc]) -> list[Doc]:
        if self.labeler is None:
            raise ValueError(f"the component {self.name!r} has no model: give model=PATH in its configuration")
        marked = [doc.has_annotation("SENT_START") for doc in docs]
        spans = [span for doc, sents in zip(docs, marked) for span in (doc.sents if sents else [doc[:]]) if len(span)]
        if spans:
            rows = [[tuple(str(getattr(token, c)) for c in self.columns) for token in span] for span in spans]
            found: dict[int, list[Span]] = {id(doc): [] for doc in docs}
            X = Columns.from_sequences(rows)
            predicted = self.labeler.predict(X)
            chances = self._chances(X, predicted)
            for span, labels, own in zip(spans, predicted, chances, strict=True):
                self._write(span, labels, own, found[id(span.doc)])
            if self.target == "ents":
                for doc in docs:
                    doc.set_ents(found[id(doc)])
        return docs

    def _chances(self, X: Columns, predicted: Sequence[Sequence[object]]) -> Sequence[Sequence[float] | None]:
        """Probabilities of the entities, or of the tokens' labels, of each sentence; None without them."""
        if not self.probabilities or self.labeler is None:
            return [None] * len(predicted)
        if self.target == "ents":
            return [[span[3] for span in own] for own in self.labeler.predict_spans(X, probabilities=True)]
        return self.labeler.model_.chances_of_labels(X, predicted)

    def _write(
        self, span: Span, labels: Iterable[object], chances: Sequence[float] | None, entities: list[Span]
    ) -> None:
        if self.target == "ents":
            chunks = self._scheme().chunks(labels)
            own = [type(span)(span.doc, span.start + a, span.start + b, kind) for a, b, kind in chunks]
            for entity, p in zip(own, chances or (), strict=chances is not None):
                entity._.probability = p
            entities += own
            return
        for token, p in zip(span, chances or (), strict=chances is not None):
            token._.probability = p
        for token, label in zip(span, labels, strict=True):
            if self.target.startswith("_."):
                token._.set(self.target[2:], label)
            else:
                setattr(token, self.target, str(label))

    def _scheme(self) -> Scheme:
        """The scheme of the model's labels; ValueError if they have none."""
        model = self.labeler.model_ if self.labeler is not None else None
        if model is None or model.scheme is None:
            raise ValueError(
                f"the component {self.name!r}: target='ents' needs labels of a scheme such as BIO, and the model's "
                "have none; target='tag_' or target='_.NAME' takes any"
            )
        return model.scheme

    # ---- pipelines on disk ----------------------------------------------------------------------

    def to_disk(self, path: str | os.PathLike[str], *, exclude: Iterable[str] = ()) -> None:
        """Write the model's file into the pipeline's folder."""
        if self.labeler is None:
            raise ValueError(f"the component {self.name!r} has no model to save")
        os.makedirs(path, exist_ok=True)
        self.labeler.save(Path(path) / "labeler.model")

    def from_disk(self, path: str | os.PathLike[str], *, exclude: Iterable[str] = ()) -> Self:
        """Open the model's file in the pipeline's folder."""
        self.labeler = SequenceLabeler.load(Path(path) / "labeler.model")
        return self

    def to_bytes(self, *, exclude: Iterable[str] = ()) -> bytes:
        """The bytes of the model's file."""
        with tempfile.TemporaryDirectory() as folder:
            self.to_disk(folder)
            return (Path(folder) / "labeler.model").read_bytes()

    def from_bytes(self, data: bytes, *, exclude: Iterable[str] = ()) -> Self:
        """The inverse of `to_bytes`."""
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "labeler.model").write_bytes(data)
            return self.from_disk(folder)
