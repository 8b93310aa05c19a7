"""The network against equations (C.3) to (C.7) written out, and its steps against finite differences."""

import numpy as np
import pytest
from concept_reference import PlainNetwork
from hypothesis import given, settings
from hypothesis import strategies as st

from structsvm.tasks.concepts._network import STRATEGIES, ConceptState, Network, Scenes, rounded


class Example:
    """A random network, and sentences in random worlds; some of these lack some labels."""

    def __init__(self, seed, strategy, n=3):
        rng = np.random.default_rng(seed)
        self.d, self.hidden, self.K, self.strategy = int(rng.integers(1, 5)), int(rng.integers(1, 12)), 4, strategy
        m, v, n_names = int(rng.integers(1, 4)), int(rng.integers(0, 3)), 7
        D, S = rounded(self.d), rounded(self.hidden)

        def layer(*shape, used, whole):
            found = np.zeros((*shape, whole), dtype=np.float32)
            found[..., :used] = rng.normal(size=(*shape, used))
            return found

        self.layers = {
            "words": layer(16, used=self.d, whole=D),
            "names": layer(n_names, used=self.d, whole=D),
            "g_words": layer(2 * v + 1, self.d, used=self.hidden, whole=S),
            "g_names": layer(2 * v + 1, m * self.d, used=self.hidden, whole=S),
            "g_bias": layer(used=self.hidden, whole=S),
            "h": layer(m * self.d + 1, used=self.hidden, whole=S),
        }
        self.layers["words"][0] = 0.0
        lengths = rng.integers(1, 5, n)
        self.offsets = np.cumsum([0, *lengths])
        self.words = rng.permutation(16)[: self.offsets[-1]].astype(np.int32)  # no two alike: nothing ties
        self.worlds = rng.integers(0, n_names, (2, self.K, m), dtype=np.int32)
        self.worlds[:, :, 0] = rng.permutation(n_names)[: self.K]
        self.worlds[0, 1:3, 0] = -1
        self.world_of = rng.integers(0, 2, n)
        self.targets = np.where(rng.random(self.offsets[-1]) < 0.5, 0, 3).astype(np.int32)

    def sentence(self, s):
        """Words, world and labels."""
        a, b = self.offsets[s], self.offsets[s + 1]
        return self.words[a:b], self.worlds[self.world_of[s]], self.targets[a:b].tolist()

    def scenes(self, ordered=None):
        arrays = self.words, self.offsets, self.worlds, self.world_of
        return Scenes(*arrays) if ordered is None else Scenes(*arrays, self.targets, np.full(3, ordered, np.uint8))

    def plain(self, layers=None):
        return PlainNetwork(self.layers if layers is None else layers, self.d, self.hidden, self.strategy)


@pytest.mark.parametrize("strategy", STRATEGIES)
@settings(max_examples=25)
@given(seed=st.integers(0, 2**32 - 1))
def test_search(strategy, seed):
    one = Example(seed, strategy)
    labels, order = Network(one.layers, one.d, strategy=strategy).find(one.scenes())
    for s in range(3):
        x, world, _ = one.sentence(s)
        a, b = one.offsets[s : s + 2]
        assert (labels[a:b].tolist(), order[a:b].tolist()) == one.plain().search(x, world)


@pytest.mark.parametrize("ordered", [True, False], ids=["labels", "bags"])
@pytest.mark.parametrize("strategy", ["order_free", "left_right"])
@settings(max_examples=8)
@given(seed=st.integers(0, 2**32 - 1))
def test_steps_follow_the_gradient(strategy, ordered, seed):
    """The layers move by the length of a step times the gradient of what it raises; a right labelling moves nothing."""
    one, rate = Example(seed, strategy), 1e-3
    state = ConceptState(
        one.scenes(ordered),
        one.layers,
        np.array([0.5, 1.0, 2.0]),
        dimension=one.d,
        strategy=strategy,
        learning_rate=rate,
    )
    plain, rng = one.plain(), np.random.default_rng(seed)
    for s, weight in enumerate((0.5, 1.0, 2.0)):
        x, world, wanted = one.sentence(s)
        wanted = wanted if ordered else plain.completed(x, world, wanted)
        error = plain.first_error(x, world, wanted)
        before, n_updates = {name: layer.copy() for name, layer in one.layers.items()}, state.n_updates
        state.set_state({f"layers.{name}": layer for name, layer in before.items()} | counters(state))
        state.visit(s)
        assert state.n_updates == n_updates + (error is not None)
        for name, layer in before.items():
            moved = (state.layers[name].astype(np.float64) - layer) / (rate * weight)
            used = one.d if name in ("words", "names") else one.hidden
            assert not moved[..., used:].any()
            for at in rng.permutation(layer[..., :used].size)[:6]:
                place = np.unravel_index(at, layer[..., :used].shape)
                if name == "words" and place[0] == 0:
                    assert moved[place] == 0.0
                    continue
                wanted_slope = 0.0 if error is None else slope(one, x, world, error, name, place)
                assert moved[place] == pytest.approx(wanted_slope, rel=2e-3, abs=2e-2)


def counters(state):
    return {name: array for name, array in state.get_state().items() if not name.startswith("layers.")}


def slope(one, x, world, error, name, place, step=1e-5):
    values = []
    for sign in (1.0, -1.0):
        plain = one.plain()
        plain.layers[name][place] += sign * step
        values.append(plain.gained(x, world, error))
    return (values[0] - values[1]) / (2.0 * step)


def test_steps_of_single_words():
    """Where each word is by itself, each wrong one is a step, and the search goes on."""
    one = Example(1, "independent")
    state = ConceptState(
        one.scenes(True), one.layers, np.ones(3), dimension=one.d, strategy="independent", learning_rate=1e-6
    )
    for s in range(3):
        state.visit(s)
    assert state.n_argmax == len(one.words)


def test_an_overflow_is_an_error():
    one = Example(0, "order_free")
    one.layers["h"][:] = 1e38
    with pytest.raises(ValueError, match="overflowed: set a smaller learning_rate"):
        Network(one.layers, one.d).find(one.scenes())
