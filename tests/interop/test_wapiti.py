"""Wapiti's model files: read, decoded as by enumeration, written, and refused when damaged."""

import contextlib
import itertools
import random

import numpy as np
import pytest

from structsvm.interop import ModelFileError, read_wapiti, write_wapiti

MODEL = b"""#mdl#2#7
#rdr#3/1/0
9:u:%X[0,0],
1:b,
10:*:%x[-1,1],
#qrk#2
1:A,
2:\xc3\xa9,
#qrk#4
5:u:dog,
1:b,
6:*:_x-1,
3:*:N,
0=0x1.8p+1
1=-0x1p-1
3=0x1p+0
4=-0x1.4p+2
6=0x1p+3
13=0x1.0cp+1
15=-2.5
"""
# Observations: u:dog 0-1, b 2-5, *:_x-1 6-7 and 8-11, *:N 12-13 and 14-17.
SEQUENCE = [["Dog", "N"], ["x", "D"], ["DOG", "N"]]


@pytest.fixture
def model(tmp_path):
    (tmp_path / "m").write_bytes(MODEL)
    return read_wapiti(tmp_path / "m")


def test_scores(model):
    states, b = [[11.0, -0.5], [0.0, 2.09375], [3.0, -0.5]], np.array([[0.0, 1.0], [-5.0, 0.0]])
    pairs = [np.add(b, [[0.0, -2.5], [0.0, 0.0]]), b]
    for path in itertools.product((0, 1), repeat=3):
        expected = sum(states[t][y] for t, y in enumerate(path))
        expected += sum(pairs[t][a, b] for t, (a, b) in enumerate(itertools.pairwise(path)))
        assert model.score(SEQUENCE, [model.labels[y] for y in path]) == expected


def test_decoding_is_the_enumeration(model):
    paths = {path: model.score(SEQUENCE, path) for path in itertools.product(model.labels, repeat=3)}
    (labels,) = model.predict([SEQUENCE])
    assert tuple(labels) == max(paths, key=paths.__getitem__)
    ((best, second),) = model.predict_kbest([SEQUENCE], 2)
    assert [best[1], second[1]] == pytest.approx(sorted(paths.values())[:-3:-1])
    log_partition = np.logaddexp.reduce(list(paths.values()))
    assert model.log_partition(SEQUENCE) == pytest.approx(log_partition)
    expected = np.zeros((3, 2))
    for path, value in paths.items():
        for t, label in enumerate(path):
            expected[t, model.labels.index(label)] += np.exp(value - log_partition)
    np.testing.assert_allclose(model.predict_marginals([SEQUENCE])[0], expected, atol=1e-12)


def test_ties_go_to_the_first_label(model):
    assert model.predict([[["unknown", "V"]], []]) == [["A"], []]


def test_written_files_are_read(model, tmp_path):
    write_wapiti(model, tmp_path / "w")
    again = read_wapiti(tmp_path / "w")
    assert again.attributes == model.attributes
    for ours, its in [(again.states, model.states), (again.pairs, model.pairs)]:
        assert [array.tolist() for array in ours] == [array.tolist() for array in its]
    write_wapiti(again, tmp_path / "w2")
    assert (tmp_path / "w").read_bytes() == (tmp_path / "w2").read_bytes()


def test_maximum_entropy_mode_takes_each_token_alone(tmp_path):
    text = b"#mdl#0#1\n#rdr#1/0/1\n10:u:%x[-1,0],\n#qrk#2\n1:A,\n1:B,\n#qrk#1\n7:uu:_x-1,\n1=0x1p+0\n"
    (tmp_path / "m").write_bytes(text)
    model = read_wapiti(tmp_path / "m")
    assert model.predict([[["a"], ["b"]], []]) == [["B", "B"], []]
    assert model.score([["a"], ["b"]], ["B", "B"]) == 2.0
    assert model.predict_marginals([[["a"], ["b"]]])[0][:, 1] == pytest.approx(1 / (1 + np.exp(-1.0)))


def test_maximum_entropy_mode_leaves_out_what_b_patterns_form(tmp_path):
    text = b"#mdl#0#2\n#rdr#2/0/1\n9:u:%x[0,0],\n9:b:%x[0,0],\n#qrk#2\n1:A,\n1:B,\n#qrk#2\n4:uu:a,\n4:ub:a,\n"
    text += b"0=0x1p+0\n3=0x1p+1\n"
    (tmp_path / "m").write_bytes(text)
    assert read_wapiti(tmp_path / "m").score(["a"], ["B"]) == 0.0
    assert read_wapiti(tmp_path / "m").predict([["a"]]) == [["A"]]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (b"#mdl#2#7", b"#mdl#1#7", "m:1: .*memm"),
        (b"#mdl#2#7", b"#mdl#2#8", "m:14: 8 weights"),
        (b"#mdl#2#7", b"#mdl#2#999999999999", "m:14: 999,999,999,999 weights"),
        (b"#rdr#3/1/0", b"#rdr#999999999/1/0", "m:3: .*do not fit"),
        (b"9:u:%X", b"9:u:%Y", "no command %Y"),
        (b"5:u:dog", b"6:u:dog", "m:10: .*6 bytes"),
        (b"3:*:N", b"5:u:dog", "stands twice"),
        (b"3:*:N", b"3:x:N", "does not start"),
        (b"15=-2.5\n", b"15=-2.", "m:20: .*cut off"),
        (b"15=-2.5", b"18=-2.5", "m:20: .*below 18"),
        (b"15=-2.5", b"13=-2.5", "same number"),
        (b"15=-2.5", b"15=1e999", "finite"),
        (b"15=-2.5", b"15=0x1p+99999", "wanted number=weight"),
        (b"#qrk#2", b"#qrk#0", "wanted"),
    ],
)
def test_damaged_files(tmp_path, old, new, message):
    (tmp_path / "m").write_bytes(MODEL.replace(old, new, 1))
    with pytest.raises(ModelFileError, match=message):
        read_wapiti(tmp_path / "m")


def test_mutated_files_are_read_or_refused_by_name(tmp_path):
    rng = random.Random(0)
    path = tmp_path / "m"
    pieces = [b"", b"9", b"0", b"\n", b"#", b":", b"\xff"]
    read = 0
    for _ in range(500):
        data = bytearray(MODEL)
        for _ in range(rng.randint(1, 4)):
            at = rng.randrange(len(data))
            data[at : at + rng.randint(0, 3)] = rng.choice(pieces)
        path.write_bytes(data)
        with contextlib.suppress(ModelFileError):
            model = read_wapiti(path)
            read += 1
            if 0 < model.n_columns <= 2:
                assert len(model.predict([SEQUENCE])[0]) == 3
    assert 0 < read < 250


def test_tokens_with_too_few_columns(model):
    with pytest.raises(ValueError, match="token 1 has 1 columns"):
        model.predict([[["a", "N"], ["b"]]])
