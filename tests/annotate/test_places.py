"""Answers stay with their texts while the file changes between openings."""

import json
import tempfile
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from labelled_addresses import session_of

from structsvm.annotate import session as session_module
from structsvm.annotate.places import Places
from structsvm.annotate.store import StoreError

BEFORE, AFTER = ["same", "other"], ["new", "same", "more", "same"]
TEXTS = st.lists(st.sampled_from(["a", "b", "c"]), min_size=1, max_size=6)
BY = st.sampled_from(["ann", "bob"])
STEPS = st.one_of(
    st.tuples(st.just("answer"), st.integers(0, 5), st.sampled_from(["x", "y", None]), BY),
    st.tuples(st.just("undo"), BY),
    st.tuples(st.just("file"), TEXTS),
    st.tuples(st.just("open")),
)


@pytest.fixture(autouse=True)
def _untrained(monkeypatch):
    """Places concern no model."""
    monkeypatch.setattr(session_module.Session, "_learn_anew", lambda self: None)
    monkeypatch.setattr(session_module.Session, "_teach", lambda self, example: None)


def opened(path, texts=None):
    if texts is not None:
        path.write_text("".join(f"{text}\n" for text in texts))
    return session_of(path, "taxonomy", ["x", "y"])


def labels(session):
    return {k: {by: answer.label for by, answer in own.items()} for k, own in session.answers().items()}


def contents(session):
    return labels(session), session.labels, [(entry.item, entry.by, entry.answer) for entry in session.entries]


def moved(tmp_path, before=BEFORE, after=AFTER):
    """A session whose first text, labelled x by ann, has moved."""
    first = opened(tmp_path / "a.txt", before)
    first.answer(0, {"label": "x"}, "ann")
    first.store.close()
    return opened(tmp_path / "a.txt", after)


def test_a_correction_after_a_move_stays(tmp_path):
    session = moved(tmp_path)
    assert labels(session) == {1: {"ann": "x"}}
    session.answer(1, {"label": "y"}, "ann")
    session.store.close()
    session = opened(tmp_path / "a.txt")
    session.store.close()
    assert labels(session) == {1: {"ann": "y"}} and session._seen("ann") == {1}


def test_another_annotator_after_a_move_agrees_on_the_same_text(tmp_path):
    session = moved(tmp_path)
    session.answer(1, {"label": "x"}, "bob")
    session.store.close()
    session = opened(tmp_path / "a.txt")
    session.store.close()
    assert labels(session) == {1: {"ann": "x", "bob": "x"}} and session.agreement().n_texts == 1


def test_an_undo_after_a_move_gives_back_the_answer_before(tmp_path):
    session = moved(tmp_path)
    session.answer(1, {"label": "y"}, "ann")
    assert session.undo("ann") == 1 and labels(session) == {1: {"ann": "x"}}
    session.store.close()
    session = opened(tmp_path / "a.txt")
    session.store.close()
    assert labels(session) == {1: {"ann": "x"}}


def test_a_wrong_file_loses_nothing(tmp_path):
    texts = ["same", "more", "same", "same"]
    session = opened(tmp_path / "a.txt", texts)
    for k, label in ((3, "y"), (0, "x"), (1, "x")):
        session.answer(k, {"label": label}, "ann")
    before = contents(session)
    session.store.close()
    session = opened(tmp_path / "a.txt", ["nothing", "of", "it"])
    assert not session.answers() and len(session.notes) == 3
    session.store.close()
    session = opened(tmp_path / "a.txt", texts)
    session.store.close()
    assert contents(session) == before


def test_texts_that_are_too_many_are_named_and_come_back(tmp_path):
    session = opened(tmp_path / "a.txt", ["same"] * 3)
    for k, label in enumerate("xyx"):
        session.answer(k, {"label": label}, "ann")
    session.store.close()
    session = opened(tmp_path / "a.txt", ["new", "same", "same"])
    assert len(session.notes) == 1 and "text 1 has changed or is gone since ann labelled it" in session.notes[0]
    assert labels(session) == {1: {"ann": "y"}, 2: {"ann": "x"}}
    session.store.close()
    session = opened(tmp_path / "a.txt", ["same"] * 3)
    session.store.close()
    assert labels(session) == {k: {"ann": label} for k, label in enumerate("xyx")}


def test_a_text_that_is_gone_does_not_take_the_place_of_one_that_is_there(tmp_path):
    session = opened(tmp_path / "a.txt", ["same", "same"])
    session.answer(0, {"label": "x"}, "ann")
    session.answer(1, {"label": "y"}, "ann")
    for texts in (["same"], ["new", "same"]):
        session.store.close()
        session = opened(tmp_path / "a.txt", texts)
    session.store.close()
    assert labels(session) == {1: {"ann": "x"}}


def test_an_answer_taken_back_takes_no_place(tmp_path):
    session = opened(tmp_path / "a.txt", ["same", "same"])
    session.answer(0, {"label": "x"}, "ann")
    session.undo("ann")
    session.answer(1, {"label": "y"}, "ann")
    session.store.close()
    session = opened(tmp_path / "a.txt", ["same"])
    session.store.close()
    assert labels(session) == {0: {"ann": "y"}}


def test_each_change_of_the_file_is_one_record(tmp_path):
    session = moved(tmp_path)
    assert session.store.records[-1]["moved"] == [[2, 1]]
    session.store.close()
    for _ in range(2):
        session = opened(tmp_path / "a.txt")
        session.store.close()
        assert len(session.store.records) == 3


def without_states(path):
    """Make a file of answers what a program without records of moves has written."""
    records = [json.loads(line) for line in path.read_text().splitlines()]
    records[0].pop("texts")
    path.write_text("".join(json.dumps(record) + "\n" for record in records if "moved" not in record))


def test_answers_without_records_of_moves(tmp_path):
    session = moved(tmp_path)
    session.answer(1, {"label": "y"}, "ann")
    session.answer(1, {"label": "x"}, "bob")
    session.store.close()
    without_states(tmp_path / "a.txt.answers.jsonl")
    for _ in range(2):
        session = opened(tmp_path / "a.txt")
        session.store.close()
        assert labels(session) == {1: {"ann": "y", "bob": "x"}}
    session = opened(tmp_path / "a.txt", ["more", "new", "same", "same"])
    session.store.close()
    assert labels(session) == {2: {"ann": "y", "bob": "x"}}


@pytest.mark.parametrize("value", [1, [1], [[2]], [[9, 1]], [["2", 1]], [[2, "1"]], [[2, True]]], ids=str)
def test_damaged_moves_are_named(tmp_path, value):
    moved(tmp_path).store.close()
    path = tmp_path / "a.txt.answers.jsonl"
    *lines, last = path.read_text().splitlines()
    path.write_text("\n".join([*lines, json.dumps({**json.loads(last), "moved": value})]) + "\n")
    with pytest.raises(StoreError, match=r"jsonl:3: no record of texts that moved"):
        opened(tmp_path / "a.txt")


def test_a_move_beyond_the_file_is_an_answer_left_out(tmp_path):
    moved(tmp_path).store.close()
    path = tmp_path / "a.txt.answers.jsonl"
    path.write_text(path.read_text().replace("[[2, 1]]", "[[2, 77]]"))
    session = opened(tmp_path / "a.txt")
    session.store.close()
    assert not session.answers() and "changed or is gone" in session.notes[0]


class Asked(set):
    """Places that are taken, counting how often one is sought."""

    n = 0

    def __contains__(self, k):
        self.n += 1
        return super().__contains__(k)


def test_many_texts_that_are_alike_are_placed_in_one_pass():
    n, taken = 2000, Asked()
    places = Places(["o"] * n + ["d"] * n)
    places.add(1, {"texts": "before"})
    for k in range(n):
        places.add(k + 2, {"item": k, "digest": "d", "by": "ann"})
    free = places._free(taken)
    found = [places._moved(k + 2, free, taken) for k in range(n)]
    assert found == list(range(n, 2 * n)) and taken.n == n
    places.add(n + 2, places.unsettled())
    assert [places.of(k + 2) for k in range(n)] == found


def groups(session):
    """Texts with all that was said of them, how often."""
    said = {}
    for entry in session.entries:
        if entry.item >= 0:
            said.setdefault(entry.item, []).append((entry.by, entry.answer))
    return Counter((session.inputs.items[k].text, tuple(own)) for k, own in said.items())


@given(TEXTS, st.lists(STEPS, max_size=14))
@settings(deadline=None)
def test_an_opening_without_a_change_gives_the_same_answers(texts, steps):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.txt"
        session = opened(path, texts)
        try:
            for name, *values in [*steps, ("open",)]:
                if name == "answer":
                    k, label, by = values
                    session.answer(k % len(session.inputs.items), None if label is None else {"label": label}, by)
                elif name == "undo":
                    session.undo(values[0])
                else:
                    before, kept = contents(session), groups(session)
                    session.store.close()
                    session = opened(path, *values)
                    if name == "open":
                        assert contents(session) == before
                    else:
                        # Answers of a text stay together, and with their text as long as there are enough.
                        room = Counter(item.text for item in session.inputs.items)
                        for text in room:
                            found, there = (
                                Counter({g: n for g, n in c.items() if g[0] == text}) for c in (kept, groups(session))
                            )
                            assert (found & there).total() == min(found.total(), room[text])
        finally:
            session.store.close()
