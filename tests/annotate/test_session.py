"""Sessions: questions, answers, undo, resuming, learning, exports."""

import json
import warnings

import numpy as np
import pytest
from labelled_addresses import answered, session_of, write_addresses
from sklearn.exceptions import ConvergenceWarning

import structsvm
from structsvm import tasks
from structsvm.annotate.answers import Answer, answer_of, tags_of
from structsvm.annotate.exports import exported
from structsvm.annotate.inputs import Item, read_inputs
from structsvm.annotate.learner import ALWAYS, SpanLearner, TextLearner, leaves_some
from structsvm.annotate.pairs import pair_text
from structsvm.annotate.session import HELD_OUT, names_of, settled
from structsvm.annotate.store import StoreError
from structsvm.features.columns import read_columns
from structsvm.structures.dependencies import read_conllu
from structsvm.tasks import Pool

TEXTS = [
    "red car",
    "small dog",
    "blue car",
    "big dog",
    "old car",
    "old dog",
    "new car",
    "dog barks",
    "fast car",
    "a dog",
]


@pytest.fixture
def addresses(tmp_path):
    return write_addresses(tmp_path)


@pytest.fixture
def opened():
    """Sessions, whose stores are closed at the end."""
    stores = []

    def make(*args, **named):
        session = session_of(*args, **named)
        stores.append(session.store)
        return session

    yield make
    for store in stores:
        store.close()


def reopened(session, opened, path, **named):
    session.store.close()
    session.store.close = lambda: None
    return opened(path, **named)


def contents(session):
    return session.answers(), session.labels, [(e.item, e.by, e.answer) for e in session.entries]


def test_suggestions_begin_with_two_of_each(opened, tmp_path):
    (tmp_path / "a.txt").write_text("".join(f"{text} {k}\n" for k, text in enumerate(TEXTS)))
    session = opened(tmp_path / "a.txt", "taxonomy")
    session._is_held_out = lambda k: False
    for k, label in enumerate(["car", "dog", "car"]):
        session.answer(k, {"label": label}, "eve")
        assert not session.learner.is_ready and session.shown(4, "eve")["suggestion"] is None
    session.answer(3, {"label": "dog"}, "eve")
    suggestion = session.shown(4, "eve")["suggestion"]
    assert suggestion["label"] == "car" and sum(p for _, p in suggestion["ranked"]) == pytest.approx(1, abs=1e-3)
    reasons = session.why(4)
    assert reasons and all(set(reason) == {"feature", "label", "value"} for reason in reasons)


def test_learns_addresses(opened, addresses):
    path, known = addresses
    session = opened(path)
    answered(session, known, 40)
    curve = session.curve()
    assert [point["n"] for point in curve][:2] == [10, 20]
    assert curve[-1]["score"] > 0.9 > curve[0]["score"] and 0 < curve[0]["error"] < 0.5
    assert session.labels == sorted({span[2] for own in known.values() for span in own}, key=session.labels.index)
    spans = session.shown(session.next("eve", "page"), "eve")["suggestion"]["spans"]
    assert spans and all(0 < p <= 1 for *_, p in spans)


def test_held_out_answers_are_never_trained_on(opened, addresses):
    path, known = addresses
    session = opened(path)
    answered(session, known, 40)
    held_out = {k for k in session.answers() if session._is_held_out(k)}
    # A question in five is one of them.
    assert 5 <= len(held_out) <= 12
    assert session.learner.n_trained == 40 - len(held_out)
    assert len(session.examples(held_out=True)) == len(held_out) == session.curve()[0]["held_out"]


def test_asks_the_least_certain_first(opened, addresses):
    path, known = addresses
    session = opened(path)
    answered(session, known, 22)
    assert session.learner.is_ready
    session.entries.append(session.entries[0]) if len(session.entries) % HELD_OUT == HELD_OUT - 1 else None
    seen = session._seen("eve")
    rest = [k for k in range(len(session.inputs.items)) if k not in seen and not session._is_held_out(k)]
    model = session.learner.estimator
    marginals = model.predict_marginals([session.inputs.items[k].words for k in rest])
    expected = rest[int(np.argmin([own.max(axis=1).mean() for own in marginals]))]
    assert session.next("eve", "page") == expected


def test_order_of_the_file(opened, addresses):
    path, known = addresses
    assert answered(opened(path, order="file"), known, 30) == list(range(30))


def test_comes_back_as_it_was(opened, addresses):
    path, known = addresses
    session = opened(path)
    answered(session, known, 12)
    session.undo("eve")
    session.add_label("new one", "eve")
    session.answer(session.next("eve", "page"), None, "eve")
    answered(session, known, 3, by="bob")
    before, shown = contents(session), session.shown(50, "eve")
    again = reopened(session, opened, path)
    assert contents(again) == before and again.shown(50, "eve") == shown
    assert again.curve() == session.curve()
    assert again.state("eve")["answered"] == 11 and again.state("eve")["skipped"] == 1


def test_undo_is_a_record_and_gives_back_what_was_before(opened, addresses):
    path, _ = addresses
    session = opened(path)
    assert session.undo("eve") is None
    session.answer(3, {"spans": [[0, 1, "a"]]}, "eve")
    session.answer(4, {"spans": []}, "bob")
    session.answer(3, {"spans": [[0, 1, "b"]]}, "eve")
    assert session.undo("eve") == 3
    assert session.answers()[3]["eve"] == Answer(((0, 1, "a"),))
    assert session.undo("eve") == 3 and session.answers().keys() == {4}
    assert session.store.records[-1]["undo"] == 3
    assert contents(reopened(session, opened, path))[0].keys() == {4}


def test_an_answer_that_does_not_fit_changes_nothing(opened, addresses):
    path, _ = addresses
    session = opened(path)
    before = path.with_name(path.name + ".answers.jsonl").read_bytes()
    for k, value in ((0, {"spans": [[0, 99, "a"]]}), (0, {}), (0, []), (999, {"spans": []}), (-1, {"spans": []})):
        with pytest.raises(ValueError, match=r"answer|there is no text"):
            session.answer(k, value, "eve")
    with pytest.raises(ValueError, match="not seen enough"):
        session.why(0)
    assert path.with_name(path.name + ".answers.jsonl").read_bytes() == before and not session.entries


def test_a_full_disk_leaves_the_session_as_it_was(opened, addresses, monkeypatch):
    path, known = addresses
    session = opened(path)
    answered(session, known, 5)
    before, shown = contents(session), session.state("eve")

    def full(record):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(session.store, "append", full)
    for action in (
        lambda: session.answer(30, {"spans": []}, "eve"),
        lambda: session.undo("eve"),
        lambda: session.add_label("more", "eve"),
    ):
        with pytest.raises(OSError, match="No space"):
            action()
        assert contents(session) == before and session.state("eve") == shown


def test_a_file_that_changes_underneath(opened, addresses):
    path, known = addresses
    session = opened(path, order="file")
    answered(session, known, 6)
    lines = path.read_text().splitlines()
    path.write_text("\n".join(["a new line", *lines[:3], "another line", *lines[4:]]) + "\n")
    assert any("has changed since it was opened" in note for note in session.state("eve")["notes"])
    again = reopened(session, opened, path)
    # Lines that moved are found again; the one that is gone is named, and its answer stays in the file.
    assert sorted(again.answers()) == [1, 2, 3, 5, 6]
    assert [note for note in again.notes if "text 4 has changed or is gone since eve labelled it" in note]
    assert again.undo("eve") == 6


@pytest.mark.parametrize(
    ("before", "after"),
    [("abxxc", "nabxxc"), ("abxxc", "bxxc"), ("xbx", "nxbx"), ("xxx", "xx"), ("axbx", "xaxb")],
    ids=lambda lines: lines,
)
def test_lines_that_are_alike_keep_an_answer_each(opened, tmp_path, before, after):
    path = tmp_path / "a.txt"
    path.write_text("".join(f"{line} y\n" for line in before))
    session = opened(path)
    for k in range(len(before)):
        session.answer(k, {"spans": [[0, 1, "x"]]}, "eve")
    path.write_text("".join(f"{line} y\n" for line in after))
    again = reopened(session, opened, path)
    assert sorted(again.answers()) == [k for k, line in enumerate(after) if line in before]
    answered_again = next(k for k, line in enumerate(after) if line == "x")
    again.answer(answered_again, {"spans": [[1, 2, "z"]]}, "eve")
    last = reopened(again, opened, path)
    assert last.answers()[answered_again]["eve"].spans == ((1, 2, "z"),)
    assert sum(own["eve"].spans == ((1, 2, "z"),) for own in last.answers().values()) == 1


def test_an_undo_of_an_answer_whose_text_is_gone(opened, tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("one\ntwo\n")
    session = opened(path)
    session.answer(1, {"spans": []}, "eve")
    path.write_text("one\n")
    again = reopened(session, opened, path)
    assert again.undo("eve", "page") == -1 and again.undo("eve", "page") is None


def test_what_changes_no_example_trains_nothing(opened, addresses, monkeypatch):
    """A fit on all answers takes seconds where there are thousands."""
    path, known = addresses
    session = opened(path)
    answered(session, known, 30)
    held_out = [k for k in session.answers() if session._is_held_out(k)]
    fits = []
    learn = SpanLearner.learn
    monkeypatch.setattr(
        SpanLearner, "learn", lambda self, examples: (fits.append(len(examples)), learn(self, examples))
    )
    trained = next(k for k in session.answers() if not session._is_held_out(k))
    n_trained = session.learner.n_trained
    session.answer(trained, session.answers()[trained]["eve"].to_json(), "eve")  # the same again
    session.undo("eve")
    session.answer(held_out[0], {"spans": []}, "eve")
    session.undo("eve")
    skipped = next(k for k in range(60) if k not in session.answers())
    session.answer(skipped, None, "eve")
    session.undo("eve")
    assert fits == [] and session.learner.n_trained == n_trained
    session.answer(trained, {"spans": []}, "eve")
    session.answer(trained, None, "eve")
    session.undo("eve")
    session.undo("eve")
    assert fits == [n_trained, n_trained - 1, n_trained, n_trained]
    assert contents(reopened(session, opened, path))[0] == session.answers()


def test_answers_of_another_task_are_refused(opened, addresses):
    path, _ = addresses
    opened(path).store.close()
    with pytest.raises(StoreError, match=r"answers\.jsonl:1: answers of the task 'sequence'"):
        session_of(path, "taxonomy")


def test_partial_answers(opened, addresses):
    path, known = addresses
    session = opened(path, order="file")
    for k, (_text, spans) in enumerate(list(known.items())[:30]):
        session.answer(k, {"spans": spans[::2] if k % 2 else spans, "complete": k % 2 == 0}, "eve")
    assert session.learner.is_ready
    assert session.curve()[-1]["score"] > 0.7
    whole = exported(session, "conll")
    assert whole.left_out == "15 partial answers are left out: JSON lines have them"
    assert tags_of(Answer(((1, 2, "a"),), complete=False), 3) == [None, "B-a", None]


def test_what_stands_outside_spans_is_no_label(opened, tmp_path):
    for name in "abc":
        (tmp_path / f"{name}.txt").write_text("one\ntwo\n")
    with pytest.raises(ValueError, match="O is what stands outside spans"):
        opened(tmp_path / "a.txt", labels=["street", "O"])
    session = opened(tmp_path / "b.txt", labels=["street"])
    with pytest.raises(ValueError, match="O is what stands outside spans"):
        session.add_label(" O ", "eve")
    assert session.labels == ["street"]
    assert opened(tmp_path / "c.txt", "taxonomy", labels=["O"]).labels == ["O"]


@pytest.mark.parametrize("task", ["sequence", "taxonomy"])
def test_a_stored_label_that_no_span_can_have_is_not_offered(opened, tmp_path, task):
    path = tmp_path / "a.txt"
    path.write_text("one\ntwo\n")
    session = opened(path, task)
    for label in ("street", "O", " O "):
        session.store.append({"new_label": label, "by": "eve", "time": "2026-01-01T00:00:00+00:00"})
    again = reopened(session, opened, path, task=task)
    assert again.labels == (["street"] if task == "sequence" else ["street", "O"])
    assert any("the label O is what stands outside spans" in note for note in again.notes) == (task == "sequence")


def test_a_wrong_label_without_the_right_one(opened, addresses):
    path, known = addresses
    session = opened(path, order="file")
    answered(session, known, 20)
    first, *_ = known[session.inputs.items[20].text]
    session.answer(20, {"spans": [], "complete": False, "wrong": [[*first[:2], "city"]]}, "eve")
    wrong = Answer(complete=False, wrong_spans=((*first[:2], "city"),))
    assert session.answers()[20]["eve"] == wrong and not wrong.is_whole
    assert session.store.records[-1]["answer"]["wrong"] == [[*first[:2], "city"]]
    assert session.learner.is_ready and not session.state("eve")["notes"]
    assert not any(span[0] < first[1] and span[2] == "city" for span in session.shown(20, "eve")["suggestion"]["spans"])
    line = json.loads(exported(session, "jsonl").data.decode().splitlines()[-1])
    assert line["spans"] == [] and [span["label"] for span in line["wrong"]] == ["city"]
    assert exported(session, "conll").left_out.startswith("1 partial answers")
    assert contents(reopened(session, opened, path))[0][20]["eve"] == wrong


def test_a_text_that_is_not_of_a_class(opened, tmp_path):
    (tmp_path / "a.txt").write_text("".join(f"{text} {k}\n" for k, text in enumerate(TEXTS)))
    session = opened(tmp_path / "a.txt", "taxonomy")
    session._is_held_out = lambda k: False
    for k in range(8):
        session.answer(k, {"label": "car" if "car" in TEXTS[k] else "dog"}, "eve")
    session.answer(8, {"label": "car"}, "eve")
    assert session.shown(9, "eve")["suggestion"]["label"] == "dog"
    session.answer(9, {"wrong": ["dog"]}, "eve")
    wrong = Answer(wrong_labels=("dog",))
    assert session.answers()[9]["eve"] == wrong and session.shown(9, "eve")["answer"] == {"wrong": ["dog"]}
    assert session.shown(9, "eve")["suggestion"]["label"] == "car"
    assert session.learner.scores([(session.inputs.items[9], wrong)]).tolist() == [1.0]
    lines = [json.loads(line) for line in exported(session, "jsonl").data.decode().splitlines()]
    assert lines[-1] == {"text": "a dog 9", "wrong": ["dog"]}
    (tmp_path / "b.jsonl").write_bytes(exported(session, "jsonl").data)
    assert opened(tmp_path / "b.jsonl", "taxonomy").inputs.items[-1].known == wrong


@pytest.mark.parametrize(
    ("labels", "wrong"), [(("dog", "car"), ("dog", "car", "cat")), (("a > x", "a > y"), ("a",))], ids=["flat", "paths"]
)
def test_a_text_without_any_label_so_far_waits(labels, wrong):
    examples = [(Item(text), Answer(label=labels["car" in text])) for text in TEXTS[:8]]
    denied = (Item("an owl"), Answer(wrong_labels=wrong))
    learner, without = TextLearner(), TextLearner()
    learner.learn([*examples, denied])
    without.learn(examples)
    assert learner.is_ready and learner.suggest(examples[0][0]) == without.suggest(examples[0][0])
    before = learner.estimator.model_
    learner._step(learner.estimator, denied)
    assert learner.estimator.model_ is before
    others = [(Item(f"an owl {k}"), Answer(label="owl > z")) for k in range(2)]
    learner.learn([*examples, *others, denied])
    without.learn([*examples, *others, (denied[0], Answer(label="owl > z"))])
    assert learner.suggest(denied[0]) == without.suggest(denied[0])


def test_a_span_without_any_tag_so_far_waits():
    examples = [(Item("Oak St Reno"), Answer(((0, 2, "x"),), complete=False))] * 3
    denied = (Item("Elm St"), Answer(complete=False, wrong_spans=((0, 1, "x"),)))
    learner = SpanLearner()
    learner.learn([*examples, denied])
    assert learner.is_ready and learner.suggest(denied[0])["spans"]
    learner.learn([*examples, *[(Item("Fir St"), Answer(((0, 1, "y"),)))] * 3, denied])
    assert not any(span[0] < 1 and span[2] == "x" for span in learner.suggest(denied[0])["spans"])


def test_where_labels_are_above_others_each_is_itself():
    assert leaves_some(Answer(wrong_labels=("a",)), {"a", "a > x"})
    assert not leaves_some(Answer(wrong_labels=("a", "a > x")), {"a", "a > x"})
    assert not leaves_some(Answer(wrong_labels=("a",)), {"a > x > y"})


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"spans": [], "wrong": [[0, 9, "a"]]}, "is no span of 3 words"),
        ({"spans": [[0, 2, "a"]], "wrong": [[1, 3, "b"]]}, "overlap"),
        ({"spans": [], "wrong": "a"}, "must be a list"),
        ({"spans": [], "wrong": [], "complete": False}, "at least one span"),
    ],
)
def test_wrong_spans_that_do_not_fit(value, message):
    with pytest.raises(ValueError, match=message):
        answer_of(value, 3, is_sequence=True)


def test_a_label_leaves_none_to_deny():
    with pytest.raises(ValueError, match="answer has a label"):
        answer_of({"label": "a", "wrong": ["b"]}, 0, is_sequence=False)


def test_warnings_of_the_training_are_shown(opened, addresses, monkeypatch):
    """They stay until the next training, whatever the model predicts in between."""
    path, known = addresses
    session = opened(path)
    answered(session, known, 12)
    train = SpanLearner._train

    def warned(self, estimator, examples):
        warnings.warn("not converged", ConvergenceWarning, stacklevel=1)
        train(self, estimator, examples)

    monkeypatch.setattr(SpanLearner, "_train", warned)
    answered(session, known, 2)
    session.shown(session.next("eve", "page"), "eve")
    assert session.state("eve")["notes"] == ["not converged"]


def test_only_partial_answers(opened, addresses):
    path, known = addresses
    session = opened(path, order="file")
    for k, spans in enumerate(list(known.values())[:15]):
        session.answer(k, {"spans": spans[:2], "complete": False}, "eve")
    assert session.learner.is_ready and session.shown(20, "eve")["suggestion"]["spans"]


def test_two_pages_get_two_texts(opened, addresses):
    path, known = addresses
    session = opened(path)
    one, other = session.next("eve", "one"), session.next("eve", "other")
    assert one != other and session.next("eve", "one") == one
    answered(session, known, 15)
    assert session.next("eve", "one") != session.next("eve", "other")


def test_annotators_do_not_take_each_others_pools(opened, tmp_path, monkeypatch):
    """A pool is encoded once, not anew with each question, whatever the others have answered."""
    (tmp_path / "a.txt").write_text("".join(f"{TEXTS[k % 10]} {k}\n" for k in range(300)))
    session, made = opened(tmp_path / "a.txt", "taxonomy"), []
    monkeypatch.setattr(tasks, "Pool", lambda *args: made.append(len(args[1])) or Pool(*args))
    for k in range(80):
        session.answer(k, {"label": "car" if "car" in TEXTS[k % 10] else "dog"}, "ann" if k < 40 else "bob")
    for _ in range(8):
        for by in ("ann", "bob"):
            k = session.next(by, by)
            assert k not in session._seen(by)
            session.answer(k, {"label": "car" if "car" in TEXTS[k % 10] else "dog"}, by)
    assert len(made) == 2


def test_the_last_text_is_given_to_both(opened, tmp_path):
    (tmp_path / "a.txt").write_text("only one\n")
    session = opened(tmp_path / "a.txt")
    assert session.next("eve", "one") == session.next("eve", "other") == 0
    session.answer(0, {"spans": []}, "eve")
    assert session.next("eve", "one") is None and session.next("bob", "x") == 0


def test_of_several_answers_most_count():
    a, b = Answer(label="a"), Answer(label="b")
    assert settled([a, b, b]) == b and settled([a, b]) == b and settled([b, a]) == a and settled([a, a, b]) == a
    part = Answer(((0, 1, "a"),), complete=False)
    assert settled([part, Answer(), part]) == Answer() and settled([part]) == part


def test_exports_have_the_answer_of_most(opened, addresses):
    path, _ = addresses
    session = opened(path)
    for by, label in (("ann", "a"), ("bob", "a"), ("eve", "b")):
        session.answer(0, {"spans": [[0, 1, label]]}, by)
    session.answer(1, {"spans": [[0, 1, "a"]]}, "ann")
    session.answer(1, {"spans": [[1, 2, "b"]], "complete": False}, "bob")
    first, second = (json.loads(line) for line in exported(session, "jsonl").data.decode().splitlines())
    assert first["spans"][0]["label"] == second["spans"][0]["label"] == "a" and second["complete"]
    assert [first["by"][name]["spans"][0]["label"] for name in ("ann", "bob", "eve")] == ["a", "a", "b"]
    whole = exported(session, "conll")
    assert not whole.left_out and whole.data.decode().count("B-a") == 2


def test_exports_of_given_words_are_read_again(opened, tmp_path):
    """Words of a file are not those that a text of them would be split into."""
    (tmp_path / "a.jsonl").write_text(json.dumps({"words": ["St.", "New York", "(x)"]}) + "\n")
    session = opened(tmp_path / "a.jsonl")
    session.answer(0, {"spans": [[0, 1, "s"], [1, 2, "c d"]]}, "eve")
    (tmp_path / "b.jsonl").write_bytes(exported(session, "jsonl").data)
    (item,) = read_inputs(str(tmp_path / "b.jsonl")).items
    assert item == session.inputs.items[0] and item.digest == session.inputs.items[0].digest
    assert item.known == session.answers()[0]["eve"]
    (tmp_path / "b.conll").write_bytes(exported(session, "conll").data)
    (item,) = read_inputs(str(tmp_path / "b.conll")).items
    assert item.given == ("St.", "New York", "(x)") and item.known == session.answers()[0]["eve"]


@pytest.mark.parametrize(
    ("word", "label", "kinds"),
    [("a\tb", "x", ["conll", "conllu"]), ("a\nb", "x", ["conll", "conllu"]), ("ab", "x|y", ["conllu"])],
    ids=["tab", "line", "bar"],
)
def test_what_a_line_of_words_cannot_hold(opened, tmp_path, word, label, kinds):
    (tmp_path / "a.jsonl").write_text(json.dumps({"words": [word, "c"]}) + "\n")
    session = opened(tmp_path / "a.jsonl")
    session.answer(0, {"spans": [[0, 1, label]]}, "eve")
    for kind in kinds:
        with pytest.raises(ValueError, match="export JSON lines"):
            exported(session, kind)
    assert json.loads(exported(session, "jsonl").data)["words"] == [word, "c"]


@pytest.mark.parametrize("words", [["see", "-DOCSTART-", "now"], [" a"], ["a\ufeff", "\ufeffa"], ["a b"], ["# a", "b"]])
def test_words_that_a_column_file_would_change(opened, tmp_path, words):
    (tmp_path / "a.jsonl").write_text(json.dumps({"words": words}) + "\n")
    session = opened(tmp_path / "a.jsonl")
    session.answer(0, {"spans": [[0, len(words), "L"]]}, "eve")
    with pytest.raises(ValueError, match=r"the word '[^']+' with '[BI]-L' is read again .* as another: export JSON"):
        exported(session, "conll")
    (tmp_path / "b.jsonl").write_bytes(exported(session, "jsonl").data)
    assert read_inputs(str(tmp_path / "b.jsonl")).items[0].given == tuple(words)


def test_exports(opened, addresses, tmp_path):
    path, known = addresses
    session = opened(path, order="file")
    answered(session, known, 25)
    answered(session, known, 2, by="bob")
    texts = list(known)[:25]
    lines = [json.loads(line) for line in exported(session, "jsonl").data.decode().splitlines()]
    assert [line["text"] for line in lines] == texts
    for line in lines:
        found = [(line["text"][s["start"] : s["end"]], s["label"]) for s in line["spans"]]
        assert found == [(" ".join(line["text"].split()[a:b]), label) for a, b, label in known[line["text"]]]
    assert [sorted(line.get("by", ())) for line in lines[:3]] == [["bob", "eve"], ["bob", "eve"], []]
    (tmp_path / "a.conll").write_bytes(exported(session, "conll").data)
    columns = read_columns(tmp_path / "a.conll")
    assert columns.column(0) == [text.split() for text in texts]
    tags = [tags_of(Answer(tuple(map(tuple, known[text]))), len(text.split())) for text in texts]
    assert columns.column(1) == tags
    (tmp_path / "a.conllu").write_bytes(exported(session, "conllu").data)
    assert [[word.form for word in tree.words] for tree in read_conllu(tmp_path / "a.conllu")] == columns.column(0)
    (tmp_path / "a.model").write_bytes(exported(session, "model").data)
    model = structsvm.load(tmp_path / "a.model")
    assert model.score([text.split() for text in texts], tags) > 0.95
    with pytest.raises(ValueError, match="there is no export 'pdf'"):
        exported(session, "pdf")


def test_parts_of_speech_are_the_universal_tags(opened, tmp_path):
    (tmp_path / "a.txt").write_text("Dogs bark.\n")
    session = opened(tmp_path / "a.txt")
    session.answer(0, {"spans": [[0, 1, "NOUN"], [1, 2, "VERB"], [2, 3, "PUNCT"]]}, "eve")
    text = exported(session, "conllu").data.decode()
    assert text.splitlines()[2] == "2\tbark\t_\tVERB\t_\t_\t_\t_\t_\tSpaceAfter=No"


def test_pairs(opened, tmp_path):
    rows = [(f"Oak Street {k}", f"oak st {k}") for k in range(12)] + [
        (f"Oak Street {k}", f"Elm Road {99 - k}") for k in range(12)
    ]
    order = np.random.default_rng(0).permutation(24)
    (tmp_path / "a.txt").write_text("".join(f"{rows[k][0]}\t{rows[k][1]}\n" for k in order))
    session = opened(tmp_path / "a.txt", "pairs")
    assert session.labels == ["same", "different"]
    for k in range(16):
        session.answer(k, {"label": "same" if order[k] < 12 else "different"}, "eve")
    found = [session.shown(k, "eve")["suggestion"]["label"] for k in range(16, 24)]
    assert found == ["same" if order[k] < 12 else "different" for k in range(16, 24)]
    model = structsvm.load(exported(session, "model").data)
    assert model.predict([pair_text("Oak Street 3", "oak st 3")]).tolist() == ["same"]
    with pytest.raises(ValueError, match="export JSON lines"):
        exported(session, "conll")


def test_classes_in_a_taxonomy(opened, tmp_path):
    (tmp_path / "a.txt").write_text("".join(f"{text} {k}\n" for k, text in enumerate(TEXTS)))
    session = opened(tmp_path / "a.txt", "taxonomy")
    for k, text in enumerate(TEXTS):
        session.answer(k, {"label": "thing > car" if "car" in text else "animal > dog"}, "eve")
    model = structsvm.load(exported(session, "model").data)
    assert model.predict_levels(["a car"]).tolist() == [["thing", "car"]]


def test_a_model_needs_two_answers(opened, addresses):
    path, _ = addresses
    session = opened(path)
    session.answer(0, {"spans": [[0, 1, "a"]]}, "eve")
    with pytest.raises(ValueError, match="a model needs two answers"):
        exported(session, "model")


@pytest.mark.parametrize("kind", [SpanLearner, TextLearner], ids=["spans", "texts"])
def test_beyond_some_answers_each_is_one_step(kind, opened, tmp_path, monkeypatch):
    (tmp_path / "a.txt").write_text("".join(f"{TEXTS[k % 10]} {k}\n" for k in range(400)))
    is_sequence = kind is SpanLearner
    session = opened(tmp_path / "a.txt", "sequence" if is_sequence else "taxonomy")
    examples = []
    for k, item in enumerate(session.inputs.items[: ALWAYS + 3]):
        label = "car" if "car" in TEXTS[k % 10] else "dog"
        examples.append((item, Answer(((0, 1, label),)) if is_sequence else Answer(label=label)))
    learner = kind()
    learner.learn(examples[:-1])
    before = learner.estimator
    learner.teach(examples[-1], examples)
    assert learner.n_trained == len(examples) == learner._n_anew + 1
    # Also one with a new label; with a tenth more of them all are learnt anew.
    new = (session.inputs.items[-1], Answer(((0, 1, "new"),)) if is_sequence else Answer(label="new"))
    learner.teach(new, [*examples, new])
    assert learner.estimator is before and any("new" in str(label) for label in before.classes_)
    learner.teach(new, [*examples, *[new] * 40])
    assert learner.n_trained == learner._n_anew == len(examples) + 40


def test_100_000_lines(opened, tmp_path):
    (tmp_path / "a.txt").write_text("".join(f"line {k} of many\n" for k in range(100_000)))
    session = opened(tmp_path / "a.txt", labels=["a", "b"])
    rows = session.rows("eve", 99_900, 200)
    assert len(rows) == 100 and rows[-1]["text"] == "line 99999 of many"
    for k in range(10):
        session.answer(
            session.next("eve", "page"), {"spans": [[0, 1, "a"], [k % 4, k % 4 + 1, "b"]][k % 4 == 0 :]}, "eve"
        )
    assert session.learner.is_ready and session.next("eve", "page") is not None
    assert session.state("eve")["left"] == 99_990


def test_a_line_of_10_000_words(opened, tmp_path):
    (tmp_path / "a.txt").write_text("".join(f"{'word stop ' * n}end\n" for n in [1] * 12 + [5_000]))
    session = opened(tmp_path / "a.txt", order="file")
    for k in range(12):
        session.answer(k, {"spans": [[0, 1, "w"], [2, 3, "e"]]}, "eve")
    shown = session.shown(12, "eve")
    assert len(shown["words"]) == 10_001 and len(shown["suggestion"]["spans"]) > 4_000
    session.answer(12, {"spans": [[10_000, 10_001, "e"]]}, "eve")


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["eve", " eve "], "--annotator: a name is given twice: eve, eve"),
        ([" "], "--annotator: a name is a text that is not empty"),
        (["a\nb"], "--annotator: a name has at most 200 printable characters"),
    ],
)
def test_names_of_annotators(names, message):
    with pytest.raises(ValueError, match=message):
        names_of(names)
