"""Codes and shapes of words for parsers."""

from structsvm.features.word_codes import LONGEST_SHAPE, code, shape


def test_shapes_by_example():
    assert shape("Boeing-747") == "Xx-d"
    assert shape("") == ""
    assert shape("a1b2c3d4") == "xdxdxd"
    assert len(shape("a.b.c.d.")) == LONGEST_SHAPE


def test_combining_characters_belong_to_the_one_before_them():
    words = ["நிலம்", "(நிலம்).", "बिहारी,", "ข้าว", "E\u0301tat", "a\u0301b", ".\u0301.", "\u0301"]
    assert [*map(shape, words)] == ["x", "(x).", "x,", "x", "Xx", "x", ".", ""]
    # The limit counts kinds that are kept.
    assert shape("a\u0301.b\u0301.c.d.") == shape("a.b.c.d.")


def test_codes_are_above_those_of_places():
    assert code("") == 2 and code("a") != code("b")
