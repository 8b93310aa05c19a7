"""Strings, alignments, matrices and files that could be read as they stand, and are meant otherwise."""

import io
import re
import zipfile

import numpy as np
import pytest

from structsvm import AdviceWarning
from structsvm.structures.substitution_matrix import SubstitutionMatrix
from structsvm.tasks import SequenceAligner
from structsvm.tasks.alignment.files import read_alignments, read_words

DRAWN = np.random.default_rng(0)
PLAIN = ">a x\nAC-DE\n>a z\nACWDE\n>b x\nCDE\n>b z\nC-E\n"
ROWS = [("AC-DE", "ACWDE"), ("CDE", "C-E")]
NEXUS = """#NEXUS
begin data;
dimensions ntax=2 nchar=4;
format datatype=protein gap=-;
matrix
q ACDE
r A-DE
;
end;
"""
A3M = ">q\nACDE\n>r\nACaaDE\n>s\nA-DE\n"


def read(text, **options):
    pytest.importorskip("Bio")
    return read_alignments(io.StringIO(text), **options)


def named(folder, name, text):
    pytest.importorskip("Bio")
    (folder / name).write_text(text)
    return read_alignments(folder / name)


@pytest.mark.parametrize(
    "change",
    [
        lambda text: "\ufeff" + text,
        lambda text: text.replace("\n", "\r\n"),
        lambda text: text.replace("\n", "\r"),
        lambda text: "; made by hand\n# twice\n\n" + text,
        lambda text: text.replace(">b x", "; note\n>b x"),
        lambda text: text.replace("ACWDE", "# note\nACW\n; note\nDE"),
        lambda text: text.replace("ACWDE", "AC\tW DE "),
        lambda text: text.replace(">b x", "  >b x"),
        lambda text: text.replace("\n>b", "\0\n>b") + "\0",
    ],
    ids=["mark", "CRLF", "CR", "comments", "comment between", "comment within", "blanks", "indented", "zero bytes"],
)
def test_what_is_no_letter_is_left_out(change):
    assert read(change(PLAIN)).rows == ROWS


def test_text_before_the_records_is_an_error():
    with pytest.raises(ValueError, match=r"line 2: before the first record \(>\) stands 'a x'"):
        read("\n" + PLAIN[1:])


def test_the_end_of_a_name_tells_rows_though_a_sequence_has_two(tmp_path):
    pairs = [("AC..DE", "ACaaDE"), ("ACDE", "A-DE"), ("ACaaDE", "A-..DE")]
    assert named(tmp_path, "q.a3m", A3M).rows == pairs
    assert named(tmp_path, "q.a3m", A3M.replace(">s", ">r")).rows == pairs
    assert named(tmp_path, "q.a3m", "#4\t1\n" + A3M).rows == pairs
    assert named(tmp_path, "q.a3m", ">ss_pred\nCCHH\n>ss_conf\n9999\n" + A3M).rows == pairs
    with zipfile.ZipFile(tmp_path / "q.a3m.zip", "w") as archive:
        archive.writestr("q.a3m", A3M)
    assert read_alignments(tmp_path / "q.a3m.zip").rows == pairs
    assert named(tmp_path, "pairs.a2m", PLAIN).rows == ROWS  # examples by their names


@pytest.mark.parametrize(
    "text",
    [
        ">P1;q\nname\nACDE*\n>P1;r\nname\nA-DE*\n",
        NEXUS,
        "2 4\nq ACDE\nr A-DE\n",
        "\n# STOCKHOLM 1.0\n\nq ACDE\nr A-DE\n//\n",
    ],
    ids=["PIR", "NEXUS", "PHYLIP", "Stockholm"],
)
def test_formats_are_told_by_how_they_begin(text):
    assert read(text).rows == [("ACDE", "A-DE")]


def test_a_file_that_was_cut_off_is_named():
    with pytest.raises(ValueError, match="Stockholm ends with a line //"):
        read("# STOCKHOLM 1.0\n\nq ACDE\nr A-DE\n")


def test_a_line_of_words_ends_at_its_end_alone():
    assert read_words(io.StringIO("a\u2028b c\ta c\r\nd\x0b e\te\r\n")).rows == [
        (["a", "b", "c"], ["a", "c"]),
        (["d", "e"], ["e"]),
    ]


def test_errors_of_training_name_the_record():
    file = read(PLAIN.replace("-", "~"))
    with pytest.raises(ValueError, match=r"<lines>, record 'a': x of example 0: the letter '~' .*: gaps are written"):
        SequenceAligner().fit(file.pairs, file.rows)
    file = read(PLAIN.replace("C-E", "CE"))
    with pytest.raises(ValueError, match=r"^<lines>, record 'b': y, example 1: the rows have 3 and 2 columns"):
        SequenceAligner().fit(file.pairs, file.rows)


# ---- strings and matrices ------------------------------------------------------------------------


def aligned(letters, n=12, size=20, gap="-"):
    """Rows of n pairs: the second string is the first one with other letters here and there, and a gap in each."""
    found = []
    for _ in range(n):
        x = DRAWN.choice(list(letters), size)
        z = np.where(DRAWN.random(size) < 0.3, DRAWN.choice(list(letters), size), x)
        x[4], z[9] = gap or x[4], gap or z[9]
        found.append(("".join(x), "".join(z)))
    return found


def strings(rows):
    return [tuple(row.replace("-", "") for row in pair) for pair in rows]


def fitted(rows, **params):
    aligner = SequenceAligner(**{"C": 0.01, "max_iter": 2, "mode": "global"} | params)
    return aligner.fit(strings(rows), rows)


@pytest.mark.filterwarnings("ignore:.*gap of .*after 2 passes")
@pytest.mark.parametrize(
    ("params", "is_said"), [({}, True), ({"alphabet": "dna"}, False), ({"alphabet": "ACGT"}, False)]
)
def test_dna_that_is_read_as_protein_is_said(params, is_said):
    rows = aligned("ACGT")
    if is_said:
        with pytest.warns(AdviceWarning, match=r"the letters A, C, G, T alone, .*alphabet='dna'"):
            fitted(rows, **params)
    else:
        fitted(rows, **params)  # warnings are errors
    fitted(aligned("ACGTW"))


@pytest.mark.parametrize("prior", [None, "auto"])
def test_alignments_without_a_gap_are_said(prior):
    rows = aligned("ACDEFGHIKL", gap="")
    with pytest.warns(AdviceWarning, match="none of the 12 alignments has a gap"):
        fitted(rows, prior=prior)
    fitted(rows[:9], prior=prior)  # too few to say
    fitted([*rows, ("AC-D", "ACCD")], prior=prior)


def test_a_prior_with_two_scores_of_a_pair_is_said():
    matrix = SubstitutionMatrix("ACDE", 4.0 * np.eye(4) + np.triu(np.ones((4, 4)), 1))
    rows = aligned("ACDE")
    with pytest.warns(AdviceWarning, match="scores 'A' with 'C' by 1 and 'C' with 'A' by 0, and symmetric=True"):
        fitted(rows, prior=matrix)
    fitted(rows, prior=matrix, symmetric=False)


def test_letters_that_a_prior_lacks_are_said():
    matrix = SubstitutionMatrix("acd", 4.0 * np.eye(3))
    with pytest.warns(AdviceWarning, match="no scores of E, F, 2 of the 5 letters"):
        fitted(aligned("ACDEF"), prior=matrix)
    fitted(aligned("ACD"), prior=matrix)


@pytest.mark.parametrize("number", ["nan", "inf", "-inf", "1e999", "1_0", "0x1", "1,5", "\N{ARABIC-INDIC DIGIT ONE}"])
def test_what_is_no_number_of_a_matrix(number):
    with pytest.raises(
        ValueError, match=re.escape("the text, line 3: expected the row of 'C' with 2 numbers (finite)")
    ):
        SubstitutionMatrix.from_ncbi(f"  A C\nA 1 0\nC 0 {number}\n")


def test_names_of_matrices_in_lower_case():
    pytest.importorskip("Bio")
    assert SubstitutionMatrix.published("blosum62")["W", "W"] == 11.0
