"""Biopython's sequences, alignments, matrices and files in the place of strings, rows and ours."""

import gzip

import numpy as np
import pytest

from structsvm.datasets import make_alignment
from structsvm.metrics import alignment_scores
from structsvm.structures.gapped import as_rows, as_string, pairs_of_alignment, to_biopython
from structsvm.structures.substitution_matrix import SubstitutionMatrix
from structsvm.tasks import SequenceAligner
from structsvm.tasks.alignment.files import read_alignments
from structsvm.tasks.alignment.model import log_odds_matrix

Align = pytest.importorskip("Bio.Align")
from Bio.Align import substitution_matrices  # noqa: E402
from Bio.Seq import MutableSeq, Seq  # noqa: E402
from Bio.SeqRecord import SeqRecord  # noqa: E402

DATA = make_alignment(6, divergence=0.5, random_state=0)
SETTINGS = {"C": 1.0, "mode": "local", "max_iter": 2, "prior": None, "random_state": 0}


def records(strings):
    return [SeqRecord(Seq(string), id=str(k)) for k, string in enumerate(strings)]


def multiple(rows):
    return Align.MultipleSeqAlignment(records(rows))


ROWS = [multiple(rows) for rows in DATA.y]
KINDS = {
    "Seq": ([tuple(map(Seq, pair)) for pair in DATA.X], [tuple(map(Seq, rows)) for rows in DATA.y]),
    "MutableSeq": ([tuple(map(MutableSeq, pair)) for pair in DATA.X], DATA.y),
    "SeqRecord": ([tuple(records(pair)) for pair in DATA.X], [tuple(records(rows)) for rows in DATA.y]),
    "MultipleSeqAlignment": (ROWS, ROWS),
    "Alignment": (DATA.X, [to_biopython(*pair, rows) for pair, rows in zip(DATA.X, DATA.y)]),
}


@pytest.fixture(scope="module")
def aligner():
    return SequenceAligner(**SETTINGS).fit(DATA.X, DATA.y, decoys=DATA.decoys)


@pytest.mark.parametrize("kind", KINDS)
def test_a_model_learns_the_same_and_says_the_same(kind, aligner):
    X, y = KINDS[kind]
    decoys = [list(map(Seq, strings)) for strings in DATA.decoys]
    other = SequenceAligner(**SETTINGS).fit(X, y, decoys=decoys)
    assert (other.coef_ == aligner.coef_).all()
    assert other.predict(X) == aligner.predict(DATA.X)
    assert other.predict_kbest(X[:1], 2) == aligner.predict_kbest(DATA.X[:1], 2)
    assert other.score(X, y) == aligner.score(DATA.X, DATA.y)
    assert alignment_scores(y, DATA.y).q == 1.0
    assert (log_odds_matrix(y).values == log_odds_matrix(DATA.y).values).all()
    assert (other.rank(as_string(X[0][0]) if isinstance(X[0], tuple) else DATA.X[0][0], decoys[0])).tolist() == (
        aligner.rank(DATA.X[0][0], DATA.decoys[0]).tolist()
    )


@pytest.mark.parametrize("mode", ["local", "global"])
def test_predictions_as_biopython_has_them(mode):
    matrix = substitution_matrices.load("BLOSUM62")
    theirs = Align.PairwiseAligner(mode=mode, substitution_matrix=matrix, open_gap_score=-11, extend_gap_score=-1)
    ours = SequenceAligner.from_costs(matrix, -11, -1, mode=mode)
    for pair in DATA.X:
        (found,) = ours.predict([pair], biopython=True)
        assert as_rows(found) == ours.predict([pair])[0]
        # Biopython reads the alignment as one of its own, of the score of its best.
        expected = theirs.align(*pair)[0]
        assert found.sequences == list(pair)
        assert ours.decision_function([pair[0]], [[pair[1]]])[0][0] == pytest.approx(expected.score)
        gaps = [[length for row, other in ((0, 1), (1, 0)) for length in runs(found[row], found[other])]]
        letters = [matrix[a, b] for a, b in zip(found[0], found[1]) if "-" not in (a, b)]
        assert sum(letters) - sum(10 + length for length in gaps[0]) == pytest.approx(expected.score)
    if mode == "local":  # a letter without a lower-case form
        (found,) = ours.predict([("AAAMKVLAWWQRDD*", "MKVLAWWGGGG")], biopython=True)
        assert found.coordinates.tolist() == [[3, 10], [0, 7]]
    (found,) = ours.predict([tuple(records(DATA.X[0]))], biopython=True)
    assert [record.id for record in found.sequences] == ["0", "1"]


def runs(row, other):
    """Lengths of the gaps of a row."""
    return [len(run) for run in "".join("-" if a == "-" else " " for a in row).split()]


def test_annotated_sequences_are_none_of_biopython():
    aligner = SequenceAligner.from_costs("BLOSUM62", -11, -1, alphabet="ACGT", classes=("HEC",))
    with pytest.raises(ValueError, match="biopython=True needs sequences of letters alone"):
        aligner.predict([(("ACGT", "HHEC"), ("AGT", "HEC"))], biopython=True)


def test_matrices_both_ways(tmp_path):
    theirs = substitution_matrices.load("PAM250")
    ours = SubstitutionMatrix.published("PAM250")
    assert (np.asarray(ours.to_biopython()) == np.asarray(theirs)).all()
    assert ours.to_biopython()["A", "W"] == theirs["A", "W"]
    priors = ((matrix, -8.0, -1.0) for matrix in (theirs, "PAM250"))
    one, two = (SequenceAligner(**SETTINGS | {"prior": prior}).fit(DATA.X, DATA.y) for prior in priors)
    assert (one.coef_ == two.coef_).all()
    one.save(tmp_path / "a.model")
    matrix, *gaps = SequenceAligner.load(tmp_path / "a.model").prior
    assert (matrix.values == ours.values).all() and gaps == [-8.0, -1.0]
    with pytest.raises(ValueError, match="must say which letters"):
        SequenceAligner(**SETTINGS | {"prior": (np.eye(20), -8.0, -1.0)}).fit(DATA.X, DATA.y)


def test_rows_of_alignments():
    local = Align.Alignment([Seq("MMKVL"), "GKVAL"], np.array([[2, 4, 4, 5], [1, 3, 4, 5]]))
    assert as_rows(local) == ("mm-KV-L", "--gKVAL")
    assert (to_biopython("MMKVL", "GKVAL", as_rows(local), local=True).coordinates == local.coordinates).all()
    assert to_biopython("AC*", "AC", ("AC*", "AC-"), local=True).coordinates.tolist() == [[0, 2], [0, 2]]
    assert to_biopython("AC", "D", ("ac-", "--d"), local=True).coordinates.shape == (2, 1)
    assert as_rows(("A", Seq("C"))) == ("A", "C")
    assert as_rows(None) is None
    backwards = Align.Alignment(["ACGT", "ACGT"], np.array([[0, 4], [4, 0]]))
    with pytest.raises(ValueError, match="reverse strand"):
        as_rows(backwards)
    with pytest.raises(ValueError, match="X, example 0: an alignment of 3 sequences is no pair"):
        SequenceAligner(**SETTINGS).fit([multiple(["AC", "AC", "AC"])], [("AC", "AC")])


def test_pairs_of_many():
    many = multiple(["AC-G", "A--G", "ACTG"])
    assert list(pairs_of_alignment(many)) == [("ACG", "A-G"), ("AC-G", "ACTG"), ("A--G", "ACTG")]
    assert list(pairs_of_alignment(many, "first")) == [("ACG", "A-G"), ("AC-G", "ACTG")]
    assert list(pairs_of_alignment(many, "adjacent")) == [("ACG", "A-G"), ("A--G", "ACTG")]
    with pytest.raises(ValueError, match="pairs must be one of 'all', 'first', 'adjacent', got 'some'"):
        list(pairs_of_alignment(many, "some"))


STOCKHOLM = "# STOCKHOLM 1.0\n#=GF ID X\na  AC-Gt\nb  A--GT\nc  ACTGT\n//\n# STOCKHOLM 1.0\nd  AC\ne  AC\n//\n"
CLUSTAL = "CLUSTAL W (1.83) multiple sequence alignment\n\na   AC-G\nb   A--G\n    *  *\n"


def test_files_of_alignments_of_many(tmp_path):
    path = tmp_path / "family.sto.gz"
    path.write_bytes(gzip.compress(STOCKHOLM.encode()))
    file = read_alignments(path)
    assert file.names == ["a/b", "a/c", "b/c", "d/e"]
    assert file.rows == [("ACGt", "A-GT"), ("AC-Gt", "ACTGT"), ("A--GT", "ACTGT"), ("AC", "AC")]
    assert read_alignments(path, pairs="first").names == ["a/b", "a/c", "d/e"]
    (tmp_path / "x.aln").write_text(CLUSTAL)
    assert read_alignments(tmp_path / "x.aln").rows == [("ACG", "A-G")]
    (tmp_path / "x.fa").write_text(">a 1\nAC.gT\n>b\nA-..T\n")
    assert read_alignments(tmp_path / "x.fa", "a2m")[:2] == (["a/b"], [("ACgT", "A-.T")])
    assert read_alignments(tmp_path / "x.fa", "fasta").rows == [("AC.gT", "A-..T")]


@pytest.mark.parametrize(
    ("text", "form", "message"),
    [
        ("nothing", "stockholm", "not stockholm"),
        ("nothing", "clustal", "not clustal"),
        ("nothing", "nonsense", "not nonsense"),
        ("CLUSTAL W\n", "clustal", "the file ends too early"),
        ("", "stockholm", "has no alignments"),
        ("# STOCKHOLM 1.0\na AC\n#=GR a SS CCC\nb AC\n//\n", "stockholm", "not stockholm"),
        (">a\nA\n" * 800, "a2m", "alignment 1: 800 sequences have 319600 pairs, more than 262144; pairs='first'"),
        (">a\nAC\n>b\nACG\n", "a2m", "alignment 1: the row of 'b' has 3 columns that are no insertions, that of 'a' 2"),
        (">a\nAC\n", "a2m", "alignment 1: has 1 sequences"),
        (">a\nAC\n>b\n--\n", "a2m", "alignment 1: the row of 'b' has no letters"),
    ],
)
def test_files_that_are_not_what_they_should_be(text, form, message, tmp_path):
    path = tmp_path / "file"
    path.write_text(text)
    with pytest.raises(ValueError, match=message):
        read_alignments(path, form)
