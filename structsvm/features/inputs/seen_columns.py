"""The columns that tokens of training had, and the check that those of a prediction have them too.

A model whose inputs lack a column, or have another one in its place, predicts something all the same. Columns are those
of a file, keys of feature dicts, or the form and the tag of a word.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from typing import Any, NamedTuple, Self

from structsvm._warnings import LEAST_INPUTS, AdviceWarning, warn
from structsvm.features._attributes import are_usual, count_columns, in_all_tokens

LEAST_TOKENS = 50  # tokens of training that shares of values need
KEPT = 100  # values of a column that are kept, the most frequent ones
# An event of a smaller probability by the shares of training is no chance.
CHANCE = math.log(1e-6)
FEW = 0.25  # a column with fewer known values than this part of training's share is another one
LEAST_KNOWN = 0.2  # share of values that must be those of another column
MOST_LOST = 0.5  # fewer tokens with a column than this part of training's share are worth a warning
MOST_NAMED = 6  # columns in a message
MOST_COLUMNS = 256


class SeenColumn(NamedTuple):
    """One column of the training tokens.

    Attributes
    ----------
    share : float
        Share of the tokens that had a value.
    known : float
        Share of the tokens that had one of `values`.
    values : frozenset
        Its most frequent values, str or int.
    """

    share: float
    known: float = 0.0
    values: frozenset[Hashable] = frozenset()

    def known_among(self, counts: Mapping[Any, int]) -> int:
        """The tokens whose value is one of these, by the counts of values."""
        if len(counts) < len(self.values):
            return sum(counts[value] for value in counts if value in self.values)
        return sum(counts.get(value, 0) for value in self.values)


# Per column, how many tokens have each value. One that is only there or not has any value.
Found = Mapping[str, Mapping[Any, int]]


class SeenColumns:
    """The columns of training tokens, by name.

    Parameters
    ----------
    columns : dict of str to SeenColumn
    """

    def __init__(self, columns: Mapping[str, SeenColumn]) -> None:
        self.columns = dict(columns)
        self._usual = [name for name, seen in self.columns.items() if seen.share > 0.0]
        self._has_values = any(seen.known > 0.0 for seen in self.columns.values())
        self._texts = tuple(name[:-1] for name in self._usual if name.endswith(":"))
        self._others = tuple(name for name in self._usual if not name.endswith(":"))
        self._known = {name[:-1] for name in self.columns if name.endswith(":")}

    @property
    def has_numbers(self) -> bool:
        """Whether all training tokens had a key whose value is a number or a truth value."""
        return any(not self._has_values and not name.endswith((":", "=")) for name in self._usual)

    @property
    def required(self) -> list[str]:
        """The columns that every training token had: a prediction without one of them is refused."""
        return [name for name, seen in self.columns.items() if seen.share >= 1.0]

    @classmethod
    def of(cls, found: Found, n_tokens: int) -> Self:
        """Return the columns of so many training tokens."""
        columns = {}
        for name, counts in list(found.items())[:MOST_COLUMNS]:
            frequent = dict(sorted(counts.items(), key=lambda item: (-item[1], str(item[0])))[:KEPT])
            if n_tokens < LEAST_TOKENS:
                frequent = {}
            share = sum(counts.values()) / max(n_tokens, 1)
            columns[name] = SeenColumn(share, sum(frequent.values()) / (n_tokens + 1), frozenset(frequent))
        return cls(columns)

    @classmethod
    def named(cls, sequences: Any) -> Self | None:
        """Return the named features of training tokens, whatever their values; None where these are read once.

        Those that every token had are needed, others may be missing.
        """
        counts, n = sampled_names(sequences)
        if not n:
            return None
        order = sorted(counts, key=lambda name: (-counts[name], name))[:MOST_COLUMNS]
        usual = in_all_tokens(sequences, [name for name in order if counts[name] == n])
        return cls({name: SeenColumn(float(name in usual)) for name in order})

    def check(self, found: Found, n_tokens: int, remedy: str = "") -> None:
        """Compare the tokens of a prediction with those of training.

        Parameters
        ----------
        found : dict of str to dict
            Per column the values and how many tokens have each.
        n_tokens : int
        remedy : str
            What to do about a column that is missing, the end of the message.

        Raises
        ------
        ValueError
            A column that the training tokens had is missing, or its values are those of another column.

        Warns
        -----
        AdviceWarning
            None of many values of a column is among the frequent ones of training.
        """
        missing = [
            name
            for name, seen in self.columns.items()
            if not any(found.get(name, {}).values()) and _is_no_chance(0.0, seen.share, n_tokens)
        ]
        if missing:
            had = [name for name, seen in self.columns.items() if seen.share > 0.0]
            have = [name for name, counts in found.items() if any(counts.values())]
            raise ValueError(
                f"training had {_listed(had)}, and X has {_listed(have) or 'none of these'}; missing: "
                f"{_listed(missing)}{remedy}"
            )
        both = [(name, counts) for name, counts in found.items() if name in self.columns]
        strange = [name for name, counts in both if self._is_strange(name, counts, n_tokens)]
        for name, counts in both:
            self._warn_of_few(name, counts, n_tokens)
        for name in strange:
            warn(
                f"none of the values of {name!r} in X is among the frequent ones of training, which "
                f"{self.columns[name].known:.0%} of the tokens had: is {name!r} what it was there?",
                AdviceWarning,
            )

    def check_names(self, counts: Mapping[str, int], n_tokens: int) -> None:
        """Compare the named features of a prediction with those of training, as `check`.

        Parameters
        ----------
        counts : dict of str to int
            Tokens with each feature, whatever its value.
        n_tokens : int

        Warns
        -----
        AdviceWarning
            All tokens have a feature with values that the training tokens did not have; or as `check`.
        """
        # Without values, nothing is said of columns that so many tokens have.
        enough = MOST_LOST * n_tokens
        if self._has_values or any(counts.get(name, 0) < enough for name in self._usual):
            self.check({name: {name: count} for name, count in counts.items()}, n_tokens)
        more = [name for name in counts if name not in self.columns]
        more = [name for name in more if counts[name] == n_tokens and name.endswith((":", "="))]
        if more and len(self.columns) < MOST_COLUMNS:
            warn(f"X has {_listed(more)}, which training had not: left out", AdviceWarning)

    def are_as_usual(self, sequences: object) -> bool:
        """Whether the tokens that are looked at are dicts with all usual columns, and no others: `check_names` has
        nothing to say of them.
        """
        if self._has_values or type(sequences) is not list or not {list}.issuperset(map(type, sequences)):
            return False
        return are_usual(sequences, self._texts, self._others, self._known, _step(sequences))

    def _warn_of_few(self, name: str, counts: Mapping[Any, int], n_tokens: int) -> None:
        """Warn of a column that far fewer tokens have than in training."""
        share, had = sum(counts.values()) / max(n_tokens, 1), self.columns[name].share
        if 0.0 < share < MOST_LOST * had and _is_no_chance(share, had, n_tokens):
            warn(f"{share:.0%} of the tokens of X have {name!r:.40}, and {had:.0%} had it in training", AdviceWarning)

    def _is_strange(self, name: str, counts: Mapping[Any, int], n_tokens: int) -> bool:
        """Whether none of many values is a frequent one of training; ValueError if they are those of another column."""
        seen = self.columns[name]
        known = seen.known_among(counts) / max(n_tokens, 1)
        if known > FEW * seen.known or not _is_no_chance(known, seen.known, n_tokens):
            return False
        for other, its in self.columns.items():
            share = its.known_among(counts) / n_tokens
            if other != name and 2.0 * share > its.known and share > max(4.0 * known, LEAST_KNOWN):
                raise ValueError(
                    f"the values of {name!r} in X are those that {other!r} had in training ({share:.0%} of them are "
                    f"known as {other!r}, {known:.0%} as {name!r}): give what training had, in its order"
                )
        return known == 0.0 and bool(counts) and n_tokens >= LEAST_INPUTS

    def to_json(self) -> dict[str, Any]:
        return {name: [seen.share, seen.known, sorted(seen.values)] for name, seen in self.columns.items()}

    @classmethod
    def from_json(cls, value: Any) -> Self:
        """The inverse of `to_json`; ValueError for what it cannot have returned."""
        columns = {}
        if not isinstance(value, dict) or not all(isinstance(one, list) and len(one) == 3 for one in value.values()):
            raise ValueError(f"columns that were seen must be an object of lists of three, got {value!r:.80}")
        for name, (share, known, values) in value.items():
            is_one = all(type(part) is float and 0.0 <= part <= 1.0 for part in (share, known))
            if not is_one or not isinstance(values, list) or not all(type(one) in (str, int) for one in values):
                raise ValueError(f"column {name!r:.80} is not one that was seen: {[share, known, values]!r:.80}")
            columns[name] = SeenColumn(share, known, frozenset(values))
        return cls(columns)


def _is_no_chance(found: float, expected: float, n: int) -> bool:
    """Whether a share of n tokens, less than the one expected, is no chance (by Chernoff's bound)."""
    if expected >= 1.0:
        return n > 0 and found < 1.0
    distance = (1.0 - found) * math.log((1.0 - found) / (1.0 - expected)) if found < 1.0 else 0.0
    if found > 0.0:
        distance += found * math.log(found / expected) if expected > 0.0 else math.inf
    return -n * distance < CHANCE


def _listed(names: list[str]) -> str:
    shown = ", ".join(f"{name!r:.40}" for name in names[:MOST_NAMED])
    return shown + f" and {len(names) - MOST_NAMED} more" * (len(names) > MOST_NAMED)


# ---- tokens with named features -----------------------------------------------------------------

SAMPLED = 1000  # tokens that are looked at


def _step(sequences: Any) -> int:
    """The step from one token that is looked at to the next."""
    return -(-max(sum(map(len, sequences)), 1) // SAMPLED)


def sampled_names(sequences: Any) -> tuple[dict[str, int], int]:
    """Return ``(counts, n)``: how many of n tokens of sequences have each column; n is 0 where they are read once."""
    counts, names, n = dict[str, int](), dict[object, str](), 0
    if not isinstance(sequences, (list, tuple)) or not all(isinstance(one, (list, tuple)) for one in sequences):
        return counts, n
    step = _step(sequences)
    k = 0
    for sequence in sequences:
        for t in range(-k % step, len(sequence), step):
            count_columns(sequence[t], counts, names)
            n += 1
        k += len(sequence)
    return counts, n
