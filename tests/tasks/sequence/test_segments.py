"""``SequenceLabeler(segments=True)``: labels, spans, phrases, what is refused, and what the oracle is asked."""

import numpy as np
import pytest
from segment_reference import joint_feature, segmentations

import structsvm
from structsvm.datasets import make_sequences
from structsvm.features.columns import Columns
from structsvm.features.encoder import FeatureEncoder
from structsvm.metrics import Scheme, chunk_f1
from structsvm.oracles.semi_markov import SemiMarkovOracle
from structsvm.tasks import SequenceLabeler, TokenFeatures
from structsvm.tasks.sequence.phrases import FEWEST_SEEN, Phrases, shape
from structsvm.tasks.sequence.segments import labels_of

ROWS, BIO = make_sequences(40, n_words=60, random_state=0)
X = [[{"word": word, "pos": tag} for word, tag in sentence] for sentence in ROWS]
TAGS = Scheme("bioes")
BIOES = list(map(TAGS.repaired, BIO))
SPANS = list(map(TAGS.chunks, BIOES))
ONCE = {"segments": True, "C": 0.1, "random_state": 0, "max_iter": 3}


def in_bio(labels):
    return Scheme("bio").labels(TAGS.chunks(labels), len(labels))


def made(**params):
    return SequenceLabeler(**ONCE | params)


# --- long segments --------------------------------------------------------------------------------


def long_segments(*spans):
    """Two sequences of few words, with the labels of these spans, (type, tokens)."""
    tags = [f"{'I' if k else 'B'}-{kind}" for kind, size in spans for k in range(size)]
    return [[f"w{i % 7}" for i in range(len(tags))]] * 2, [tags] * 2


@pytest.mark.parametrize(
    ("longest", "spans"),
    [
        (100, [("x", 300)]),
        (200, [("x", 300)]),
        (250, [("x", 300)]),
        (300, [("x", 300)]),
        (100, [("x", 50), ("y", 80)]),
        (230, [("x", 10), ("x", 230), ("x", 10)]),
    ],
)
def test_the_dual_of_long_segments_is_a_lower_bound(longest, spans):
    """A token is inside of up to 22,500 segments, most of them less likely than floats add to 1."""
    x, y = long_segments(*spans)
    model = SequenceLabeler(segments=longest, C=1.0, loss="log", random_state=0).fit(x, y)
    better = SequenceLabeler(segments=longest, C=1.0, loss="log", tol=0.01, random_state=0).fit(x, y)
    assert model.result_.relative_gap <= 0.05 and better.result_.relative_gap <= 0.01
    assert max(model.result_.dual, better.result_.dual) <= min(model.result_.primal, better.result_.primal)


def test_marginals_of_long_segments_sum_to_1():
    oracle = SemiMarkovOracle(4, 1, [[0, 1, 2, 3]], max_length=300)
    w = np.zeros(oracle.n_features, dtype=np.float32).reshape(-1, oracle.stride)
    w[0, 1] = 1.0
    marginals = oracle.chain([np.ones((300, 1))]).expect(w.ravel(), 0)[1]
    np.testing.assert_allclose(np.asarray(marginals)[:, :4].sum(axis=1), 1.0, rtol=0.0, atol=5e-7)


# --- forms ----------------------------------------------------------------------------------------


def test_the_forms_of_y_are_one_model():
    by_form = {"bio": BIO, "bioes": BIOES, "spans": SPANS}
    models = {form: made().fit(X, y) for form, y in by_form.items()}
    first = models["spans"]
    assert {tag[:1] for tag in first.classes_} == set("BIESO")
    for form, model in models.items():
        assert model.model_.weights.tobytes() == first.model_.weights.tobytes()
        found, spans = model.predict(X), model.predict_spans(X)
        assert spans == first.predict(X) == first.predict_spans(X)
        assert model.predict_kbest(X, 1)[3][0][0] == found[3]
        assert model.predict([[]]) == [[]]
        in_tags = found if form != "spans" else [labels_of(s, len(x), 0) for s, x in zip(found, X, strict=True)]
        assert list(map(TAGS.repaired, in_tags)) == models["bioes"].predict(X)
    assert models["bio"].predict(X) == list(map(in_bio, models["bioes"].predict(X)))
    assert first.score(X, SPANS) == models["bioes"].score(X, BIOES) > 0.5
    assert first.score(X, first.predict(X)) == 1.0


def test_files_and_streams(tmp_path):
    model = made().fit(X, SPANS)
    model.save(tmp_path / "m")
    loaded = structsvm.load(tmp_path / "m")
    assert loaded.predict(X) == model.predict(X) and loaded.segments is True
    assert loaded.predict_spans(X[:3]) == model.predict_spans(X[:3])
    stream = made(C=None, max_iter=None)
    for k in range(0, 40, 20):
        stream.partial_fit(X[k : k + 20], BIO[k : k + 20], classes=sorted({tag for y in BIO for tag in y}))
    assert chunk_f1(BIO, stream.predict(X)) > 0.5
    # Longer segments, and another form, are found and learnt as well.
    stream.partial_fit([[{"word": "w1", "pos": "T1"}] * 12], [[(0, 12, "NP")]])
    assert stream.model_.segments.form == "bio"


def test_columns_are_tokens_of_tuples():
    by_columns = made(templates="rich").fit(Columns.from_sequences(ROWS), BIO)
    by_tuples = made(templates="rich").fit(ROWS, BIO)
    assert by_columns.model_.weights.tobytes() == by_tuples.model_.weights.tobytes()
    assert (
        by_columns.predict(ROWS)
        == list(by_tuples.predict(iter(ROWS)))
        == by_tuples.predict(Columns.from_sequences(ROWS))
    )
    assert by_columns.model_.segments.phrases.sources == [(0, "lower"), (0, "shape"), (1, "same")]


def test_rows_of_numbers_have_lengths_alone():
    rng = np.random.default_rng(0)
    rows = [rng.normal(size=(len(labels), 2)) + [[label != "O", label[0] == "B"] for label in labels] for labels in BIO]
    model = made().fit(rows, BIO)
    assert model.model_.oracle.n_bigrams == 0
    assert model.predict(rows) == model.predict(np.vstack(rows), lengths=[len(x) for x in rows])


# --- phrases --------------------------------------------------------------------------------------


def phrases_by_definition(texts, length):
    """The runs of so many names that occur often enough, whose names do."""
    counts = {}
    for names in texts:
        for t in range(len(names) - length + 1):
            run = tuple(names[t : t + length])
            counts[run] = counts.get(run, 0) + 1
    return {run for run, count in counts.items() if count >= FEWEST_SEEN}


def test_phrases():
    tokens = FeatureEncoder().fit_transform(X)
    phrases, found = Phrases.fit(X, tokens, 4)
    makers = {("word", "lower"): str.lower, ("word", "shape"): shape, ("pos", "same"): str}
    assert phrases.sources == list(makers)
    starts = phrases.starts
    assert starts[:2].tolist() == [0, 0] and starts[-1] == found.n_features
    meanings = {}
    for k, sentence in enumerate(X):
        for t in range(len(sentence)):
            at = found.offsets[k] + t
            for number in found.indices[found.indptr[at] : found.indptr[at + 1]].tolist():
                m = int(np.searchsorted(starts, number, side="right"))
                names = [
                    tuple(make(token[name]) for token in sentence[t - m + 1 : t + 1])
                    for (name, _), make in makers.items()
                ]
                assert len(names[0]) == m
                meanings.setdefault(number, set(names))
                meanings[number] &= set(names)
    assert all(len(its) >= 1 for its in meanings.values())  # whatever is met, the number means it
    for m in (2, 3, 4):
        expected = sum(
            len(phrases_by_definition([[make(token[name]) for token in s] for s in X], m))
            for (name, _), make in makers.items()
        )
        assert starts[m] - starts[m - 1] == expected
    again = phrases.transform(X, tokens)
    assert again.indices.tolist() == found.indices.tolist() and again.indptr.tolist() == found.indptr.tolist()
    stored = Phrases.from_arrays(phrases.sources, phrases.to_arrays(), 4)
    assert stored.transform(X[5:], FeatureEncoder().fit_transform(X[5:])).indices.tolist() == (
        found.indices[found.indptr[found.offsets[5]] :].tolist()
    )


def test_shapes():
    assert [shape(word) for word in ("Madrid", "19-year", "U.S.", "")] == ["Xx", "d-x", "X.X.", ""]


def test_what_phrases_say_is_learnt():
    """The third word of "k a b" says what comes before, which no token's own feature does."""
    rng = np.random.default_rng(0)
    words = ["a b", "b a", "a a", "b b"]
    X, y = [], []
    for _ in range(60):
        sentence, spans = [], []
        for _ in range(4):
            text = words[rng.integers(4)]
            if text in ("a b", "b a"):
                spans.append((len(sentence), len(sentence) + 2, "SAME" if text == "a b" else "NOT"))
            sentence += [{"word": word} for word in text.split()] + [{"word": "."}]
        X.append(sentence)
        y.append(spans)
    assert made(C=1.0, max_iter=20).fit(X, y).predict(X) == y


# --- inference ------------------------------------------------------------------------------------


def test_probabilities_of_spans():
    cut = [[label if label[2:] in ("NP", "") else "O" for label in labels[:4]] for labels in BIO]
    model = made(loss="log", segments=2, C=10.0, max_iter=20).fit([x[:4] for x in X], cut)
    whole = [x[:4] for x in X if len(x) >= 4]
    short = [x for x, spans in zip(whole, model.predict_spans(whole), strict=True) if spans][:4]
    oracle, tokens = model.model_.oracle, model.model_.encode(short)
    plain = [model.model_.labels.index("O")]
    kinds = [model.classes_[tags[0]][2:] for tags in oracle.tags]
    n = 0
    for i, found in enumerate(model.predict_spans(short, probabilities=True)):
        x = tokens[i : i + 1]
        chains = segmentations(4, len(kinds), 1)
        scores = np.array([joint_feature(oracle, x, chain, plain) @ model.model_.weights for chain in chains])
        p = np.exp(scores - np.logaddexp.reduce(scores))
        for start, stop, kind, chance in found:
            has = [(start, stop, kinds.index(kind)) in chain for chain in chains]
            assert chance == pytest.approx(p[has].sum(), rel=1e-4)
            n += 1
        every = [(a, b, kind) for a in range(4) for b in range(a + 1, 5) for kind in range(len(kinds))]
        chances = {(a, b, kinds[k]): sum(p[[(a, b, k) in chain for chain in chains]]) for a, b, k in every}
        (likely,) = model.predict_spans(short[i : i + 1], probabilities=True, least=0.01)
        assert {span for span, own in chances.items() if own > 0.0101} <= {span[:3] for span in likely}
        assert all(chance == pytest.approx(chances[tuple(span)], rel=1e-3) for *span, chance in likely)
    assert n >= 4
    marginals = model.predict_marginals(short)
    assert all(of.sum(axis=1) == pytest.approx(1.0) for of in marginals)


def test_partly_known_labels():
    known = [[None if t % 3 else label for t, label in enumerate(labels)] for labels in BIO]
    for loss in ("log", "hamming"):
        model = made(loss=loss).fit(X, known)
        assert chunk_f1(BIO, model.predict(X)) > 0.3
    told = [[label if t % 3 else None for t, label in enumerate(labels)] for labels in BIO]
    found = model.predict(X, allowed=told)
    assert all(a == b for s, t in zip(told, found, strict=True) for a, b in zip(s, t, strict=True) if a is not None)
    inside = model.predict(X[:1], allowed=[[{"B-NP", "I-NP"}] * len(X[0])])[0]
    assert set(inside) <= {"B-NP", "I-NP"}


def test_longer_segments_than_weights_are_found():
    X = [[{"word": word} for word in ["(", *["x"] * n, ")", "y", "y"]] for n in range(2, 29)]
    y = [[(0, len(x) - 2, "X")] for x in X]
    model = made(segments=3, C=1.0, max_iter=10).fit(X, y)
    assert model.model_.oracle.max_length == 3
    assert model.predict(X) == y


def test_the_default_length():
    assert made().fit(X, BIO).model_.oracle.max_length >= 4
    assert made().fit([[{"a": 1}] * 9] * 3, [[(0, 9, "X")]] * 3).model_.oracle.max_length == 8


# --- bad input ------------------------------------------------------------------------------------

TWO = [[{"word": "a"}, {"word": "b"}], [{"word": "c"}]]


@pytest.mark.parametrize(
    ("y", "message"),
    [
        ([[(0, 2, "X"), (1, 2, "Y")], []], r"sequence 0: the span \(1, 2, 'Y'\) overlaps another one"),
        ([[], [(0, 2, "X")]], r"sequence 1: the span \(0, 2, 'X'\) is empty or outside its 1 tokens"),
        ([[(1, 1, "X")], []], "sequence 0: the span .* is empty"),
        ([[(-1, 1, "X")], []], "sequence 0: the span .* is empty or outside"),
        ([[(0, 1, 7)], []], "sequence 0: the label of the span .* must be a string"),
        ([[(0, 1, "X ")], []], r"sequence 0: the label of the span \(0, 1, 'X '\) begins or ends with a blank"),
        ([[(0, 1, "X"), "O"], []], "sequence 0: 'O' is no span"),
        ([[(0, 1, "X")]], "X has 2 sequences, y has 1"),
        ([["O", "I-X"], ["O"]], "sequence 0: its label 'I-X' at token 1, after 'O', breaks the scheme BIO"),
        ([["B-X", "E-Y"], ["O"]], "sequence 0: its label .* breaks the scheme BIOES"),
        ([["B-X", "Q-X"], ["O"]], "sequence 0, token 1: segments need labels of a scheme, .* or spans: .*'Q-X' has no"),
        ([["B-X"], ["O"]], "sequence 0 has 2 tokens but 1 labels"),
        (
            [[1, 2], [3]],
            "sequence 0, token 0: segments need labels of a scheme, .* or spans: .* labels that are strings",
        ),
        ("BI", "y must hold a list of labels, or of spans"),
        ([5, 6], "y must hold a list of labels, or of spans, for each sequence; for 0"),
    ],
    ids=lambda value: None if isinstance(value, str) else "y",
)
def test_bad_labels(y, message):
    with pytest.raises((ValueError, TypeError), match=message):
        made().fit(TWO, y)


def test_broken_labels_are_repaired():
    model = made(broken="repair").fit(TWO, [["O", "I-X"], ["I-X"]])
    assert model.predict(TWO) == [["O", "B-X"], ["B-X"]]


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"inference": "greedy"}, "segments=True needs inference to be 'exact'"),
        ({"order": 2}, "segments=True needs order to be None or 1, got 2"),
        ({"features": TokenFeatures(end=True)}, "needs end"),
        ({"features": TokenFeatures(bigrams="word")}, "needs bigrams"),
        ({"loss": "zero_one"}, "needs loss to be 'auto' or 'hamming' or 'log'"),
        ({"broken": "predict"}, "needs broken"),
        ({"constraints": (None, None, None)}, "segments=True has masks of its own"),
        ({"templates": "U00:%x[0,0]\nB\nB00:%x[0,0]\n"}, "templates that begin with 'B'"),
        ({"segments": 5, "order": 2}, "segments=5 needs order to be None or 1, got 2"),
        ({"segments": 1}, r"'segments' parameter of SequenceLabeler must be a bool or an int in the range \[2, 1000\]"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_refused(params, message):
    with pytest.raises(ValueError, match=message):
        made(**params).fit(ROWS if "templates" in params else X, BIO)


def test_what_is_settled():
    model = made(warm_start=True).fit(X, BIO)
    for segments in (False, 7):
        with pytest.raises(ValueError, match=f"trained with another 'segments'.* Got {segments}, it has "):
            made(warm_start=True).fit(X, BIO).set_params(segments=segments).fit(X, BIO)
    with pytest.raises(ValueError, match="another 'segments'"):
        SequenceLabeler(C=0.1, random_state=0, warm_start=True).fit(X, BIO).set_params(segments=True).fit(X, BIO)
    with pytest.raises(ValueError, match="'B-ZZ' is not one of the model's labels"):
        model.fit(X[:1], [[(0, 2, "ZZ")]])


def test_phrases_of_words_in_any_form():
    pa = pytest.importorskip("pyarrow")
    pd = pytest.importorskip("pandas")
    sentences, y = make_sequences(30, random_state=0)
    words = [[word for word, _ in sentence] for sentence in sentences]
    every = np.empty(len(words), dtype=object)
    every[:] = words
    forms = {
        "columns": Columns.from_sequences([[(word,) for word in sentence] for sentence in words]),
        "lists": words,
        "arrow": pa.array(words),
        "series": pd.Series(words),
        "objects": every,
    }
    models = {
        name: SequenceLabeler(C=0.1, segments=True, loss="hamming", random_state=0).fit(X, y)
        for name, X in forms.items()
    }
    models["iterators"] = SequenceLabeler(C=0.1, segments=True, loss="hamming", random_state=0).fit(
        (iter(sentence) for sentence in words), y
    )
    counts = {model.model_.oracle.n_bigrams for model in models.values()}
    assert len(counts) == 1 and counts.pop() > 0
    predicted = [model.predict(X) for model in models.values() for X in forms.values()]
    assert all(found == predicted[0] for found in predicted)


def test_the_first_token_may_lack_a_word():
    sentences, y = make_sequences(50, random_state=0)
    X = [[{"word": word} for word, _ in sentence] for sentence in sentences]
    whole = SequenceLabeler(C=0.1, segments=True, loss="hamming", random_state=0).fit(X, y)
    X[0][0] = {"odd": "one"}
    model = SequenceLabeler(C=0.1, segments=True, loss="hamming", random_state=0).fit(X, y)
    n, n_whole = (one.model_.oracle.n_bigrams for one in (model, whole))
    assert n == pytest.approx(n_whole, abs=2) and n > 0


def test_explain_names_lengths_and_phrases():
    model = made(segments=2).fit(X, BIO)
    phrases = model.model_.segments.phrases
    names = [phrases.name_of(j) for j in range(phrases.starts[-1])]
    assert {len(name.split()) for name in names} == {2}

    def parts_of(tags, x, sign, counts):
        for start, stop, kind in TAGS.chunks(tags):
            m = stop - start
            its = ["longer" if m > 2 else f"length {m}"]
            tokens = zip(*((token["word"], shape(token["word"]), token["pos"]) for token in x[start:stop]))
            its += [f"phrase {' '.join(of)}" for of in tokens if m == 2 and " ".join(of) in names]
            for feature in its:
                counts[feature, kind] = counts.get((feature, kind), 0) + sign

    seen = set()
    for x in X:
        why, counts = model.explain(x), {}
        parts_of(why.winner, x, 1, counts)
        parts_of(why.runner_up, x, -1, counts)
        found = {(part.feature, part.label) for part in why.contributions}
        found = {part for part in found if part[0].split()[0] in ("length", "longer", "phrase")}
        assert found <= {part for part, count in counts.items() if count}
        seen |= found
    assert {feature.split()[0] for feature, _ in seen} == {"length", "longer", "phrase"}


@pytest.mark.parametrize("segments", [False, True])
def test_tags_without_a_type(segments):
    untyped = [[label[:1] for label in labels] for labels in BIO]
    params = {} if segments else {"constraints": "bio"}
    model = made(segments=segments, **params).fit(X, untyped)
    typed = made(segments=segments, **params).fit(X, [[f"{t}-x" if t != "O" else t for t in s] for s in untyped])
    assert model.predict(X) == [[label[:1] for label in labels] for labels in typed.predict(X)]
    if segments:
        assert set(model.classes_) == set("BIESO")
        spans = model.predict_spans(X)
        assert spans == [[(a, b, "") for a, b, _ in s] for s in typed.predict_spans(X)] and any(spans)
        assert all(len(span) == 4 for s in model.predict_spans(X[:3], probabilities=True) for span in s)
        assert made().fit(X, spans).predict(X)[0] == made().fit(X, spans).predict_spans(X)[0]
