"""Ready rules about fields of a sequence: which occur, how often, in which order, how long.

A field is a label, of which each run of tokens is one occurrence; or, where labels have a scheme such as BIO, a type,
of which each chunk is one. With a label `since`, which separates the parts of a sequence, a rule holds in each part.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from numbers import Integral

from structsvm.structures.languages.automaton import Automaton
from structsvm.structures.languages.expressions import Expression, OneOf, Repeated, Then, automaton_of

__all__ = ["Rule", "at_least_one", "at_most_once", "before", "exactly_one", "in_order", "max_length", "one_run_each"]

Role = tuple[str, str]
NAMES = tuple(name for name in __all__ if name.islower())


@dataclass(frozen=True)
class Rule:
    """A ready rule: what `at_most_once` and the like return.

    Attributes
    ----------
    name : str
    fields : tuple of str
    since : str or None
        The label or type that separates the parts of a sequence in which the rule holds.
    most : int or None
        For "max_length": the most tokens.

    Examples
    --------
    >>> from structsvm.structures.languages import Rule
    >>> Rule("max_length", ("NAME",), most=2).automaton(["NAME", "O"], [None, None]).accepts([0, 0, 1])
    True
    """

    name: str
    fields: tuple[str, ...]
    since: str | None = None
    most: int | None = None

    def __post_init__(self) -> None:
        least, most = {"in_order": (2, None), "before": (2, 2), "max_length": (1, 1)}.get(self.name, (1, None))
        n = len(self.fields)
        for field in (*self.fields, *([] if self.since is None else [self.since])):
            if not isinstance(field, str):
                raise TypeError(
                    f"{self.name} takes the texts of labels, or types, got {field!r:.80} of type {type(field).__name__}"
                )
        if n < least or (most is not None and n > most):
            wanted = f"{least}" if most == least else f"{least} or more"
            raise ValueError(f"{self.name} needs {wanted} fields, got {n}")
        if self.name == "max_length":
            given: object = self.most
            if isinstance(given, bool) or not isinstance(given, Integral) or int(given) < 1:
                raise ValueError(f"max_length needs a whole number of tokens of at least 1, got {given!r}")
            object.__setattr__(self, "most", int(given))
        if len({*self.fields, self.since}) < n + 1:
            raise ValueError(f"{self}: a label is named twice")

    def __str__(self) -> str:
        more = [] if self.since is None else [f"since={_quoted(self.since)}"]
        more += [] if self.most is None else [str(self.most)]
        return f"{self.name}({', '.join([*map(_quoted, self.fields), *more])})"

    @property
    def is_text(self) -> bool:
        """Whether `rule_of` reads the rule's text as this rule: it does unless a label has both kinds of quotes."""
        try:
            return rule_of(str(self)) == self
        except ValueError:
            return False

    def each(self) -> list[Rule]:
        """The rule, or one per field where it speaks about each by itself."""
        if self.name in ("in_order", "before", "max_length"):
            return [self]
        return [Rule(self.name, (field,), self.since) for field in self.fields]

    def automaton(self, names: Sequence[str], roles: Sequence[Role | None]) -> Automaton:
        """The smallest automaton of the rule.

        Parameters
        ----------
        names : list of str
            The labels.
        roles : list
            The role and type of each label in its scheme; None for labels without one.

        Raises
        ------
        ValueError
            For a field that is neither a label nor a type.
        """
        every = frozenset(range(len(names)))
        since = frozenset[int]() if self.since is None else _field(self.since, names, roles, self)[0]
        fields = [_field(field, names, roles, self) for field in self.fields]
        part = _MAKERS[self.name](every - since, fields, self.most or 0)
        return automaton_of(Then((part, _some(Then((OneOf(since), part))))), len(names))


def at_most_once(*fields: str, since: str | None = None) -> Rule:
    """Return the rule "each field occurs at most once".

    Examples
    --------
    >>> from structsvm.structures.languages import at_most_once
    >>> print(at_most_once("street", "city", since="separator"))
    at_most_once(street, city, since=separator)
    """
    return Rule("at_most_once", fields, since)


def exactly_one(*fields: str, since: str | None = None) -> Rule:
    """Return the rule "each field occurs once".

    Examples
    --------
    >>> from structsvm.structures.languages import exactly_one
    >>> print(exactly_one("city"))
    exactly_one(city)
    """
    return Rule("exactly_one", fields, since)


def at_least_one(*fields: str, since: str | None = None) -> Rule:
    """Return the rule "each field occurs".

    Examples
    --------
    >>> from structsvm.structures.languages import at_least_one
    >>> print(at_least_one("street", "city"))
    at_least_one(street, city)
    """
    return Rule("at_least_one", fields, since)


def one_run_each(*fields: str, since: str | None = None) -> Rule:
    """Return the rule "all tokens of a field, which may be several chunks, stand together"; for each field.

    Examples
    --------
    >>> from structsvm.structures.languages import one_run_each
    >>> print(one_run_each("NAME"))
    one_run_each(NAME)
    """
    return Rule("one_run_each", fields, since)


def in_order(*fields: str, since: str | None = None) -> Rule:
    """Return the rule "no field stands behind a later one of the list".

    Examples
    --------
    >>> from structsvm.structures.languages import in_order
    >>> print(in_order("TITLE", "AUTHOR"))
    in_order(TITLE, AUTHOR)
    """
    return Rule("in_order", fields, since)


def before(first: str, then: str, since: str | None = None) -> Rule:
    """Return the rule "`then` stands only behind a `first`".

    Examples
    --------
    >>> from structsvm.structures.languages import before
    >>> print(before("B-NAME", "I-NAME", since="SEP"))
    before(B-NAME, I-NAME, since=SEP)
    """
    return Rule("before", (first, then), since)


def max_length(field: str, most: int) -> Rule:
    """Return the rule "no occurrence of the field has more than `most` tokens".

    Examples
    --------
    >>> from structsvm.structures.languages import max_length
    >>> print(max_length("NAME", 5))
    max_length(NAME, 5)
    """
    return Rule("max_length", (field,), most=most)


CALL = re.compile(rf"\s*({'|'.join(NAMES)})\s*\((.*)\)\s*", re.DOTALL)
ARGUMENT = re.compile(r"""\s*(?:(since)\s*=\s*)?(?:'([^']*)'|"([^"]*)"|([^\s,'"]+))\s*(,|$)""")


def rule_of(text: str, names: Sequence[str] = ()) -> Rule | None:
    """The rule that a text such as ``before(B-NAME, I-NAME, since=SEP)`` calls; None for other texts.

    Raises ValueError, with the position, for arguments that are none, and where a label has the name of the rule: the
    text could be an expression.
    """
    call = CALL.fullmatch(text)
    if call is None:
        return None
    name, inside = call.groups()
    if name in names:
        raise ValueError(
            f"the text {text!r:.200} may be the rule, to be given as structsvm.structures.languages.{name}(...), or an "
            f"expression, in which the label {name!r} stands in quotes"
        )
    arguments, since, at = list[str](), None, 0
    while at < len(inside):
        found = ARGUMENT.match(inside, at)
        if found is None:
            raise ValueError(
                f"the rule {text!r:.200}, at character {call.start(2) + at + 1}: expected labels and commas"
            )
        value = next(group for group in found.groups()[1:4] if group is not None)
        if found[1] and since is not None:
            raise ValueError(f"the rule {text!r:.200}: since= stands there twice")
        if found[1]:
            since = value
        else:
            arguments.append(value)
        at = found.end()
    most = None
    if name == "max_length":
        if len(arguments) != 2 or not arguments[1].isdecimal():
            raise ValueError(f"the rule {text!r:.200}: expected max_length(field, number of tokens)")
        most = int(arguments.pop())
    if since is not None and name == "max_length":
        raise ValueError(f"the rule {text!r:.200}: since= has no meaning for max_length(...)")
    return Rule(name, tuple(arguments), since, most)


# ---- expressions of rules -----------------------------------------------------------------------
# A field: its labels, and those with which an occurrence goes on.
Field = tuple[frozenset[int], frozenset[int]]


def _field(name: str, names: Sequence[str], roles: Sequence[Role | None], rule: Rule) -> Field:
    if name in names:
        one = frozenset([names.index(name)])
        return one, one
    own = {k: role[0] for k, role in enumerate(roles) if role is not None and role[0] != "O" and role[1] == name}
    if not own:
        raise ValueError(f"{rule}: {name!r} is none of the labels {', '.join(names):.300}, and no type of theirs")
    return frozenset(own), frozenset(k for k, role in own.items() if role not in ("B", "S"))


def _some(part: Expression) -> Expression:
    return Repeated(part)


def _occurrence(field: Field) -> Expression:
    return Then((OneOf(field[0]), _some(OneOf(field[1]))))


def _once(every: frozenset[int], field: Field, what: Expression, *, least: int) -> Expression:
    others = _some(OneOf(every - field[0]))
    return Then((others, Repeated(Then((what, others)), least, 1)))


def _in_order(every: frozenset[int], fields: Sequence[Field]) -> Expression:
    others = every.difference(*(field[0] for field in fields))
    return Then(tuple(_some(OneOf(others | field[0])) for field in fields))


def _before(every: frozenset[int], fields: Sequence[Field]) -> Expression:
    (first, _), (then, _) = fields
    return Then((_some(OneOf(every - first - then)), Repeated(Then((OneOf(first), _some(OneOf(every)))), 0, 1)))


def _short(every: frozenset[int], field: Field, most: int) -> Expression:
    """Runs of occurrences: the first begins with any label of the field, the others with one of a beginning."""
    rest = Repeated(OneOf(field[1]), 0, most - 1)
    run = Then((OneOf(field[0]), rest, _some(Then((OneOf(field[0] - field[1]), rest)))))
    others = OneOf(every - field[0])
    return Then((_some(others), _some(Then((run, Repeated(others, 1)))), Repeated(run, 0, 1)))


def _somewhere(every: frozenset[int], field: Field) -> Expression:
    return Then((_some(OneOf(every)), OneOf(field[0]), _some(OneOf(every))))


Maker = Callable[[frozenset[int], Sequence[Field], int], Expression]
_MAKERS: dict[str, Maker] = {
    "at_most_once": lambda every, fields, most: _once(every, fields[0], _occurrence(fields[0]), least=0),
    "exactly_one": lambda every, fields, most: _once(every, fields[0], _occurrence(fields[0]), least=1),
    "at_least_one": lambda every, fields, most: _somewhere(every, fields[0]),
    "one_run_each": lambda every, fields, most: _once(every, fields[0], Repeated(OneOf(fields[0][0]), 1), least=0),
    "in_order": lambda every, fields, most: _in_order(every, fields),
    "before": lambda every, fields, most: _before(every, fields),
    "max_length": lambda every, fields, most: _short(every, fields[0], most),
}


def _quoted(name: str) -> str:
    """A label as `rule_of` reads it, unless it has quotation marks of both kinds."""
    mark = '"' if "'" in name else "'"
    return name if re.fullmatch(r"[^\s,'\"()=]+", name) else f"{mark}{name}{mark}"
