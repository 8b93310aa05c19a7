"""The house, the child's world and the concept world."""

from collections import Counter

import numpy as np
import pytest

from structsvm.datasets import make_ambig_child_world, make_ambig_house, make_concept_world
from structsvm.datasets.worlds._concept_world import PATTERNS, events, execute, pronoun, resolvable
from structsvm.structures.meanings import format_meaning, parse_meaning

MAKERS = [make_ambig_house, make_ambig_child_world]


def names_in(meaning):
    """All names of a meaning, as often as they stand there."""
    tree, found = parse_meaning(meaning), Counter()
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        found[node if isinstance(node, str) else node[0]] += 1
        waiting += [] if isinstance(node, str) else node[1:]
    return found


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize("level", [0, 1, 3])
def test_bags_and_alignments(make, level):
    data = make(1500, level, random_state=0)
    assert len(data) == len(data.sentences) == len(data.bags) == len(data.meanings) == len(data.alignment) == 1500
    sizes = [len(bag) for bag in data.bags]
    assert np.mean(sizes) == pytest.approx(1 + level, abs=0.1) and max(sizes) <= 1 + 2 * level
    for sentence, bag, (meaning,), symbols in zip(
        data.sentences, data.bags, data.meanings, data.alignment, strict=True
    ):
        assert meaning in bag and len(set(bag)) == len(bag)
        assert len(symbols) == len(sentence.split())
        assert Counter(symbol for symbol in symbols if symbol != "-") == names_in(meaning)
        assert all(format_meaning(parse_meaning(m)) == m for m in bag)
    assert repr(data) == "AmbiguousSentences(n=1500)"


def test_the_house_is_as_large_as_the_thesis_says():
    data = make_ambig_house(4000, 0, random_state=1)
    assert len({word for sentence in data.sentences for word in sentence.split()}) == 74
    assert len({symbol for symbols in data.alignment for symbol in symbols}) == 59
    assert len({meaning.split("(")[0] for (meaning,) in data.meanings}) == 15
    # A word means one thing wherever it stands.
    meant = {}
    for sentence, symbols in zip(data.sentences, data.alignment, strict=True):
        for word, symbol in zip(sentence.split(), symbols, strict=True):
            assert meant.setdefault(word, symbol) == symbol


def test_one_to_four_relations():
    data = make_ambig_child_world(2000, 0, random_state=0)
    depth = Counter(meaning.count("(") for (meaning,) in data.meanings)
    assert set(depth) == {1, 2, 3, 4}
    assert np.mean([meaning.count("(") for (meaning,) in data.meanings]) == pytest.approx(2.0, abs=0.1)


@pytest.mark.parametrize("make", MAKERS)
def test_seeds(make):
    one, same, other = (make(50, 2, random_state=seed) for seed in (4, 4, 5))
    assert (one.sentences, one.bags) == (same.sentences, same.bags)
    assert one.sentences != other.sentences
    for arguments, name in (((0, 1), "n"), ((1.5, 1), "n"), ((5, -1), "level"), ((5, 0.5), "level")):
        with pytest.raises(ValueError, match=f"The '{name}' parameter of {make.__name__} must be an int in the range"):
            make(*arguments)


def test_the_concept_world_goes_on():
    words, concepts, universes = make_concept_world(1500, random_state=0)
    assert len({word for sentence in words for word in sentence}) == 75
    seen = {c for of_one in concepts for c in of_one}
    assert seen >= set(PATTERNS)
    for seed in (1, 2):  # each world has furniture of its own
        seen |= {c for of_one in make_concept_world(1500, random_state=seed)[1] for c in of_one}
    assert len(seen) == 59
    ambiguous = 0
    for k, (sentence, labels, world) in enumerate(zip(words, concepts, universes, strict=True)):
        assert len(sentence) == len(labels)
        verb = next(label for label in labels if label in PATTERNS)
        told = [label for label in labels if label not in PATTERNS and label != "-"]
        (event,) = {(v, a) for v, a in events(world) if v == verb and match(PATTERNS[verb], a) == told}
        hidden = {
            position
            for position, name in enumerate(event[1])
            if position < 3 and any(w == pronoun(name, position) and c == name for w, c in zip(sentence, labels))
        }
        ambiguous += bool(hidden)
        assert not hidden or resolvable(world, *event, hidden)
        after = world.copy()
        execute(after, *event)
        if k + 1 < len(universes):
            assert after == universes[k + 1]
    assert 0.45 < ambiguous / len(words) < 0.65


def test_what_the_world_resolves():
    """A pronoun is clear if no other coherent event of the same verb has the same words."""
    _, concepts, universes = make_concept_world(300, random_state=0)
    outcomes = Counter()
    for labels, world in zip(concepts, universes, strict=True):
        verb = next(label for label in labels if label in PATTERNS)
        same = [arguments for v, arguments in events(world) if v == verb]
        for arguments in same:
            assert resolvable(world, verb, arguments, set())
            for k, name in enumerate(arguments):
                said = [(pronoun(a[k], k), *a[:k], *a[k + 1 :]) for a in same if len(a) == len(arguments)]
                clear = said.count((pronoun(name, k), *arguments[:k], *arguments[k + 1 :])) == 1
                assert resolvable(world, verb, arguments, {k}) == clear
                outcomes[clear] += 1
    assert min(outcomes[True], outcomes[False]) > 100


def match(pattern, arguments):
    """The arguments in the order in which they are said."""
    return [arguments[int(part[1])] for part in pattern.split() if part[0] == "{"]


def test_pronouns_only_where_the_world_resolves_them():
    words, _, _ = make_concept_world(200, ambiguity=0.0, random_state=1)
    assert not {"he", "she", "it", "him", "her"} & {word for sentence in words for word in sentence}
    for wrong in (-0.1, 1.1, float("nan")):
        with pytest.raises(
            ValueError, match="The 'ambiguity' parameter of make_concept_world must be a float in the range"
        ):
            make_concept_world(5, ambiguity=wrong)
    assert make_concept_world(20, random_state=3) == make_concept_world(20, random_state=3)
