"""Names with characters that break lines, in all that shows names: pictures, reports, tables of commands."""

import warnings

import numpy as np
import pytest
from command_line import run

from structsvm.parameters import printable
from structsvm.structures.trees import Tree
from structsvm.tasks import LaRankClassifier, SequenceLabeler, TaxonomyClassifier

BAD = "a\nb\r\x07\x00\u2028$x_{$<b>" + "long" * 500
WORDS = [[{BAD: 1.0, "w": 1.0}, {"v": 1.0}], [{"v": 1.0}, {BAD: 1.0}]] * 6
TAGS = [[BAD + "1", "y\ty"], ["y\ty", BAD + "1"]] * 6


@pytest.fixture(scope="module")
def labeler():
    return SequenceLabeler(C=1.0, random_state=0).fit(WORDS, TAGS)


def test_names_are_one_line():
    assert printable("a\nb\x00") == r"a\nb\x00" and printable(("x", 1)) == "('x', 1)"
    for kept in ("$x$", "naïve 日本\u3000語", "می\u200cروم", "a\u00a0b"):
        assert printable(kept) == kept
    assert printable("\ud800") == r"\ud800"


def test_reports(labeler):
    table, shown = labeler.report(), labeler.explain(WORDS[0])
    for text in (str(table), table._repr_html_(), shown.text()):
        assert r"a\nb\r\x07\x00\u2028$x_{$" in text
        assert not set(text) & set("\r\x07\x00\u2028\t")
    assert "<b>" not in table._repr_html_()
    assert "\x07" not in Tree("S", [Tree("x", ["w\x07w"])])._repr_svg_()


def displays(labeler):
    from structsvm import plotting

    rows = np.random.default_rng(0).normal(size=(40, 2))
    names = np.where(rows[:, 0] > 0.0, BAD, "$")
    yield plotting.ConfusionDisplay.from_predictions(TAGS, TAGS)
    yield plotting.TransitionDisplay.from_estimator(labeler)
    yield plotting.FeatureDisplay.from_estimator(labeler, label=BAD + "1")
    yield plotting.AlignmentDisplay({BAD: ("AC", "AC"), "$": ("AC", "AC")}).plot()
    yield plotting.TreeDisplay.from_predictions(*(Tree(name, [Tree("x", ["w\x07w"])]) for name in ("S$", "$")))
    model = TaxonomyClassifier(taxonomy=[("root", BAD), ("root", "$")], C=1.0, random_state=0).fit(rows, names)
    yield plotting.TaxonomyDisplay.from_estimator(model, rows, names)


def test_pictures(labeler, tmp_path):
    import matplotlib.pyplot as plt

    for display in displays(labeler):
        with warnings.catch_warnings():
            warnings.filterwarnings("error", message="Glyph")
            display.figure_.savefig(tmp_path / "a.png")
        texts = [text.get_text() for text in display.figure_.findobj(plt.Text)]
        assert max(map(len, texts)) < 60 and not any(set(text) & set("\n\r\x07\x00\u2028") for text in texts)
        plt.close(display.figure_)


def test_commands(labeler, tmp_path):
    labeler.save(tmp_path / "m")
    out, err = run(tmp_path, "inspect", "m")
    assert r"a\nb\r\x07\x00\u2028$x" in out and not set(out) & set("\r\x07\x00\u2028") and err == ""


@pytest.mark.filterwarnings("always::structsvm.ConvergenceWarning", "always::structsvm.AdviceWarning")
def test_quiet_is_quiet(tmp_path):
    """Nothing but results and errors: with -q no warning, no progress, no path of a picture."""
    rows = np.random.default_rng(0).normal(size=(99, 3)) * [1.0, 1.0, 1e4]
    lines = [f"{int(x > 0)} " + " ".join(f"{j}:{v:.6g}" for j, v in enumerate(row, 1)) for row in rows for x in row[:1]]
    (tmp_path / "t").write_text("\n".join(lines) + "\n")
    train = ("train", "multiclass", "t", "-m", "m", "-C", 1, "--kernel", "linear")
    said, warned = run(tmp_path, *train)
    assert "examples" in said and "/" not in warned
    assert [line.split()[:3] for line in warned.splitlines()] == [
        ["warning:", "numbers", "a"],
        ["warning:", "KernelLaRank", "stopped"],
    ]
    assert run(tmp_path, *train, "-q") == ("", "")
    assert run(tmp_path, "inspect", "m", "--plot", "p.png", "-q")[1] == ""
    assert "p.png" not in run(tmp_path, "inspect", "m", "--plot", "p.png", "-q")[0]
    assert run(tmp_path, "predict", "m", "t", "-q")[1] == ""
    assert LaRankClassifier.load(tmp_path / "m").score(rows, rows[:, 0] > 0) > 0.5
