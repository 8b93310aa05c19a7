"""JSON lines of sentences and bags."""

import gzip
import io

import pytest

from structsvm.structures.bag_lines import read_bags, read_lexicon, write_bags


def test_written_and_read(tmp_path):
    sentences, bags = ["purple 9 schießt", ["größe", "漢字"]], [["f(a)", "g()"], ["f('ü b')"]]
    alignments = [["p", "-", "-"], ["-", "x"]]
    write_bags(tmp_path / "b.jsonl", sentences, bags, alignments)
    found = read_bags(tmp_path / "b.jsonl")
    places = [f"{tmp_path / 'b.jsonl'}, line {k}" for k in (1, 2)]
    assert found == (sentences, bags, alignments, places)
    (tmp_path / "b.jsonl.gz").write_bytes(gzip.compress((tmp_path / "b.jsonl").read_bytes()))
    assert read_bags(tmp_path / "b.jsonl.gz")[:3] == found[:3]
    write_bags(tmp_path / "c.jsonl", sentences, bags)
    assert read_bags(tmp_path / "c.jsonl").alignments == [None, None]
    with pytest.raises(ValueError, match="2 of sentence, 1 of bag"):
        write_bags(tmp_path / "d.jsonl", sentences, bags[:1])


def test_forms_of_a_line():
    lines = ['{"sentence": "a b", "bag": "f(x)", "more": 1}\n', "\n", '{"sentence": ["a"], "bag": ["x", "x"]}\n']
    assert read_bags(lines).bags == [["f(x)"], ["x", "x"]]
    assert read_bags([r'{"sentence": "\u00e4 \ud83d\ude00", "bag": "x"}']).sentences == ["ä 😀"]
    assert read_bags(['{"sentence": "a"}\n'], bags=False).bags == [None]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "Expecting"),
        ("[1]", 'not an object with a "sentence"'),
        ('{"bag": ["a"]}', 'not an object with a "sentence"'),
        ('{"sentence": " ", "bag": ["a"]}', '"sentence" must be text, or a list of words'),
        ('{"sentence": [1], "bag": ["a"]}', '"sentence" must be text'),
        ('{"sentence": "a"}', 'no "bag"'),
        ('{"sentence": "a", "bag": []}', '"bag" must be a list of meaning representations, one at least'),
        ('{"sentence": "a", "bag": [1]}', '"bag" must be a list'),
        ('{"sentence": "a", "bag": ["f(a"]}', r"brackets open: they are unbalanced.*'f\(a'"),
        ('{"sentence": "a", "bag": ["a"], "alignment": ["x", "y"]}', '"alignment" must be a list of 1 symbols'),
        (r'{"sentence": "a \ud800", "bag": ["a"]}', r"'\\ud800' is half a character"),
        (r'{"sentence": "a", "bag": ["\uDC00"]}', r"'\\udc00' is half a character"),
        ('{"sentence": NaN}', "NaN is not JSON"),
        ("[" * 100_000, "nested too deeply"),
    ],
)
def test_lines_that_are_none(line, message):
    source = io.BytesIO(('{"sentence": "a", "bag": ["a"]}\n' + line + "\n").encode())
    source.name = "bags.jsonl"
    with pytest.raises(ValueError, match="bags.jsonl, line 2: .*" + message):
        read_bags(source)


def test_nothing(tmp_path):
    (tmp_path / "empty").write_text("\n\n")
    with pytest.raises(ValueError, match="empty: contains no sentences"):
        read_bags(tmp_path / "empty")


def test_marks_of_byte_order(tmp_path):
    (tmp_path / "bags").write_bytes(b'\xef\xbb\xbf{"sentence": "a b", "bag": ["f(a)"]}\n')
    assert read_bags(tmp_path / "bags").sentences == ["a b"]
    (tmp_path / "lexicon").write_bytes(b"\xef\xbb\xbfnew york\t'nyc'\n")
    assert list(read_lexicon(tmp_path / "lexicon")) == ["new york"]
    (tmp_path / "lexicon").write_bytes(b"a\t'b'\n\xff\n")
    with pytest.raises(ValueError, match="lexicon, line 2: bytes that are not UTF-8"):
        read_lexicon(tmp_path / "lexicon")
