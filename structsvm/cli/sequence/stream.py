"""``structsvm train sequence --stream``: a column file of any size, or a pipe, is read once and trained on in batches.

A batch is trained on in one pass around the current weights, as `partial_fit` does: what it takes does not depend on
what came before.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import Any

import click
import numpy as np

import structsvm.cli.output as out
from structsvm.features._columns import width
from structsvm.features.columns import ColumnPieces
from structsvm.features.tables.forms import Reading
from structsvm.metrics._counts import is_unknown
from structsvm.tasks.common.examples import FEW_OUTPUTS, MOST_DIFFERENT
from structsvm.tasks.common.labels import from_text
from structsvm.tasks.common.solver import is_to_choose
from structsvm.tasks.common.training import Job, train
from structsvm.tasks.sequence.labels import known_columns, labelled
from structsvm.tasks.sequence.parameters import TokenFeatures, loss_of, solver_for
from structsvm.tasks.sequence.preparation import prepare

BATCH = 100  # sequences
HASH_BITS = 20
# Bytes in which the labels are searched unless they are named.
HEAD = 1 << 20

REFUSED = {
    "max_iter": "each batch is trained on in one pass",
    "tol": "each batch is trained on in one pass",
    "min_count": "features are hashed, not counted",
    "checkpoint": "what was read cannot be read again; Ctrl-C leaves a model that --warm-start continues",
    "checkpoint_every": "there are no checkpoints",
}


def check_stream(given: dict[str, Any]) -> None:
    """Raise UsageError for an option that streams do not support."""
    for name in sorted(given.keys() & REFUSED.keys()):
        raise click.UsageError(f"--{name.replace('_', '-')} has no meaning with --stream: {REFUSED[name]}")


def check_no_stream(**given: Any) -> None:
    """Raise UsageError for an option that only a stream has."""
    for name in (name for name, value in given.items() if value is not None):
        raise click.UsageError(f"--{name} needs --stream")


class Stream:
    """One training on a stream.

    Parameters
    ----------
    job : Training
    path : str
    settings : Settings
    before : SequenceModel or None
        The model to continue.
    reading : Reading
        The columns of the file.
    labels : str or None
        Of --labels.
    size : int
        Sequences per batch.
    is_partial : bool
        Whether labels may be known in part.
    has_ends : bool
        Whether --sentence-end says where sequences end.

    Attributes
    ----------
    model : SequenceModel or None
        With what was learnt so far.
    n_seen : int
        Sequences that it was learnt from.
    """

    def __init__(
        self,
        job: Any,
        path: str,
        settings: Any,
        before: Any,
        reading: Reading,
        *,
        labels: str | None,
        size: int,
        is_partial: bool,
        has_ends: bool,
    ) -> None:
        self.job, self.path, self.settings, self.model, self.size = job, path, settings, before, size
        self.has_ends = has_ends
        self.is_partial, self.n_seen, self.n_tokens, self.n_batches = is_partial, 0, 0, 0
        self.labels = None if labels is None else named_labels(labels)
        self.names_labels = labels is not None
        if before is not None and self.labels is not None and set(self.labels) != set(before.shown):
            raise ValueError(f"--labels: the model to continue has others, {', '.join(map(str, before.shown))}")
        settings.max_iter = settings.tol = None  # taken from the model to continue
        if before is None and settings.features is None:
            settings.features = TokenFeatures(hash_bits=HASH_BITS)
        self.solver = solver_for(vars(settings), loss_of(settings, before), None if before is None else before.choice)
        self.solver.validate()
        self.pieces, self.reading = ColumnPieces(out.source(path), size, reading), reading

    def train(self, *, draw: Any) -> int:
        """Train on all of it; returns the exit status. What was learnt before an error or Ctrl-C is stored."""
        from tqdm.auto import tqdm

        interrupted = None
        bar = tqdm(desc="training", unit=" sequences", leave=False, disable=True if self.job.quiet else None)
        with bar:
            try:
                for piece in self.batches():
                    run = self.learn(piece)
                    bar.update(self.n_seen - bar.n)
                    if run.status == "interrupted":
                        raise KeyboardInterrupt
            except KeyboardInterrupt:
                if not self.n_seen:
                    raise
                interrupted = f"{self.n_seen} sequences"
            except (ValueError, OSError, MemoryError) as error:
                if not self.n_seen:
                    raise
                self.job.save(self.model)
                partial = f"{self.job.model_path} holds the partial model of the {self.n_seen} sequences before"
                raise click.ClickException(f"{error or 'not enough memory'}; {partial}") from error
        sizes = f"{self.n_seen} sequences, {self.n_tokens} tokens in {self.n_batches} batches"
        return self.job.end(
            self.model,
            interrupted,
            describe=lambda model: f"{sizes}\nlast batch: {model.result.certificate()}",
            draw=draw,
        )

    def batches(self) -> Iterator[Any]:
        """The pieces of the stream; before the first one the labels are settled."""
        pieces = iter(self.pieces)
        if self.model is not None or self.labels is not None:
            return pieces
        head, size, n_tokens, found = [], 0, 0, dict[Any, None]()
        for piece in pieces:
            head.append(piece)
            y = labelled(self.pieces.parse(piece), self.path)[1]
            n_tokens += y.n_tokens
            for name in y.vocabularies[0].tolist():
                found |= dict.fromkeys(self.told(name, piece))
            size += len(piece[0])
            if size >= HEAD:
                break
        self.labels = list(found)
        if n_tokens > 1 and (len(found) == 1 or (n_tokens >= FEW_OUTPUTS and len(found) > MOST_DIFFERENT * n_tokens)):
            form = self.pieces.form
            raise ValueError(
                f"{form.name}: {len(found)} labels of the first {n_tokens} tokens: its column "
                f"{form.called(form.places[-1])} is the label; --label names another, --labels all that there are"
            )
        return chain(head, pieces)

    def told(self, name: str, piece: Any) -> set[str]:
        """The labels that a name in the last column tells."""
        try:
            known = from_text(name) if self.is_partial else name
        except ValueError as error:
            raise ValueError(f"{lines_of(piece)}: {error}") from None
        if isinstance(known, str) and is_unknown(known, self.settings.unknown):
            return set()
        return set() if known is None else {known} if isinstance(known, str) else known

    def learn(self, piece: Any) -> Any:
        """Train on a batch; returns its run."""
        X, y = labelled(self.pieces.parse(piece), self.path)
        self.check_labels(y, piece)
        try:
            model, examples = prepare(
                self.settings, X, known_columns(y) if self.is_partial else y, self.model, classes=self.labels
            )
            if self.model is None and not self.has_ends and examples.are_few_and_long and len(examples) < self.size:
                raise ValueError(f"{examples.doubt}; --sentence-end '' trains on them as they are")
            model.params = vars(self.settings)
            reading = self.reading if self.pieces.form is None else self.pieces.form.settled()
            model.reading = reading if reading != Reading() else None
            choose = is_to_choose(self.settings, self.solver)
            run = train(Job(model, examples, self.solver, passes=1, choose=choose))
        except ValueError as error:
            raise ValueError(f"{lines_of(piece)}: {error}") from error
        share = min(run.progress, 1.0) if run.status == "interrupted" else 1.0
        self.model, self.n_batches = model, self.n_batches + 1
        self.n_seen += round(share * len(examples))
        self.n_tokens += round(share * examples.tokens.n_tokens)
        if self.n_batches == 1:
            self.settings.templates = model.encoder.templates  # the text: the file is read once
            self.say_settings()
        return run

    def check_labels(self, y: Any, piece: Any) -> None:
        """Raise ValueError, naming file and line, for a label that is not settled."""
        labels: Any = self.labels if self.model is None else self.model.shown
        names = y.vocabularies[0].tolist()
        strange = {k: told for k, name in enumerate(names) if (told := self.told(name, piece) - set(labels))}
        if strange:
            token = int(np.isin(y.ids[:, 0], list(strange)).argmax())
            label = min(strange[int(y.ids[token, 0])])
            raise ValueError(
                f"{piece[2]}:{line_of(piece, token)}: the label {label!r} is not one of the {len(labels)} "
                f"{'that --labels names' if self.names_labels else 'that came first (--labels names all)'}: "
                f"{', '.join(map(str, labels))}"
            )

    def say_settings(self) -> None:
        """Say what was settled for all batches, and by whom."""
        model = self.model
        features = f"{model.encoder.n_features} {'features' if model.encoder.hash_bits is None else 'hashed features'}"
        C = "" if model.C is None else f", C = {model.C:g}"
        if model.choice is None and is_to_choose(self.settings, self.solver):
            C += " (fixed: a stream has no held-out examples; -C sets it)"
        if text := self.pieces.form.describe():
            self.job.say(text)
        if model.template_choice is not None:
            self.job.say(model.template_choice.text)
        self.job.say(f"batches of {self.size} sequences, {features}, {len(model.labels)} labels{C}")


def named_labels(text: str) -> list[str]:
    """The labels separated by blanks, or by commas if there are no blanks; UsageError if one is empty."""
    labels = text.split() or [""] if any(map(str.isspace, text)) else text.split(",")
    if "" in labels:
        raise click.UsageError(f"--labels: an empty label in {text!r:.80}")
    return list(dict.fromkeys(labels))


def lines_of(piece: Any) -> str:
    """The file and the lines of a piece, for messages."""
    data, line, name = piece
    last = line + data.rstrip().count(b"\n")
    return f"{name}: lines {line} to {last}"


def line_of(piece: Any, token: int) -> int:
    """The line of a token of a piece, by its number among all of the piece's tokens."""
    data, line, _ = piece
    full = (number for number, text in enumerate(data.split(b"\n"), line) if width(text))
    return next(number for k, number in enumerate(full) if k == token)
