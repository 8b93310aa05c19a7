"""Labellings that are allowed: schemes, rules, expressions and masks; and allowed labels per token."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from structsvm._warnings import AdviceWarning, warn
from structsvm.features.sources import load_text, numbered_lines
from structsvm.metrics._counts import AUTO, is_unknown, mark_for
from structsvm.metrics._schemes import BIOES, SCHEMES, TAGGED, Runs, Scheme, scheme_for, scheme_name, scheme_of
from structsvm.oracles.greedy import GreedyOracle
from structsvm.structures.languages import Automaton, Rule
from structsvm.structures.languages.automaton import TooLarge
from structsvm.structures.languages.expressions import automaton_of, parse
from structsvm.structures.languages.rules import CALL, rule_of
from structsvm.tasks.common.labels import is_hashable, sort_labels

if TYPE_CHECKING:
    from typing import TypeAlias

    from structsvm.features.tokens import Tokens
    from structsvm.oracles.chain import LabelChain
    from structsvm.oracles.viterbi import ViterbiOracle
    from structsvm.tasks.sequence.examples import AllowedLike, Masks

    # A scheme, rule or expression; masks (transitions, first, last); or several.
    OneConstraint: TypeAlias = str | Rule | Automaton | tuple[ArrayLike | None, ...]
    ConstraintsLike: TypeAlias = OneConstraint | list[OneConstraint] | None
    # The rules of a constraint, in words and as automata.
    Reader: TypeAlias = Callable[[Any], list[tuple[str, Automaton]]]


NO_MASKS = (None, None, None)


def is_scheme(constraints: ConstraintsLike) -> bool:
    """Whether constraints are the name of a labelling scheme."""
    return isinstance(constraints, str) and scheme_name(constraints) is not None


class Compiled(NamedTuple):
    """Labellings that are allowed, as oracles have them.

    Attributes
    ----------
    masks : tuple
        ``(transitions, first, last)``, None where all is allowed.
    language : Automaton or None
        In place of masks that do not say it.
    rules : tuple of Automaton
        Beside masks, where one automaton of all would be too large.
    """

    masks: Any
    language: Automaton | None = None
    rules: tuple[Automaton, ...] = ()


def compiled(constraints: ConstraintsLike, labels: Sequence[Any]) -> Compiled:
    """Constraints as masks; or their smallest automaton; or, if that is too large, masks and rules.

    Raises ValueError, naming the constraint, for one that is none, that names no label, or that no sequence meets.
    """
    if constraints is None:
        return Compiled(NO_MASKS)
    if isinstance(constraints, tuple):
        return Compiled(_masks(constraints))
    if is_scheme(constraints):
        return Compiled(constrained(str(constraints), labels).masks(labels))
    return together(languages(constraints, labels))


def _masks(constraints: tuple[Any, ...]) -> tuple[Any, ...]:
    if len(constraints) != 3:
        raise ValueError(f"constraints must hold three masks (transitions, first, last), got {len(constraints)}")
    return constraints


def constrained(constraints: str, labels: Iterable[Any]) -> Scheme:
    """The scheme that `constraints` names, in the form of the labels; see `scheme_for` for errors."""
    try:
        return scheme_for(labels, constraints)
    except (TypeError, ValueError) as error:
        raise type(error)(f"constraints={constraints!r}: {error}") from None


def scheme_among(constraints: ConstraintsLike) -> str | None:
    """The first scheme that constraints name."""
    parts = constraints if isinstance(constraints, list) else [constraints]
    return next((str(part) for part in parts if is_scheme(part)), None)


class TagNames(NamedTuple):
    """The names that users have for the tags of segments.

    Attributes
    ----------
    shown : list of str
        The name of each tag; several tags may have one.
    scheme : Scheme
        The scheme of the names.
    depend : bool
        Whether a tag's name depends on the segments beside its own, and these are but the usual ones.
    """

    shown: Sequence[str]
    scheme: Scheme
    depend: bool


def languages(
    constraints: ConstraintsLike, labels: Sequence[Any], tags: TagNames | None = None
) -> list[tuple[str, Automaton]]:
    """The rules of which constraints are the conjunction, in words and as automata.

    Where labels are tags of segments, these are the fields of rules, and expressions are about the users' labels.
    """
    parts = constraints if isinstance(constraints, list) else [constraints]
    if not parts:
        raise ValueError("constraints is an empty list: name a scheme, a rule or an expression; None is no constraint")
    read = _reader(constraints, labels) if tags is None else _reader_of_tags(labels, tags)
    found = []
    for part in parts:
        try:
            found += read(part)
        except ValueError as error:
            raise type(error)(f"constraints: {error}") from None
    for words, language in found:
        if not (language.following >= 0).any():
            raise ValueError(f"constraints: no sequence of the labels meets {words}")
    return found


def _reader(constraints: ConstraintsLike, labels: Sequence[Any]) -> Reader:
    """How the constraints of labels are read, by their scheme."""
    named = scheme_among(constraints)
    names = [str(label) for label in labels]
    # Labels of no scheme may stand beside those of one, as separators do.
    tagged = [name for name in names if TAGGED.fullmatch(name)]
    scheme = scheme_of([*tagged, "O"]) if named is None else constrained(named, labels)
    roles = [None if scheme is None or name not in {*tagged, "O"} else scheme.part(name) for name in names]
    if len(set(names)) < len(names):
        raise ValueError("constraints: two labels are the same text, so that expressions cannot name them")
    return lambda part: _languages_of(part, names, roles)


def _reader_of_tags(labels: Sequence[Any], tags: TagNames) -> Reader:
    """How the constraints of segments are read: their scheme is met by all of them."""
    own, names = list(map(str, labels)), list(dict.fromkeys(tags.shown))
    roles, at = list(map(BIOES.part, own)), [names.index(name) for name in tags.shown]
    is_run = isinstance(tags.scheme, Runs)
    kinds = {"O", None, *(part.kind for part in roles if part is not None)}

    def read(part: Any) -> list[tuple[str, Automaton]]:
        if is_scheme(part):
            constrained(part, names)
            return []
        rule = rule_of(part, names) if isinstance(part, str) else part
        # A run of a label is one occurrence, whatever its segments are.
        is_of_types = not is_run and isinstance(rule, Rule) and {*rule.fields, rule.since} <= kinds
        if is_of_types or isinstance(rule, Automaton | tuple):
            return _languages_of(rule, own, roles)
        if tags.depend:
            raise ValueError(
                f"labels of {str(tags.scheme).upper()} depend on the segments beside their own, so that constraints "
                f"of segments cannot name them: use rules about the types {', '.join(sorted(filter(None, kinds)))}"
            )
        found = _languages_of(part, names, [None if is_run else tags.scheme.part(name) for name in names])
        return [(words, Automaton(one.following[:, at], one.accepting).minimal()) for words, one in found]

    return read


def _languages_of(part: Any, names: Sequence[str], roles: Sequence[Any]) -> list[tuple[str, Automaton]]:
    """The rules of one constraint."""
    if isinstance(part, Automaton):
        if part.n_labels != len(names):
            raise ValueError(f"the automaton has {part.n_labels} labels, the model {len(names)}")
        return [("the automaton", part.minimal())]
    if isinstance(part, tuple):
        shapes = [(len(names),) * n for n in (2, 1, 1)]
        masks = [None if mask is None else np.asarray(mask) for mask in _masks(part)]
        for mask, shape in zip(masks, shapes, strict=True):
            if mask is not None and (mask.shape != shape or mask.dtype != bool):
                raise ValueError(f"a mask must be a bool array {shape}, got {mask.dtype} {mask.shape}")
        return [("the masks", Automaton.of_masks(masks[0], masks[1], masks[2], len(names)))]
    if is_scheme(part):
        allowed = constrained(part, names).masks(names)
        return [(f"the scheme {part!r}", Automaton.of_masks(*allowed, n_labels=len(names)))]
    rule = rule_of(part, names) if isinstance(part, str) else part
    if isinstance(rule, Rule):
        return [_named(f"the rule {one}", partial(one.automaton, names, roles)) for one in rule.each()]
    if not isinstance(part, str):
        raise ValueError(
            f"a constraint is a scheme, a rule, an expression, an Automaton or three masks, got {type(part).__name__}"
        )
    if part.isidentifier() and part not in names:
        raise ValueError(
            f"{part!r} is no scheme (there are {', '.join(SCHEMES)}, and other orders of their letters), and none of "
            f"the labels {', '.join(names):.300}"
        )
    return [_named(f"the expression {part!r:.200}", lambda: automaton_of(parse(part, names), len(names)))]


def _named(words: str, make: Callable[[], Automaton]) -> tuple[str, Automaton]:
    """A rule in words and as automaton, whose errors of size begin with the words."""
    try:
        return words, make()
    except TooLarge as error:
        raise TooLarge(f"{words}: {error}") from None


def together(rules: Sequence[tuple[str, Automaton]]) -> Compiled:
    """All rules at once. Raises ValueError if no sequence meets them."""
    local, others = [rule for rule in rules if rule[1].as_masks()], [rule for rule in rules if not rule[1].as_masks()]
    every = Automaton.of_masks(*NO_MASKS, n_labels=rules[0][1].n_labels)
    masks = language = _product(every, local)
    try:
        language = _product(language, sorted(others, key=lambda rule: rule[1].n_states))
    except TooLarge:
        return Compiled(masks.as_masks(), None, tuple(dict.fromkeys(one.minimal() for _, one in others)))
    found = language.as_masks()
    return Compiled(NO_MASKS, language) if found is None else Compiled(found)


def _product(language: Automaton, rules: Sequence[tuple[str, Automaton]]) -> Automaton:
    """The sequences of a language that meet rules."""
    for words, one in rules:
        language &= one
        if not (language.following >= 0).any():
            raise ValueError(f"constraints: no sequence of the labels meets {words} and the other rules")
    return language


def under(
    oracle: LabelChain, constraints: ConstraintsLike, labels: Sequence[Any], tags: TagNames | None = None
) -> LabelChain:
    """The same oracle under more constraints, which hold beside its own."""
    rules = languages(constraints, labels, tags)
    own = [Automaton.of_masks(*oracle.allowed, n_labels=len(labels)), *oracle.rules]
    rules += [("the model's constraints", one) for one in (own if oracle.language is None else [oracle.language])]
    found = together(rules)
    if isinstance(oracle, GreedyOracle) and (found.language is not None or found.rules):
        raise ValueError(
            "constraints: a model with inference='greedy' takes those that speak of neighbouring labels alone, and "
            "these need an automaton"
        )
    return oracle.within(*found)


def warn_of_relaxed(relaxed: NDArray[np.bool_], lengths: NDArray[np.int64], oracle: ViterbiOracle) -> None:
    """Say which sequences training has compared with labellings that break rules."""
    i = int(relaxed.argmax())
    warn(
        f"labellings of {relaxed.sum()} of {len(relaxed)} sequences (the first: sequence {i}, of length {lengths[i]}) "
        f"break so many of the {len(oracle.rules)} rules of the constraints in turn that no automaton holds them: "
        f"training has compared these sequences with labellings that keep the first {oracle.n_joint_rules} rules "
        "alone, and the gap is that of this relaxed problem. Predictions keep all rules",
        AdviceWarning,
    )


def stored_constraints(constraints: ConstraintsLike, labels: Sequence[Any]) -> Any:
    """Constraints in the parameters of a file: texts; ["masks"] for what is stored with the oracle alone."""
    if constraints is None or isinstance(constraints, str):
        return constraints
    parts = constraints if isinstance(constraints, list) else [constraints]
    names = set(map(str, labels))  # the text of a rule that is called as a label is could mean an expression
    texts = [str(p) for p in parts if isinstance(p, str) or (isinstance(p, Rule) and p.is_text and p.name not in names)]
    if len(texts) < len(parts):
        return ["masks"]
    return texts if isinstance(constraints, list) else texts[0]


def broken_rule(
    constraints: ConstraintsLike, labels: Sequence[Any], label_ids: NDArray[np.int32], tags: TagNames | None = None
) -> str:
    """The words of the rule that a labelling breaks first."""
    bounds, rules = np.array([0, len(label_ids)]), languages(constraints, labels, tags)
    broken = [(place, words) for words, one in rules if (place := one.broken_at(bounds, label_ids))]
    return min(broken, key=lambda pair: pair[0])[1]


def read_constraints(path: str) -> list[str]:
    """The constraints of a file: one per line, but for blank lines and those that begin with #."""
    return [line for _, line in numbered_constraints(path)]


def numbered_constraints(path: str) -> list[tuple[int, str]]:
    """The same, each with the number of its line."""
    text, _ = load_text(path, ValueError)
    lines = [(k, line.strip()) for k, line in numbered_lines(text.replace("\r\n", "\n").replace("\r", "\n"))]
    found = [(k, line) for k, line in lines if line and line[0] != "#"]
    if not found:
        raise ValueError(f"{path}: has no constraint; each stands on a line of its own")
    return found


def repair(
    scheme: ConstraintsLike,
    labels: Sequence[Hashable],
    label_ids: NDArray[np.int32],
    offsets: NDArray[np.int64],
    *,
    is_open: bool,
) -> tuple[Sequence[Hashable], NDArray[np.int32]]:
    """Return ``(labels, label_ids)`` with the sequences that break a scheme repaired, and the labels that this needs.

    ValueError for masks, and for new labels unless the set of labels is open.
    """
    if scheme is None:
        return labels, label_ids
    if not is_scheme(scheme):
        raise ValueError(
            "broken='repair' needs constraints='bio' or another scheme: masks, rules and expressions do not say what "
            "is meant"
        )
    transitions, first, last = constrained(str(scheme), labels).masks(labels)
    named = constrained(str(scheme), labels)
    bounds = np.unique(offsets)
    wrong = np.zeros(len(label_ids), dtype=bool)
    wrong[1:] = ~transitions[label_ids[:-1], label_ids[1:]]
    wrong[bounds[:-1]] = ~first[label_ids[bounds[:-1]]]
    wrong[bounds[1:] - 1] |= ~last[label_ids[bounds[1:] - 1]]
    names = np.array(labels, dtype=object)[label_ids]
    for k in np.unique(np.searchsorted(bounds, np.flatnonzero(wrong), side="right")):
        part = slice(bounds[k - 1], bounds[k])
        names[part] = named.repaired(names[part].tolist())
    new = sorted(set(names.tolist()) - set(labels))
    if new and not is_open:
        raise ValueError(f"broken='repair' makes the label {new[0]!r}, which is not one of the labels {list(labels)}")
    labels = sort_labels([*labels, *new]) if new else labels
    id_of = {label: k for k, label in enumerate(labels)}
    return labels, np.array([id_of[name] for name in names], dtype=np.int32)


def allowed_masks(allowed: AllowedLike | None, labels: Sequence[Hashable], unknown: object = AUTO) -> Masks | None:
    """Boolean arrays (length, n_labels) of partly known labels; None for a sequence about which nothing is known.

    Parameters
    ----------
    allowed : list or None
        Per sequence None, or a list with, per token, None, a label, or a collection of the labels that it may have.
    labels : list
        The model's labels.
    unknown : object
        The mark that stands for None (`is_unknown`).
    """
    if allowed is None:
        return None
    id_of = {label: k for k, label in enumerate(labels)}
    unknown = mark_for(unknown, labels)
    masks: list[NDArray[np.bool_] | None] = []
    for i, sequence in enumerate(allowed):
        if sequence is None:
            masks.append(None)
            continue
        mask = np.ones((len(sequence), len(id_of)), dtype=bool)
        for t, some in enumerate(sequence):
            if not is_unknown(some, unknown):
                mask[t] = False
                mask[t, _ids_of(some, id_of, f"sequence {i}, token {t}")] = True
        masks.append(mask)
    return masks


def _ids_of(some: Any, id_of: Mapping[Hashable, int], where: str) -> list[int]:
    """The ids of the labels `some`, which is one of them or a collection."""
    if is_hashable(some) and (some in id_of or not hasattr(some, "__iter__") or isinstance(some, str)):
        some = [some]
    some = list(some)
    unknown = [label for label in some if label not in id_of]
    if unknown:
        raise ValueError(f"{where}: {unknown[0]!r} is not one of the labels {list(id_of)}")
    if not some:
        raise ValueError(f"{where}: no label is allowed; None allows all")
    return [id_of[label] for label in some]


def check_allowed(allowed: Masks | None, tokens: Tokens) -> None:
    """Raise ValueError, naming the sequence, unless masks fit the sequences."""
    if allowed is None:
        return
    if len(allowed) != len(tokens):
        raise ValueError(f"X has {len(tokens)} sequences, allowed has {len(allowed)}")
    for i, (mask, length) in enumerate(zip(allowed, tokens.lengths)):
        if mask is not None and len(mask) != length:
            raise ValueError(f"sequence {i} has {length} tokens, but allowed has {len(mask)} for it")


def restored_constraint(text: str, labels: Sequence[Any]) -> str | Rule:
    """A constraint of a file: one that is called as a label is was stored as a rule, before such texts were refused."""
    call = CALL.fullmatch(text)
    rule = None if call is None or call[1] not in map(str, labels) else rule_of(text)
    return text if rule is None else rule
