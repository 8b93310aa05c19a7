"""Templates chosen on held-out sequences: those for records where these label records better, the usual ones else."""

import numpy as np
import pytest
from command_line import run

import structsvm
from structsvm import SequenceShards
from structsvm.datasets import write_columns
from structsvm.features.columns import Columns
from structsvm.features.encoder import FeatureEncoder
from structsvm.solvers.run import DualRun
from structsvm.tasks import SequenceLabeler, TokenFeatures
from structsvm.tasks.common.selection.search import Held
from structsvm.tasks.sequence.selection import templates

rng = np.random.default_rng(0)


def name():
    return "".join(rng.choice(list("bdgklm")) + rng.choice(list("aeiouy")) for _ in range(3)).title()


def record():
    """Names, of which four are given and the others family names, and a number, behind which is the town."""
    family, town = ([(name(), label) for _ in range(rng.integers(1, 4))] for label in ("family", "town"))
    return [*((name(), "given") for _ in range(4)), *family, (str(rng.integers(1, 10**4)), "house"), *town]


def sentence():
    """Words that have a label each."""
    return [LEXICON[k] for k in rng.integers(0, len(LEXICON), rng.integers(3, 9))]


def both(rows):
    return [[word for word, _ in row] for row in rows], [[label for _, label in row] for row in rows]


LEXICON = [(name().lower(), label) for label in ("N", "V", "D") for _ in range(20)]
RECORDS, FIELDS = both([record() for _ in range(240)])
SENTENCES, TAGS = both([sentence() for _ in range(120)])
QUICK = {"C": 0.1, "loss": "hamming", "probability": False, "max_iter": 2, "random_state": 0}


def fitted(X=RECORDS, y=FIELDS, **params):
    return SequenceLabeler(**QUICK | params).fit(X, y)


@pytest.mark.parametrize("params", [{}, {"templates": "auto"}, {"inference": "greedy"}, {"order": 2}, {"loss": "log"}])
def test_records_and_running_text_are_told_apart(params):
    labeler = fitted(**params)
    assert labeler.templates_ == "records"
    assert {"U:start/shape=0/Xx", "U:numbers/shape=0-1/Xx"} < set(labeler.feature_names_)
    assert "B:shape=Xx" in labeler.bigram_names_
    assert labeler.inference == "greedy" or "U:" in str(labeler.explain(RECORDS[0]))
    choice = labeler.model_.template_choice
    assert choice.sequences["records"] > choice.sequences["rich"]
    text = fitted(SENTENCES, TAGS, **params)
    assert text.templates_ == "rich"
    same = fitted(SENTENCES, TAGS, **params | {"templates": "rich"})
    assert np.array_equal(text.emission_, same.emission_)
    assert np.array_equal(labeler.emission_, fitted(**params | {"templates": "records"}).emission_)


def test_a_choice_has_a_price(monkeypatch):
    """So many decodings, whatever the training does, and of a sample only; kinds of words are for records alone."""
    decoded = []
    monkeypatch.setattr(templates, "MOST", 100)
    advance = DualRun.advance
    monkeypatch.setattr(DualRun, "advance", lambda self, *more: decoded.append(self) or advance(self, *more))
    model, _ = templates_of()
    choice = model.template_choice
    assert choice.n_held_out == 100
    assert list(choice.sequences) == list(choice.tokens) == ["rich", "records", "record-kinds"]
    assert choice.n_argmax == 3 * templates.PASSES * 100
    runs = {id(one): one for one in decoded}.values()
    assert sum(one.state.n_argmax for one in runs) == choice.n_argmax
    assert [one.problem.n_samples for one in runs] == [50] * 6
    choice = templates_of(SENTENCES, TAGS)[0].template_choice
    assert list(choice.sequences) == ["rich", "records"]
    assert choice.n_argmax == 2 * templates.PASSES * 100


def templates_of(X=RECORDS, y=FIELDS, **params):
    from structsvm.tasks.sequence.preparation import prepare

    return prepare(SequenceLabeler(**QUICK | params), X, y)


def test_kinds_of_words_are_chosen_where_they_tell_more():
    """The label of a name goes by the next word, one of many that are each met a few times."""
    draw = np.random.default_rng(1)
    places = [[name() for _ in range(90)] for _ in range(2)]
    labels = [("mayor", "seat"), ("source", "river")]
    X, y = [list(one) for one in RECORDS], [list(one) for one in FIELDS]
    for i in np.repeat(np.arange(len(X)), 2):
        kind = draw.integers(2)
        X[i] += [name(), str(draw.choice(places[kind]))]
        y[i] += labels[kind]
    labeler = fitted(X, y)
    choice = labeler.model_.template_choice
    assert labeler.templates_ == choice.name == "record-kinds"
    assert choice.sequences["record-kinds"] > choice.sequences["records"] + 0.03
    assert any(name.startswith("U:kind[1]=") for name in labeler.feature_names_)
    assert fitted(X, y, features=TokenFeatures(hash_bits=10)).templates_ == "record-tokens"


@pytest.mark.parametrize(
    "X", [Columns.from_sequences(RECORDS), iter(RECORDS), map(iter, RECORDS), np.array([*RECORDS, None], object)[:-1]]
)
def test_words_in_any_form(X):
    assert fitted(X).templates_ == "records"


@pytest.mark.parametrize(
    ("sequences", "tokens", "is_better"),
    [
        (40, 0, True),  # so many more of 100 sequences are wholly right, and of 1000 tokens
        (0, 80, True),
        (40, -80, False),
        (-40, 80, False),
        (1, 0, False),  # noise
        (0, 0, False),
    ],
)
def test_a_gain_in_one_is_no_loss_in_the_other(sequences, tokens, is_better):
    def trial(n_sequences, n_tokens):
        whole = np.repeat([1.0, 0.0], [50 + n_sequences, 50 - n_sequences])
        right = np.repeat([1.0, 0.0], [500 + n_tokens, 500 - n_tokens]).reshape(100, 10).sum(axis=1)
        return templates.Trial(Held("accuracy", whole, np.ones(100)), Held("accuracy", right, np.full(100, 10.0)), 0)

    assert templates._is_better(trial(0, 0), trial(sequences, tokens)) is is_better


def test_what_decides():
    """Sequences whose labels, or half of them, are known and whose weight is not 0; nothing if few, or labels many."""
    few = templates.FEWEST - 1
    assert fitted(RECORDS[:few], FIELDS[:few]).templates_ == "rich"
    assert templates_of()[0].template_choice.n_held_out == 240
    weight = np.repeat([0.0, 1.0], [200, 40])
    assert SequenceLabeler(**QUICK).fit(RECORDS, FIELDS, sample_weight=weight).model_.template_choice is None
    hidden = [[None, *labels[1:]] if i < 200 else labels for i, labels in enumerate(FIELDS)]
    assert templates_of(y=hidden)[0].template_choice.n_held_out == 240
    less = [[labels[0], *[None] * (len(labels) - 1)] if i < 200 else labels for i, labels in enumerate(FIELDS)]
    assert templates_of(y=less)[0].template_choice is None
    hidden[:150] = FIELDS[:150]
    labeler = fitted(y=hidden)
    assert labeler.model_.template_choice.n_held_out == 190
    assert labeler.templates_ == "records"
    many = [[f"{label} {i % 60}" for label in labels] for i, labels in enumerate(FIELDS)]
    assert fitted(y=many, max_iter=1).model_.template_choice is None
    # Rare features are dropped from all sequences, not from the sample.
    with pytest.raises(ValueError, match="none occurs min_count=9999 times"):
        fitted(features=TokenFeatures(min_count=9999))


def test_records_are_told_by_half_of_their_labels():
    draw = np.random.default_rng(2)
    half = [[label if draw.random() < 0.6 else None for label in labels] for labels in FIELDS]
    labeler = fitted(y=half)
    choice = labeler.model_.template_choice
    assert labeler.templates_ == "records" and choice.sequences["records"] > choice.sequences["rich"]
    assert all(0.5 < share <= 1.0 for share in choice.tokens.values())
    tags = [[label if draw.random() < 0.6 else None for label in labels] for labels in TAGS]
    assert fitted(SENTENCES, tags).templates_ == "rich"


def test_other_columns_are_asked_for():
    rows = [[(word, "x") for word in record] for record in RECORDS]
    X = Columns.from_sequences(rows)
    assert fitted(X).templates_ == "rich"
    assert fitted(X, templates="auto").templates_ == "records"
    assert fitted([[{"word": word} for word in record] for record in RECORDS]).templates_ is None


def test_without_pairs():
    """Phrases take the place of pairs of labels, and hashed pairs would have too many weights."""
    tags = [
        [("B-" if k == 0 or labels[k - 1] != one else "I-") + one for k, one in enumerate(labels)] for labels in FIELDS
    ]
    assert fitted(y=tags, segments=True).templates_ == "record-tokens"
    hashed = fitted(features=TokenFeatures(hash_bits=14))
    assert (hashed.templates_, hashed.bigram_names_) == ("record-tokens", [])
    with pytest.raises(ValueError, match="'record-tokens' are 'records' without them"):
        fitted(y=tags, segments=True, templates="records")


def test_files_resume_and_choose_again(tmp_path):
    labeler = fitted(warm_start=True)
    labeler.save(tmp_path / "model")
    again = structsvm.load(tmp_path / "model")
    assert (again.templates, again.templates_) == (None, "records")
    assert again.predict(RECORDS) == labeler.predict(RECORDS)
    labeler.fit(RECORDS, FIELDS)
    assert np.array_equal(again.set_params(warm_start=True).fit(RECORDS, FIELDS).emission_, labeler.emission_)
    with pytest.raises(ValueError, match="templates"):
        again.set_params(templates="crf++").fit(RECORDS, FIELDS)
    again.set_params(templates=None, warm_start=False).fit(SENTENCES, TAGS)
    assert again.templates_ == "rich"
    own = fitted(templates="U:%x[0,0]\nB\n")
    with pytest.raises(ValueError, match="templates"):
        own.set_params(templates=None, warm_start=True).fit(RECORDS, FIELDS)


def test_streams_choose_on_their_first_batch():
    labeler = SequenceLabeler(**QUICK).partial_fit(
        RECORDS[:120], FIELDS[:120], classes=["family", "given", "house", "town"]
    )
    assert labeler.partial_fit(RECORDS[120:], FIELDS[120:]).templates_ == "records"
    small = SequenceLabeler(**QUICK).partial_fit(RECORDS[:10], FIELDS[:10])
    assert small.partial_fit(RECORDS, FIELDS).templates_ == "rich"


def test_command_line(tmp_path):
    write_columns(tmp_path / "train.txt", [[(word,) for word in record] for record in RECORDS], FIELDS)

    def said(*args):
        return "".join(run(tmp_path, *args))

    train = "train", "sequence", "train.txt", "--max-iter", 2, "--model"
    assert "templates = 'records' (held-out sequences wholly right" in said(*train, "m", "-C", 0.1, "--loss", "hamming")
    assert "U:" in said("inspect", "m")
    assert "accuracy" in said("evaluate", "m", "train.txt")
    train = "train", "sequence", "train.txt", "--model"
    assert "templates = 'record-tokens'" in said(*train, "s", "--stream", "--batch", 240)
    said(*train, "t", "-C", 0.1, "--max-iter", 1, "--templates", "record-tokens", "--shards", "f")
    with pytest.raises(ValueError, match="a choice by labels"):
        SequenceShards.make(tmp_path / "train.txt", tmp_path / "g", templates="auto")


def test_kinds_of_words_are_never_left_out(monkeypatch):
    """Where templates ask for them, data in another form than theirs are an error."""
    params = {"templates": "record-kinds", "C": 1.0, "warm_start": True, "max_iter": 1, "random_state": 0}
    labeler = SequenceLabeler(**params).fit(RECORDS, FIELDS)
    monkeypatch.setattr(FeatureEncoder, "columns_of", lambda encoder, X, lengths, *, fit: X)
    for one in (SequenceLabeler(**params), labeler):
        with pytest.raises(AttributeError):
            one.fit(RECORDS, FIELDS)
    monkeypatch.undo()
    with pytest.raises(ValueError, match="no examples"):
        labeler.partial_fit([], [])
