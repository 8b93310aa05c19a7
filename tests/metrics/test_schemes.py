"""Schemes of labels: names, forms, what they allow, and the chunks that are read and written in them."""

import re
from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from structsvm import AdviceWarning, SequenceShards, metrics
from structsvm.datasets import write_columns
from structsvm.metrics import Scheme, scheme_of
from structsvm.metrics._chunks import chunk_counts, chunk_counts_of_ids
from structsvm.metrics._schemes import FORMS, OUTSIDE, SCHEMES, doubt_of_tags, scheme_for, scheme_name
from structsvm.tasks import SequenceLabeler

EVERY = [Scheme(name, separator, is_suffix) for name, (is_suffix, separator) in product(SCHEMES, FORMS)]

lengths = st.tuples(st.integers(0, 2), st.integers(1, 4), st.sampled_from("XY"))


def placed(pieces):
    """Chunks after gaps, and the length of the sequence."""
    chunks, t = [], 0
    for gap, n, kind in pieces:
        chunks.append((t + gap, t + gap + n, kind))
        t += gap + n
    return chunks, t + 1


def is_well_formed(scheme, labels):
    parts = [OUTSIDE, *map(scheme.part, labels), OUTSIDE]
    return all(scheme.allows(a, b) for a, b in pairwise(parts))


@pytest.mark.parametrize("scheme", EVERY, ids=str)
@given(pieces=st.lists(lengths, max_size=6))
def test_chunks_that_are_written_are_read(scheme, pieces):
    chunks, n = placed(pieces)
    if scheme.name == "io":  # it cannot part neighbours of one type
        chunks = [chunk for k, chunk in enumerate(chunks) if k == 0 or chunks[k - 1][1] < chunk[0]]
    labels = scheme.labels(chunks, n)
    assert scheme.chunks(labels) == chunks
    assert scheme.repaired(labels) == labels
    assert is_well_formed(scheme, labels)
    assert scheme.chunks(labels) == scheme_for(labels, scheme.name).chunks(labels)


@pytest.mark.parametrize("scheme", EVERY, ids=str)
def test_what_is_allowed_is_what_is_written(scheme):
    """All sequences of three labels: those allowed are those that writing their chunks gives back."""
    labels = ["O", *(scheme.label(role, kind) for kind in "XY" for role in scheme.rules.roles)]
    for some in product(labels, repeat=3):
        assert is_well_formed(scheme, some) == (scheme.repaired(some) == list(some)), some


@pytest.mark.parametrize(
    ("names", "wanted"),
    [
        ("bio BIO iob IOB2 bio2", "bio"),
        ("bioes IOBES SBIEO bieso bies", "bioes"),
        ("bilou BILUO bioul", "bilou"),
        ("bmes BMEOS bmeso", "bmes"),
        ("bmewo BMEWO+ bmew", "bmewo"),
        ("iob1 IOB1 bio1", "iob1"),
        ("ioe IOE2", "ioe2"),
        ("IOE1", "ioe1"),
        ("io", "io"),
        ("x bioo bio3 bioes2 b", None),
    ],
)
def test_names(names, wanted):
    assert {scheme_name(name) for name in names.split()} == {wanted}


@pytest.mark.parametrize(
    ("labels", "wanted"),
    [
        ("B-X I-X O", "bio"),
        ("I-X O", "bio"),
        ("I-X E-X O", "ioe2"),
        ("S-X O", "bioes"),
        ("U-X L-X O", "bilou"),
        ("M-X B-X", "bmes"),
        ("W-X O", "bmewo"),
        ("B_X I_X", "bio B_X"),
        ("X-B X-S", "bioes X-B"),
        ("X_U O", "bilou X_B"),
        ("S-B O", "bioes"),  # a prefix comes first
        ("B-X-Y I-X-Y", "bio"),
        ("B-LOC_E", "bio"),
        ("B I O", "bio"),
        ("B M E S", "bmes"),
        ("B-1 I-1", "bio"),
        ("B-1 I-95 B-X", "bio"),
        ("O", "bio"),
        ("B O", None),
        ("S O", None),
        ("B-1 I-95 O", None),
        ("B-X NN", None),
        ("B-X X-B", None),
        ("B-X B_X", None),
        ("B-X M-X I-X", None),
        ("E-X L-X", None),
        ("NN VB", None),
        ("b-x", None),
    ],
)
def test_schemes_are_read_off_labels(labels, wanted):
    found = scheme_of(labels.split())
    assert (found and str(found)) == wanted


@pytest.mark.parametrize(
    ("labels", "wanted"),
    [
        ("b-PER i-PER O", "labels such as 'b-PER' look like tags of chunks: write 'B-PER'"),
        ("b-PER i-PER o", "write 'B-PER'"),
        ("B:PER I:PER B:LOC O", "labels such as 'B:LOC' look like tags of chunks: write 'B-LOC'"),
        ("PER/B PER/I O", "write 'B-PER'"),
        ("B-PER I_PER O", "labels such as 'I_PER' look like tags of chunks: write 'I-PER'"),
        ("B-PER I-PER o", "labels such as 'o' stand among tags of chunks: write O for tokens outside of chunks"),
        ("B-PER I-PER OTHER", "labels such as 'OTHER' stand"),
        ("PER_B PER_E PER_S 0", "labels such as '0' stand"),
        ("PER_B PER_M PER_E 0", "labels such as '0' stand"),
        ("PER_B PER_L PER_U 0", "labels such as '0' stand"),
        ("B-PER I-PER O X", "labels such as 'X' stand among"),
        ("B-PER I-PER O _", "say unknown='_' (--unknown)"),
        ("B-PER I-PER E-PER S-PER L-PER U-PER O", "labels have the tags B, E, I, L, S, U, which are those of no one"),
        ("B-PER I-PER O", None),
        ("PER-B PER-E PER-S O", None),
        ("I-PER O", None),
        ("B O", None),
        ("B-PER I-LOC x", None),  # no chunk goes on
        ("B-PER I-PER O MISC", "labels such as 'MISC' stand"),
        ("B-PER I-PER [SEP] <pad> <START> MISC", "labels such as 'MISC' stand"),
        ("B-PER I-PER O [SEP] {cls} <END>", "labels such as '<END>' stand"),
        ("B-PER I-PER O X [PAD]", "labels such as 'X' stand"),
        ("B-PER I-PER NN VB", None),  # two that are no tags
        ("street city O", None),
        ("B:maj E:maj", None),
        ("b-flat e-flat i-sharp", None),
        ("shirt-L shirt-M shirt-B", None),
        ("per-b per-i O", None),  # letters behind are names' own
        ("S-bahn U-bahn O", None),
        ("NP-SBJ VP NN-B NN-S", None),
    ],
)
def test_labels_that_look_like_tags_are_doubted(labels, wanted):
    doubt = doubt_of_tags(labels.split())
    assert doubt is None if wanted is None else wanted in doubt
    assert doubt_of_tags([*labels.split(), 3, None]) == doubt


def test_names_with_blanks_are_no_tags():
    assert doubt_of_tags(["hepatitis B", "hepatitis E"]) is None
    assert doubt_of_tags(["hepatitis B", "hepatitis E", "none"]) is None


@pytest.mark.parametrize("segments", [False, True])
def test_labels_that_look_like_tags_are_named_in_training(segments):
    X, y = [["Ann", "Lee", "met", "Bo"]] * 3, [["b-PER", "i-PER", "O", "b-PER"]] * 3
    labeler = SequenceLabeler(C=1.0, segments=segments, random_state=0)
    runs = "segments are runs of one label$" if segments else "spans are runs of one label, and have no F1 of chunks$"
    with pytest.warns(AdviceWarning, match=f"labels such as 'b-PER' look like tags .* {runs}"):
        labeler.fit(X, y)
    labeler.fit(X, [[label.upper() for label in labels] for labels in y])  # warnings are errors
    assert labeler.predict_spans(X[:1]) == [[(0, 2, "PER"), (3, 4, "PER")]]


def test_labels_that_look_like_tags_are_named_once_constraints_fit(tmp_path):
    """Constraints that do not are the error alone; shards are warned of as files are."""
    X, y = [["Ann", "Lee", "met"]] * 3, [["B-PER", "I-PER", "o"]] * 3
    with pytest.raises(ValueError, match="'o' is none of the scheme BIO"):  # warnings are errors
        SequenceLabeler(C=1.0, constraints="bio").fit(X, y)
    write_columns(tmp_path / "train.txt", X, y)
    shards = SequenceShards.make(tmp_path / "train.txt", tmp_path / "shards")
    with pytest.warns(AdviceWarning, match="labels such as 'o' stand among tags of chunks"):
        SequenceLabeler(C=1.0, random_state=0).fit(shards)


def test_labels_that_are_no_strings_have_no_scheme():
    assert scheme_of([0, 1, None]) is None


def test_marks_of_unknown_labels():
    """Chunk scores leave them out, and their scorers by the estimator's mark."""
    true, pred = [["B-X", "?", "O"]], [["B-X", "O", "O"]]
    for score in (metrics.chunk_f1, metrics.chunk_precision, metrics.chunk_recall):
        with pytest.raises(ValueError, match=r"'\?' has no tag of one"):
            score(true, pred)
        assert score(true, pred, unknown="?") == 1.0
    assert metrics.chunk_scores(true, pred, unknown="?").n_tokens == 2
    X, y = [[{"w": w} for w in "abc"]] * 10, [["B-X", "?", "O"], ["B-X", "I-X", "O"]] * 5
    model = SequenceLabeler(C=1.0, unknown="?", random_state=0).fit(X, y)
    for name in ("chunk_f1", "chunk_precision", "chunk_recall"):
        assert metrics.SCORERS[name](model, X, y) > 0.9


@pytest.mark.parametrize("odd", ["", " ", "B-A ", " O", "B-A\t"])
@pytest.mark.parametrize("name", [None, "bio", "bioes"])
def test_empty_labels_and_blanks_are_of_no_scheme(odd, name):
    assert all(Scheme(scheme).part(odd) is None for scheme in ("bio", "bioes", "bilou", "iob1"))
    with pytest.raises(ValueError, match=re.escape(repr(odd))):
        metrics.chunk_f1([["B-A", odd]], [["B-A", "O"]], scheme=name)


@given(st.sampled_from(["bio", "bioes", "bilou"]), st.integers(0, 10**6))
def test_counts_of_label_ids_are_those_of_labels(name, seed):
    rng = np.random.default_rng(seed)
    scheme = Scheme(name)
    labels = ["O", *(f"{tag}-{kind}" for tag in scheme.rules.tags for kind in ("X", "Y"))]
    labels = [labels[k] for k in rng.permutation(len(labels))] + ["none of the scheme"]
    lengths = rng.integers(0, 8, 12)
    true, predicted = rng.integers(len(labels) - 1, size=(2, lengths.sum()))
    ends = np.cumsum(lengths)[:-1]
    named = [[[labels[k] for k in ids] for ids in np.split(side, ends)] for side in (true, predicted)]
    found = chunk_counts_of_ids(true, predicted, lengths, labels, scheme)
    assert (found == chunk_counts(*named, scheme)).all() and found.shape == (3, 12)
