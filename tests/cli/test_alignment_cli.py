"""The commands for alignments."""

import json

import numpy as np
import pytest
from click.testing import CliRunner

from structsvm.cli import main
from structsvm.cli.alignment import stand_ins
from structsvm.datasets import make_alignment, write_alignments
from structsvm.structures.substitution_matrix import SubstitutionMatrix

pytest.importorskip("Bio")
# Click will replace the text stream of standard output in its next major version.
pytestmark = pytest.mark.filterwarnings("ignore:.get_text_stream. is deprecated:DeprecationWarning")


def run(*args, code=0, **options):
    result = CliRunner().invoke(main, [str(a) for a in args], catch_exceptions=False, **options)
    assert result.exit_code == code, result.output
    return result


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("alignment")
    for name, seed in (("train.a2m", 0), ("test.a2m.gz", 1)):
        data = make_alignment(20, divergence=0.5, n_decoys=4, random_state=seed)
        write_alignments(folder / name, data.y, data.decoys)
        write_alignments(folder / f"bare-{name}", data.y)
    run("train", "alignment", folder / "train.a2m", "--model", folder / "model", "--no-decoys", "-C", 1, "--tol", 0.1)
    return folder


def test_train_evaluate_predict(files, tmp_path):
    scores = json.loads(run("evaluate", files / "model", files / "test.a2m.gz", "--json").stdout)
    assert 0.0 <= scores["error"] <= 0.5 and 0.3 < scores["pair_f1"] <= 1.0
    assert scores["n_pairs"] == 20 and scores["own_decoys"]
    shown = run("evaluate", files / "model", files / "test.a2m.gz").stdout
    assert shown == (
        "20 pairs; aligned letters: precision {pair_precision:.4f}, recall {pair_recall:.4f}, F1 {pair_f1:.4f}\n"
        "Q {q:.4f}, all columns right {total_column:.4f}\n"
        "homologue not chosen among its decoys: {error:.4f}\n"
    ).format_map(scores)
    run("predict", files / "model", files / "test.a2m.gz", "-o", tmp_path / "out.a2m")
    # Predictions are alignments of the same sequences, and those that the scores were computed from.
    again = json.loads(run("evaluate", files / "model", tmp_path / "out.a2m", "--json").stdout)
    assert again["pair_f1"] == again["q"] == 1.0 and not again["own_decoys"]
    best = run("predict", files / "model", files / "test.a2m.gz", "-k", 2).stdout
    assert best.startswith(">E1 rank=1 score=") and best.count(">") == 80
    shown = run("inspect", files / "model", "--top", 3).stdout
    assert "task: alignment, semi_global, affine gaps" in shown and "highest:" in shown and "gap: open" in shown
    assert "prior: " in shown and shown.split("prior: ")[1].split("\n")[0].endswith("; semi_global")


def test_words(tmp_path):
    """Lines of words are learnt from, aligned and scored; what is written is read again."""
    lines = ["the colour of - sea\tthe color of the sea\n", "he took - his hat\the took off his hat\n"] * 15
    (tmp_path / "train").write_text("".join(lines))
    (tmp_path / "new").write_text("he took his sea\the took off his sea\n")
    run("train", "alignment", tmp_path / "train", "--words", "-m", tmp_path / "m", "-C", 0.1)
    found = run("predict", tmp_path / "m", tmp_path / "new", "-o", tmp_path / "out") and (tmp_path / "out").read_text()
    assert found == "he took - his sea\the took off his sea\n"
    assert json.loads(run("evaluate", tmp_path / "m", tmp_path / "out", "--json").stdout)["q"] == 1.0
    ranked = run("predict", tmp_path / "m", tmp_path / "new", "-k", 2).stdout.splitlines()
    assert len(ranked) == 2 and ranked[0].startswith(found.strip() + "\t")
    assert "the with the" in run("inspect", tmp_path / "m", "--top", 50).stdout
    assert "lines of words need --words" in run("train", "alignment", tmp_path / "train", "-m", tmp_path / "n",
                                                         code=1).output  # fmt: skip
    assert "--matrix writes scores of letters" in run("train", "alignment", tmp_path / "train", "--words", "--matrix",
                                                      tmp_path / "x", "-m", tmp_path / "n", code=1).output  # fmt: skip


def test_train_from_decoys_and_export(files, tmp_path):
    out = run("train", "alignment", files / "train.a2m", "-m", tmp_path / "m", "--mode", "local", "--gaps", "linear",
              "--matrix", tmp_path / "matrix.txt", "--asymmetric", "--tol", 0.1, "-C", 1).output  # fmt: skip
    assert "80 decoys" in out and "gap" in out
    matrix = SubstitutionMatrix.read(tmp_path / "matrix.txt")
    assert matrix.alphabet == "ACDEFGHIKLMNPQRSTVWYX" and not np.array_equal(matrix.values, matrix.values.T)
    # An exported matrix can be a prior.
    run("train", "alignment", files / "bare-train.a2m", "-m", tmp_path / "m", "--prior", tmp_path / "matrix.txt",
        "--prior-gap-open", -1, "--max-iter", 1, "-q", "--plot", tmp_path / "history.png")  # fmt: skip
    assert (tmp_path / "history.png").stat().st_size > 1000
    scores = json.loads(run("evaluate", tmp_path / "m", files / "bare-test.a2m.gz", "--json").stdout)
    assert 0.0 <= scores["error"] <= 1.0 and not scores["own_decoys"]


def test_standard_input(files):
    out = run("predict", files / "model", "-", input=">a\nACDE\n>b\nacde\n").stdout
    assert out == ">a x\nACDE\n>a z\nACDE\n"


def test_fragments_that_do_not_overlap(tmp_path):
    (tmp_path / "f.sto").write_text("# STOCKHOLM 1.0\na ACDE----\nb AC--FGHI\nc ----FGHI\nd acd--GHI\n//\n")
    out = run("train", "alignment", tmp_path / "f.sto", "-m", tmp_path / "m", "--prior", "none", "-C", 1).output
    assert "4 pairs (2 without aligned letters left out)" in out  # a/c and a/d
    out = run("train", "alignment", tmp_path / "f.sto", "-m", tmp_path / "n", "--prior", "none", "--loss", "zero_one",
              "--mode", "global", "-C", 1).output  # fmt: skip
    assert "5 pairs (1 without aligned letters left out)" in out
    shown = run("evaluate", tmp_path / "m", tmp_path / "f.sto").stdout
    assert shown.startswith("4 pairs (2 without aligned letters left out); aligned letters: ")
    scores = json.loads(run("evaluate", tmp_path / "m", tmp_path / "f.sto", "--json").stdout)
    assert (scores["n_pairs"], scores["n_left_out"]) == (4, 2)
    (tmp_path / "none.fa").write_text(">a x\nACD--\n>a z\n---AD\n")
    for args in (("train", "alignment", tmp_path / "none.fa", "-m", tmp_path / "o"),
                 ("evaluate", tmp_path / "m", tmp_path / "none.fa")):  # fmt: skip
        assert "none.fa: no alignment has a pair of upper-case letters" in run(*args, code=1).output


def test_stand_ins():
    X = [(f"x{k}", f"z{k}") for k in range(30)]
    decoys = stand_ins(X)
    assert all(len(set(d)) == 10 and f"z{k}" not in d for k, d in enumerate(decoys))
    assert stand_ins(X[:1]) == [[]]
    assert stand_ins(X[:2]) == [["z1"], ["z0"]]


def test_bad_input(files, tmp_path):
    (tmp_path / "bad.fa").write_text(">a x\nACD\n>a z\nAD\n")
    for args, message in [
        (
            ("train", "alignment", tmp_path / "bad.fa", "-m", tmp_path / "m"),
            "bad.fa, record 'a': the rows have 3 and 2",
        ),
        (
            ("train", "alignment", files / "bare-train.a2m", "-m", tmp_path / "m", "--decoys"),
            "record 'E1': has no decoys",
        ),
        (
            ("train", "alignment", files / "train.a2m", "-m", tmp_path / "m", "--prior", "NONE"),
            "no substitution matrix 'NONE'",
        ),
        *(
            (
                ("train", "alignment", files / "train.a2m", "-m", tmp_path / "m", f"--prior-gap-{gap}", 10),
                f"gap_{gap} must not be positive",
            )
            for gap in ("open", "extend")
        ),
        (("train", "alignment", files / "train.a2m", "-m", tmp_path / "no" / "m"), "there is no folder"),
        (("inspect", files / "model", "--label", "B"), "--label is for models of labels"),
        (("evaluate", files / "model", files / "test.a2m.gz", "--plot", "x.png"), "--plot draws a confusion matrix"),
    ]:
        assert message in run(*args, code=1).output
        assert not (tmp_path / "m").exists()
    for options, message in [
        (("-C", -1), "'-C': '-1' is not auto or a float in the range"),
        (("--prior", "none", "--prior-gap-open", -1), "--prior-gap-open has no effect with --prior none"),
        (("--gaps", "linear", "--prior-gap-extend", -1), "--prior-gap-extend has no effect with --gaps linear"),
        (("--window", 2), "--window has no effect where decoys are learnt from"),
        (("--loss", "zero_one"), "--loss has no effect where decoys are learnt from"),
    ]:
        args = "train", "alignment", files / "train.a2m", "-m", tmp_path / "m", *options
        assert message in run(*args, code=2).output
        assert not (tmp_path / "m").exists()


def test_demo(tmp_path):
    out = run("demo", "alignment", "-o", tmp_path / "demo.png").output
    assert "homologue not chosen" in out and (tmp_path / "demo.png").stat().st_size > 1000
