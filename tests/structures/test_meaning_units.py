"""Units of many meanings: what would be quadratic in them is refused."""

import pytest

from structsvm.structures import meaning_units
from structsvm.structures.meaning_units import MeaningUnits, Unit, similar_slots
from structsvm.structures.meanings import MeaningGrammar, parse_meaning


def test_slots_of_one_unit_are_like_no_other():
    assert similar_slots({0: frozenset([1]), 1: frozenset([1]), 2: frozenset([1, 2]), 3: frozenset([1, 2, 3])}) == {
        0: [], 1: [], 2: [2, 3], 3: [2, 3],
    }  # fmt: skip


def test_pairs_of_slots_are_counted_before_they_are_compared():
    """A million relations of one constant each are linear work; two each are too many pairs."""
    n = 8000
    units = MeaningUnits([parse_meaning(f"r{k}(a)") for k in range(n)])
    assert len(units.slots) == n
    with pytest.raises(ValueError, match="more than 50000000 pairs of slots that take the same unit"):
        MeaningUnits([parse_meaning(f"r{k}({name})") for k in range(n) for name in ("a", f"b{k}")])


def test_ways_to_fill_slots_are_counted_before_they_are_held(monkeypatch):
    trees = [parse_meaning(f"r{k}({name}{k % m})") for k in range(30) for name, m in (("a", 30), ("b", 2), ("c", 2))]
    units = MeaningUnits(trees)
    held = sum(map(len, units.fillers.values()))
    assert held > len(units.pairs)
    monkeypatch.setattr(meaning_units, "MOST_FILLINGS", held)
    assert MeaningUnits(trees).fillers == units.fillers
    monkeypatch.setattr(meaning_units, "MOST_FILLINGS", held - 1)
    with pytest.raises(ValueError, match=r"more than .* ways to fill them"):
        MeaningUnits(trees)


def test_members_of_kinds_ascend():
    units = MeaningUnits([parse_meaning(f"r({name})") for name in ("texas", "ohio", "maine", "3")])
    for kind, members in units.members.items():
        assert members == [u for u, own in enumerate(units.kinds) if own == kind]


def test_kinds_of_a_new_name_are_known_at_once(monkeypatch):
    """A lexicon of many phrases is not one walk through all kinds of names for each."""
    n = 300
    units = MeaningUnits([parse_meaning(f"r{k}({name}{k})") for k in range(n) for name in ("a", "b")[: 1 + k % 2]])
    asked = 0

    def tree(self, plain=Unit.tree.fget):
        nonlocal asked
        asked += 1
        return plain(self)

    monkeypatch.setattr(Unit, "tree", property(tree))
    found = [units.kinds_like(f"new{k}") for k in range(n)]
    assert found[0] == sorted(units.members) and all(kinds == found[0] for kinds in found)
    assert asked <= len(units.members) + 1
    assert units.kinds_like(("none", "x")) == [] and units.kinds_like(("r0", "x", "y")) == []


@pytest.mark.parametrize(
    ("words", "wanted"),
    [(["guam"], "guam"), (["x__", "1"], "'x__ 1'"), (["_"], None), (["a,b"], None), (["a(b"], None), (["12"], None)],
)
def test_how_a_name_is_written(words, wanted):
    units = MeaningUnits([parse_meaning(f"r({name})") for name in ("texas", "ohio", "maine")])
    (kind,) = units.members
    assert units.spelling(kind)(words) == wanted
    assert units.spelling(kind)(["a" * 200_000 + "("]) is None  # in no quadratic time


def test_categories_of_names_are_counted_before_they_are_held(monkeypatch):
    trees = [parse_meaning(f"top(p{k}({name}))") for k in range(9) for name in ("a", f"b{k}", f"c{k}")]
    lines = [f"A{k} -> @A{k - 1}" for k in range(1, 21)] + ["A0 -> a"]
    grammar, asked, categories = MeaningGrammar("\n".join(lines)), [], MeaningGrammar.categories

    def counted(self, tree):
        asked.append(tree)
        return categories(self, tree)

    monkeypatch.setattr(MeaningGrammar, "categories", counted)
    assert len(MeaningUnits(trees, grammar).names) == 9
    assert sorted(asked) == sorted({*asked}) and len(asked) == 19
    monkeypatch.setattr(meaning_units, "MOST_FILLINGS", 9 * 21 - 1)
    with pytest.raises(ValueError, match="the names are in more than 188 categories of the grammar"):
        MeaningUnits(trees, grammar)
