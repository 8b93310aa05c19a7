from enum import IntEnum
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

MOST_IN_ANY_ORDER: int
MOST_ARGUMENTS: int

class Kind(IntEnum):
    ROOT = 0
    NODE = 1
    SLOT = 2
    STAGE = 3
    LEFT = 4
    BARE = 5
    NOTHING = 6

class Order(IntEnum):
    PLAIN = 0
    ANY_ORDER = 1
    IN_ORDER = 2

class Forest:
    @property
    def units(self) -> NDArray[np.int32]: ...
    @property
    def kinds(self) -> NDArray[np.int32]: ...
    @property
    def slot_ptr(self) -> NDArray[np.int32]: ...
    @property
    def slots(self) -> NDArray[np.int32]: ...
    @property
    def fill_ptr(self) -> NDArray[np.int32]: ...
    @property
    def fill(self) -> NDArray[np.int32]: ...
    @property
    def pairs(self) -> NDArray[np.int32]: ...
    @property
    def roots(self) -> NDArray[np.int32]: ...
    @property
    def root_pairs(self) -> NDArray[np.int32]: ...
    @property
    def spans(self) -> NDArray[np.int32]: ...
    @property
    def stage_ptr(self) -> NDArray[np.int32]: ...
    @property
    def inner_end(self) -> NDArray[np.int32]: ...
    @property
    def priors(self) -> NDArray[np.float64]: ...
    @property
    def lists(self) -> NDArray[np.int32]: ...
    @property
    def ordered(self) -> NDArray[np.int32]: ...
    @property
    def n_nodes(self) -> int: ...
    @property
    def n_slots(self) -> int: ...
    def __init__(
        self,
        units: ArrayLike,
        kinds: ArrayLike,
        slots: list[list[tuple[int, list[tuple[int, int]]]]],
        roots: list[tuple[int, int]],
        spans: dict[int, tuple[int, int]] | None = None,
        priors: ArrayLike | None = None,
        lists: ArrayLike | None = None,
    ) -> None: ...
    @staticmethod
    def of_arrays(*arrays: ArrayLike) -> Forest: ...
    @property
    def arrays(self) -> tuple[NDArray[np.int32] | NDArray[np.float64], ...]: ...

def forest_of(*arrays: ArrayLike) -> Forest: ...
def rows_of(pairs: ArrayLike) -> NDArray[np.int32]: ...

class Layout:
    rows: NDArray[np.int32]
    name_ptr: NDArray[np.int32]
    name_columns: NDArray[np.int32]
    n_rows: int
    n_slots: int
    n_attributes: int
    n_present: int
    n_borders: int
    n_pairs: int
    n_inside: int
    n_features: int
    word: int
    begin: int
    end: int
    slot_begin: int
    slot_end: int
    wordless: int
    empty: int
    order: int
    pair: int
    present: int
    inside: int
    name: int
    def __init__(
        self,
        rows: ArrayLike,
        n_slots: int,
        n_attributes: int,
        n_present: int,
        n_borders: int,
        inside: bool = False,
        columns: tuple[ArrayLike, ArrayLike] | None = None,
    ) -> None: ...

class Chart:
    layout: Layout
    depth: int
    def __new__(cls, layout: Layout, depth: int = 4) -> Self: ...
    def log_sum(
        self,
        sentence: tuple[NDArray[np.int32], ...],
        forest: Forest,
        w: NDArray[np.float64],
        *,
        best: bool = False,
        losses: tuple[NDArray[np.float64], ...] | None = None,
    ) -> float: ...
    def expect(
        self, sentence: tuple[NDArray[np.int32], ...], forest: Forest, w: NDArray[np.float64]
    ) -> tuple[float, NDArray[np.float64] | None]: ...
    def learn(
        self,
        sentence: tuple[NDArray[np.int32], ...],
        known: Forest,
        free: Forest,
        learner: Learner,
        rate: float,
        weight: float = 1.0,
        doubt: float = 0.0,
    ) -> float: ...
    def edges(
        self, kind: int, u: int, x: int, i: int, j: int, least: float = 0.0
    ) -> list[tuple[float, tuple[tuple[int, int, int, int, int], ...], tuple[int, ...]]]: ...

class Learner:
    weights: NDArray[np.float64]
    squares: NDArray[np.float64]
    sum: NDArray[np.float64]
    start: NDArray[np.float64]
    gradient: NDArray[np.float64]
    touched: NDArray[np.int32]
    mark: NDArray[np.uint8]
    paces: NDArray[np.float64]
    n_steps: int
    def __init__(self, weights: NDArray[np.float64], penalty: float, paces: NDArray[np.float64]) -> None: ...
    @property
    def average(self) -> NDArray[np.float64]: ...
    def move(self, features: NDArray[np.int64], values: NDArray[np.float64], rate: float) -> None: ...

def restored_learner(
    weights: NDArray[np.float64],
    start: NDArray[np.float64],
    squares: NDArray[np.float64],
    total: NDArray[np.float64],
    penalty: float,
    paces: NDArray[np.float64],
    n_steps: int,
) -> Learner: ...
