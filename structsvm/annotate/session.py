"""One labelling session: the texts, the answers so far, and the next question."""

from __future__ import annotations

import datetime as dt
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import PurePath

import numpy as np

from structsvm.annotate.agreement import Agreement, agreement
from structsvm.annotate.answers import OUTSIDE, Answer, answer_of, checked_label, checked_span_label
from structsvm.annotate.inputs import Inputs, Item
from structsvm.annotate.learner import SpanLearner, TextLearner
from structsvm.annotate.places import Places
from structsvm.annotate.store import Record, Store, StoreError

VERSION = 1
ORDERS = ("query", "file")
# A text in five is kept for the learning curve, and every fifth question is one of them.
HELD_OUT = 5
# Seconds for which a text that was handed to one page is not handed to another.
RESERVED = 600.0
# The texts that are compared are others once so many of them are left.
LEFT = 0.9
# Points of the learning curve: training answers, doubling.
FIRST_POINT = 5
AnyLearner = SpanLearner | TextLearner
LABELS_OF_PAIRS = ("same", "different")


@dataclass(frozen=True)
class Entry:
    """An annotator's word on a text; `answer` is None for one that was skipped."""

    item: int
    by: str
    answer: Answer | None


class Session:
    """Texts and answers, with a model that learns from them. Its methods may be called from several threads.

    Parameters
    ----------
    inputs : Inputs
    store : Store
    task : {"sequence", "taxonomy", "pairs"}
    labels : sequence of str
        Labels to offer from the start; others come with the answers.
    order : {"query", "file"}
        What is asked next: what the model is least certain of, or the next text of the file.
    """

    def __init__(
        self, inputs: Inputs, store: Store, task: str, labels: Sequence[str] = (), order: str = "query"
    ) -> None:
        self.inputs, self.store, self.task, self.order = inputs, store, task, order
        self.lock = threading.RLock()
        self.notes = list(store.notes)
        self.learner: AnyLearner = SpanLearner() if task == "sequence" else TextLearner()
        self.entries: list[Entry] = []
        self._open = np.random.default_rng(0).permutation(len(inputs.items)).tolist()
        self._place = 0
        self._compared: dict[str, list[int]] = {}
        self._compared_items: dict[str, list[Item]] = {}
        self._digests = [item.digest for item in inputs.items]
        self._failure: list[str] = []
        self._reserved: dict[int, tuple[str, float]] = {}
        self._points: list[tuple[int, AnyLearner]] = []
        given = labels or inputs.labels or (LABELS_OF_PAIRS if task == "pairs" else ())
        self._labels = dict.fromkeys(map(self._checked_label, given))
        self._replay()
        self._learn_anew()

    # ---- what is there --------------------------------------------------------------------------

    @property
    def labels(self) -> list[str]:
        """The labels that the page offers."""
        return list(self._labels)

    def answers(self) -> dict[int, dict[str, Answer]]:
        """By text, then by annotator, the last answer; texts in the order of their first answers."""
        found: dict[int, dict[str, Answer]] = {}
        for entry in self.entries:
            own = found.setdefault(entry.item, {})
            own.pop(entry.by, None)
            if entry.answer is not None:
                own[entry.by] = entry.answer
        return {item: own for item, own in found.items() if own}

    def settled(self) -> list[tuple[Item, Answer]]:
        """Each labelled text with its answer, see the function `settled`."""
        return [(self.inputs.items[i], settled(list(own.values()))) for i, own in self.answers().items()]

    def state(self, by: str) -> dict[str, object]:
        """Counts, labels and notes: all that the page shows besides the text."""
        with self.lock:
            seen = self._seen(by)
            n_answers = sum(by in own for own in self.answers().values())
            changed = [f"{self.inputs.path} has changed since it was opened: start again to see it"]
            return {
                "task": self.task,
                "name": writable(PurePath(self.inputs.path).name),
                "order": self.order,
                "by": by,
                "labels": self.labels,
                "total": len(self.inputs.items),
                "answered": n_answers,
                "skipped": len(seen) - n_answers,
                "left": len(self.inputs.items) - len(seen),
                "ready": self.learner.is_ready,
                "trained": self.learner.n_trained,
                "notes": [
                    *map(writable, self.notes),
                    *self._failure,
                    *self.learner.notes,
                    *(map(writable, changed) if self.inputs.has_changed else []),
                ],
            }

    def rows(self, by: str, offset: int, limit: int) -> list[dict[str, object]]:
        """A slice of the texts, shortened."""
        with self.lock:
            last = self._last(by)
            items = self.inputs.items[offset : offset + limit]
            return [
                {"id": k, "text": item.text[:120], "answered": k in last and last[k] is not None, "skipped": k in last}
                for k, item in enumerate(items, offset)
            ]

    def shown(self, k: int, by: str) -> dict[str, object]:
        """A text as the page shows it, with what the annotator, the model or the file says of it."""
        with self.lock:
            item, own = self._item(k), self._last(by).get(k)
            found: dict[str, object] = {"id": k, "text": item.text, "other": item.other}
            if self.task == "sequence":
                found["words"] = item.spans
            found["answer"] = None if own is None else own.to_json()
            found["known"] = None if item.known is None else item.known.to_json()
            found["suggestion"] = self.learner.suggest(item) if self.learner.is_ready else None
            return found

    def why(self, k: int) -> list[dict[str, object]]:
        """Reasons of the model's suggestion. Raises ValueError before there is a model."""
        with self.lock:
            return self.learner.why(self._item(k))

    # ---- what comes in --------------------------------------------------------------------------

    def answer(self, k: int, value: object, by: str) -> None:
        """Store an answer, None to skip the text, and learn from it.

        Raises
        ------
        ValueError
            For an answer that does not fit the text.
        OSError
            If it cannot be stored; nothing has changed then.
        """
        with self.lock:
            item = self._item(k)
            answer = None if value is None else self._checked(item, value)
            said: dict[str, object] = {"skip": True} if answer is None else {"answer": answer.to_json()}
            self.store.append({"item": k, "digest": self._digests[k], "by": by, "time": now(), **said})
            before = self._last(by).get(k)
            self._take(Entry(k, by, answer))
            self._reserved.pop(k, None)
            if self._is_held_out(k) or answer == before:
                return
            if before is None and answer is not None:
                self._teach((item, answer))
            else:
                self._learn_anew()

    def last_answer(self, by: str) -> Answer | None:
        """The answer that `undo` would take back."""
        return next((entry.answer for entry in reversed(self.entries) if entry.by == by), None)

    def undo(self, by: str, page: str = "") -> int | None:
        """Take back the annotator's last answer, and reserve its text for a page, see `next`.

        Returns the text, -1 for one that is gone from the file, None if there was no answer. Raises as `answer`.
        """
        with self.lock:
            last = next((entry for entry in reversed(self.entries) if entry.by == by), None)
            if last is None:
                return None
            self.store.append({"undo": last.item, "by": by, "time": now()})
            self._take_back(by)
            if last.item >= 0 and not self._is_held_out(last.item) and self._last(by).get(last.item) != last.answer:
                self._learn_anew()
            if last.item >= 0:
                self._reserve(last.item, page)
            return last.item

    def add_label(self, value: object, by: str) -> None:
        """Store a new label. Raises as `answer`."""
        with self.lock:
            label = self._checked_label(value)
            if label not in self._labels:
                self.store.append({"new_label": label, "by": by, "time": now()})
                self._labels[label] = None

    # ---- the next question ----------------------------------------------------------------------

    def next(self, by: str, page: str) -> int | None:
        """The text to ask the annotator about; None if all are labelled.

        `page` names the browser's page: what one page was given is not given to another of the same annotator.
        """
        with self.lock:
            seen, limit = self._seen(by), time.monotonic() - RESERVED
            taken = {k for k, (other, since) in self._reserved.items() if other != page and since > limit}
            skipped = seen | taken
            k = self._asked(skipped if len(skipped) < len(self.inputs.items) else seen, by)
            self._reserve(k, page)
            return k

    def _reserve(self, k: int | None, page: str) -> None:
        """Keep a text, or none, for a page, and what other pages have for them."""
        now, limit = time.monotonic(), time.monotonic() - RESERVED
        self._reserved = {i: entry for i, entry in self._reserved.items() if entry[0] != page and entry[1] > limit}
        if k is not None:
            self._reserved[k] = (page, now)

    def _asked(self, skipped: set[int], by: str) -> int | None:
        if self.order == "file" or not self.learner.is_ready:
            return next((k for k in range(len(self.inputs.items)) if k not in skipped), None)
        is_turn = len(self.entries) % HELD_OUT == HELD_OUT - 1
        if not is_turn and (left := self._left_to_compare(skipped, by)):
            return self._compared[by][self.learner.most_useful(self._compared_items[by], left, by)]
        kinds = (is_turn, not is_turn)
        return next((k for held_out in kinds for k in self._some(skipped, 1, held_out=held_out)), None)

    def _left_to_compare(self, skipped: set[int], by: str) -> list[int]:
        """Places, among the texts that are compared, of those that can be asked; draws others where few are left.

        Each annotator has some of their own: what one has answered, another may be asked.
        """
        compared = self._compared.get(by, [])
        left = [place for place, k in enumerate(compared) if k not in skipped]
        if len(left) < max(1.0, LEFT * len(compared)):
            self._compared[by] = compared = list(self._some(skipped, self.learner.n_compared, held_out=False))
            self._compared_items[by] = [self.inputs.items[k] for k in compared]
            left = list(range(len(compared)))
        return left

    def _some(self, skipped: set[int], limit: int, *, held_out: bool) -> Iterator[int]:
        """At most `limit` texts in random order, other ones with each call."""
        n = len(self._open)
        start = self._place % n
        for k in range(start, start + n):
            item = self._open[k % n]
            if item not in skipped and self._is_held_out(item) == held_out:
                self._place = k + 1
                yield item
                limit -= 1
                if not limit:
                    return

    def _is_held_out(self, k: int) -> bool:
        return int(self._digests[k], 16) % HELD_OUT == 0

    # ---- learning -------------------------------------------------------------------------------

    def examples(self, *, held_out: bool) -> list[tuple[Item, Answer]]:
        """Answers to train on, or those kept for the learning curve: each annotator's."""
        found = self.answers()
        return [
            (self.inputs.items[k], answer)
            for k, own in found.items()
            if self._is_held_out(k) == held_out
            for answer in own.values()
        ]

    def _teach(self, example: tuple[Item, Answer]) -> None:
        examples = self.examples(held_out=False)
        with self._learning():
            self.learner.teach(example, examples)
            if self.learner.is_ready and len(examples) >= self._next_point():
                self._add_point(examples)

    def _learn_anew(self) -> None:
        examples = self.examples(held_out=False)
        self._points = [(n, learner) for n, learner in self._points if n <= len(examples)]
        with self._learning():
            self.learner.learn(examples)
            while self._next_point() <= len(examples):
                self._add_point(examples[: self._next_point()])

    @contextmanager
    def _learning(self) -> Iterator[None]:
        """Within it, an answer that cannot be learnt is a note on the page: it is stored all the same."""
        self._failure = []
        try:
            yield
        except ValueError as error:
            self._failure = [f"the model cannot learn these answers: {error}"]

    def _next_point(self) -> int:
        return 2 * self._points[-1][0] if self._points else FIRST_POINT

    def _add_point(self, examples: Sequence[tuple[Item, Answer]]) -> None:
        learner = type(self.learner)()
        learner.learn(examples)
        self._points.append((len(examples), learner))

    def curve(self) -> list[dict[str, object]]:
        """Points of the learning curve: training answers, mean score on held-out answers, its standard error.

        All models are compared on the same held-out answers; empty with fewer than two of them.
        """
        with self.lock:
            held_out = self.examples(held_out=True)
            if len(held_out) < 2:
                return []
            points = [*self._points, (self.learner.n_trained, self.learner)]
            found: dict[int, dict[str, object]] = {}
            for n, learner in points:
                if learner.is_ready:
                    scores = learner.scores(held_out)
                    # As if one more answer were half right: some that are all right are not all there is to know.
                    more = np.append(scores, 0.5)
                    error = float(more.std(ddof=1) / np.sqrt(len(more)))
                    found[n] = {"n": n, "score": float(scores.mean()), "error": error, "held_out": len(scores)}
            return list(found.values())

    def agreement(self) -> Agreement:
        """The agreement of the annotators, on the texts that several have labelled."""
        with self.lock:
            return agreement(self.answers().values())

    def model_file(self) -> bytes:
        """A model file, trained on all answers. Raises ValueError with fewer than two."""
        with self.lock:
            examples = [example for part in (False, True) for example in self.examples(held_out=part)]
        if len(examples) < 2 or not any(answer.labels for _, answer in examples):
            raise ValueError(f"a model needs two answers with labels at least, there are {len(examples)} answers")
        return self.learner.final(examples)

    # ---- records --------------------------------------------------------------------------------

    def _replay(self) -> None:
        """Restore the session from the records of the store."""
        places = Places(self._digests)
        if not self.store.records:
            first = {"structsvm": "annotate", "version": VERSION, "task": self.task, "time": now()}
            self.store.append({**first, "texts": places.state})
        for number, record in enumerate(self.store.records, 1):
            with self._line(number):
                places.add(number, record)
        moves = places.unsettled()
        if moves is not None:
            places.add(len(self.store.records) + 1, moves)
        for number, record in enumerate(self.store.records, 1):
            with self._line(number):
                self._replay_one(number, record, places)
        if moves is not None:
            self.store.append({**moves, "time": now()})

    @contextmanager
    def _line(self, number: int) -> Iterator[None]:
        """Within it, errors name the line of the store."""
        try:
            yield
        except ValueError as error:
            raise StoreError(f"{self.store.path}:{number}: {error}") from None

    def _replay_one(self, number: int, record: Record, places: Places) -> None:
        if "structsvm" in record:
            if record.get("version") != VERSION or record.get("task") != self.task:
                raise ValueError(f"answers of the task {record.get('task')!r}, version {record.get('version')!r}")
        elif "new_label" in record:
            self._replay_label(record["new_label"])
        elif "undo" in record:
            self._take_back(str(record.get("by")))
        elif "texts" not in record:
            self._replay_answer(number, record, places)

    def _replay_label(self, value: object) -> None:
        """Offer a stored label; one that no span can have is left out."""
        label = checked_label(value)
        if self.task == "sequence" and label == OUTSIDE:
            self.notes.append(f"{self.store.path}: the label {OUTSIDE} is what stands outside spans, and is left out")
        else:
            self._labels[label] = None

    def _replay_answer(self, number: int, record: Record, places: Places) -> None:
        was, digest, by = record.get("item"), record.get("digest"), str(record.get("by"))
        if type(was) is not int or not isinstance(digest, str):
            raise ValueError("no record of an answer")
        k = places.of(number)
        if k is None:
            self.notes.append(
                f"{self.inputs.path}: text {was + 1} has changed or is gone since {by} labelled it; that answer "
                f"stays in {self.store.path} and is left out"
            )
            # It keeps its place, so that an undo of it takes back no other one.
            self.entries.append(Entry(-1, by, None))
            return
        answer = None if record.get("skip") is True else self._checked(self.inputs.items[k], record.get("answer"))
        self._take(Entry(k, by, answer))

    def _checked_label(self, value: object) -> str:
        """A label to offer."""
        return checked_span_label(value) if self.task == "sequence" else checked_label(value)

    def _checked(self, item: Item, value: object) -> Answer:
        is_sequence = self.task == "sequence"
        return answer_of(value, len(item.spans) if is_sequence else 0, is_sequence=is_sequence)

    def _take(self, entry: Entry) -> None:
        self.entries.append(entry)
        if entry.answer is not None:
            self._labels |= dict.fromkeys(sorted(entry.answer.labels))

    def _take_back(self, by: str) -> None:
        place = next((k for k in reversed(range(len(self.entries))) if self.entries[k].by == by), None)
        if place is None:
            raise ValueError(f"nothing of {by} is there to undo")
        del self.entries[place]

    def _last(self, by: str) -> dict[int, Answer | None]:
        """The last answers of an annotator, by text; None: skipped."""
        return {entry.item: entry.answer for entry in self.entries if entry.by == by and entry.item >= 0}

    def _seen(self, by: str) -> set[int]:
        return set(self._last(by))

    def _item(self, k: int) -> Item:
        if not 0 <= k < len(self.inputs.items):
            raise ValueError(f"there is no text {k}")
        return self.inputs.items[k]


def settled(answers: Sequence[Answer]) -> Answer:
    """The answer that most annotators gave, whole ones before those in part; of several such ones the last."""
    worth = [(answer.is_whole, answers.count(answer)) for answer in answers]
    return max(zip(worth, range(len(answers)), answers))[2]


def writable(text: str) -> str:
    """A text with a mark in the place of what UTF-8 cannot write: bytes of a file's name in another encoding."""
    return text.encode("utf-8", "replace").decode("utf-8")


def now() -> str:
    """The time as records have it."""
    return dt.datetime.now(dt.UTC).isoformat(timespec="seconds")


def names_of(names: Iterable[str]) -> list[str]:
    """Names of annotators, checked; ValueError for one twice."""
    found = [checked_label(name, "--annotator: a name") for name in names]
    if len(set(found)) < len(found):
        raise ValueError(f"--annotator: a name is given twice: {', '.join(found)}")
    return found
