"""Labels that name chunks: the schemes, how they are recognised, and the chunks that labels make.

A label is a tag and the type of its chunk, ``B-NP``; or ``NP-B``, ``B_NP``, ``NP_B``; or a tag alone. The tags of all
schemes have four roles: a chunk's first token (B), one inside (I, or M), its last (E, or L), its only one (S, U or W);
``O`` is outside. Chunks are read alike in all schemes, also where labels break them: a chunk begins at B and S, after E
and S, and wherever none of its type is open. On tags B, I and O this is conlleval's rule, on others seqeval's.

Labels have a scheme if all but ``O`` are of one form with the tags of one scheme. Two exceptions are no scheme, unless
it is named: one tag alone without types (a part of speech "B"), and types that are numbers of which none has two tags
(the road "I-95").
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from sys import intern
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class Rules(NamedTuple):
    """A scheme's tags, and the roles that depend on a neighbour.

    Attributes
    ----------
    tags : str
        In the order of `roles`.
    roles : str
    inside : str
        Roles that follow B or I of the same type only.
    unfinished : str
        Roles that are followed by I or E of the same type only.
    """

    tags: str
    roles: str
    inside: str = ""
    unfinished: str = ""


SCHEMES = {
    "bio": Rules("BI", "BI", "I"),
    "bioes": Rules("BIES", "BIES", "IE", "BI"),
    "bilou": Rules("BILU", "BIES", "IE", "BI"),
    "bmes": Rules("BMES", "BIES", "IE", "BI"),
    "bmewo": Rules("BMEW", "BIES", "IE", "BI"),
    "iob1": Rules("BI", "BI", "B"),
    "ioe1": Rules("IE", "IE", "", "E"),
    "ioe2": Rules("IE", "IE", "", "I"),
    "io": Rules("I", "I"),
}
# Labels that have the form of a scheme's.
TAGGED = re.compile("[BIESLUMW][-_].+|.+[-_][BIESLUMW]|[BIESLUMW]")
# A tag and a type, or the reverse, however they are written: ``b-per``, ``B:PER``, ``PER/B``.
ALMOST = re.compile(r"(?P<tag>[BIESLUMWbieslumw])[\W_](?P<kind>.+)|(?P<type>.+)[\W_](?P<last>[BIESLUMW])")
# Tags of one type that names of other things hardly have: "hepatitis B" and "hepatitis E" are no chunks.
TOGETHER = tuple(map(frozenset, ("BI", "BME", "BES", "BLU")))
# Labels that others write for O, or for tokens whose label is not known, in lower case and without brackets.
OTHERS = frozenset(
    {"", "o", "0", "_", "-", "x", "other", "out", "outside", "none", "null"}
    | {"pad", "padding", "cls", "sep", "start", "end", "unk", "unknown"}
)
# In the order in which labels are tried.
READ = ("bio", "ioe2", "bioes", "bilou", "bmes", "bmewo")
_BY_LETTERS = {frozenset(name) | {"o"}: name for name in ("bio", "bioes", "bilou", "bmes", "bmewo", "io")}
_NUMBERED = {("bio", "1"): "iob1", ("bio", "2"): "bio", ("ioe", "1"): "ioe1", ("ioe", "2"): "ioe2", ("ioe", ""): "ioe2"}


def scheme_name(name: str) -> str | None:
    """The name in `SCHEMES` of a scheme by any of the names that it has; None for others.

    The letters of the tags stand in any order and case, O or not: IOB2, IOBES, BILUO, BIOUL, BMEOS, BMEWO+.
    """
    letters = name.lower().rstrip("+")
    digit = letters[-1:] if letters[-1:] in ("1", "2") else ""
    letters = letters.removesuffix(digit)
    if len(set(letters)) < len(letters):
        return None
    found = "ioe" if set(letters) == set("ioe") else _BY_LETTERS.get(frozenset(letters) | {"o"})
    return _NUMBERED.get((found or "", digit), None if digit else found)


class Part(NamedTuple):
    """A label's role, "O" outside of chunks, and the type of its chunk."""

    role: str
    kind: str


OUTSIDE = Part("O", "")


@dataclass(frozen=True)
class Scheme:
    """A scheme, and the form of its labels.

    Attributes
    ----------
    name : str
        One of `SCHEMES`.
    separator : {"-", "_"}
    is_suffix : bool
        Whether the tag stands behind the type.

    Examples
    --------
    >>> from structsvm.metrics import scheme_of
    >>> scheme = scheme_of(["U_PER", "B_LOC", "L_LOC", "O"])
    >>> print(scheme)
    bilou B_X
    >>> scheme.chunks(["U_PER", "O", "B_LOC", "L_LOC"])
    [(0, 1, 'PER'), (2, 4, 'LOC')]
    """

    name: str = "bio"
    separator: str = "-"
    is_suffix: bool = False

    @property
    def rules(self) -> Rules:
        """The rules of the scheme."""
        return SCHEMES[self.name]

    def part(self, label: object) -> Part | None:
        """The role and the type of a label; None if it is none of the scheme."""
        if not isinstance(label, str) or not label or label != label.strip():
            return None
        found = _split(label, self.separator, is_suffix=self.is_suffix)
        if found is None:
            return None
        tag, kind = found
        if tag == "O":
            return OUTSIDE
        at = self.rules.tags.find(tag)
        return None if at < 0 else Part(self.rules.roles[at], kind)

    def label(self, role: str, kind: str) -> str:
        """The label of a role and a type; one object for all tokens that have it."""
        if role == "O":
            return "O"
        tag = self.rules.tags[self.rules.roles.index(role)]
        if not kind:
            return tag
        return intern(self.separator.join((kind, tag) if self.is_suffix else (tag, kind)))

    def outside(self, labels: Iterable[object]) -> list[object]:
        """The labels that are none of the scheme."""
        return [label for label in labels if self.part(label) is None]

    def chunks(self, labels: Iterable[object]) -> list[tuple[int, int, str]]:
        """Chunks ``(start, stop, type)`` of the labels of a sequence; labels of no scheme are outside."""
        return list(chunks_of(self.part(label) or OUTSIDE for label in labels))

    def allows(self, before: Part, here: Part) -> bool:
        """Whether a label may follow another one; `OUTSIDE` stands for either end of a sequence."""
        is_one_type = before.kind == here.kind
        if here.role in self.rules.inside and not (is_one_type and before.role in ("B", "I")):
            return False
        return before.role not in self.rules.unfinished or (is_one_type and here.role in ("I", "E"))

    def masks(self, labels: Iterable[object]) -> tuple[NDArray[np.bool_], NDArray[np.bool_], NDArray[np.bool_]]:
        """Return which labels may follow which (row, column), which may be first, and which last."""
        parts = [self.part(label) or OUTSIDE for label in labels]
        transitions = np.array([[self.allows(a, b) for b in parts] for a in parts])
        first = np.array([self.allows(OUTSIDE, b) for b in parts])
        last = np.array([self.allows(a, OUTSIDE) for a in parts])
        return transitions, first, last

    def labels(self, chunks: Sequence[tuple[int, int, str]], length: int) -> list[str]:
        """The labels of a sequence's chunks, which ascend."""
        found = ["O"] * length
        for k, (start, stop, kind) in enumerate(chunks):
            is_after = k > 0 and chunks[k - 1][1:] == (start, kind)
            is_before = k + 1 < len(chunks) and chunks[k + 1][::2] == (stop, kind)
            roles = self._roles(stop - start, is_after=is_after, is_before=is_before)
            found[start:stop] = [self.label(role, kind) for role in roles]
        return found

    def repaired(self, labels: Sequence[object]) -> list[str]:
        """The labels of the scheme for the chunks that are read in labels."""
        return self.labels(self.chunks(labels), len(labels))

    def _roles(self, n: int, *, is_after: bool, is_before: bool) -> str:
        """The roles of a chunk's tokens, by whether it touches one of its type before and after it."""
        roles = self.rules.roles
        if "S" in roles:
            return "S" if n == 1 else f"B{'I' * (n - 2)}E"
        if "E" in roles:
            return "I" * (n - 1) + ("E" if self.name == "ioe2" or is_before else "I")
        return ("B" if self.name == "bio" or (self.name == "iob1" and is_after) else "I") + "I" * (n - 1)

    def __str__(self) -> str:
        shown = self.separator.join(("X", "B") if self.is_suffix else ("B", "X"))
        return self.name if shown == "B-X" else f"{self.name} {shown}"


@dataclass(frozen=True)
class Runs(Scheme):
    """Labels without tags, of which each run of one label is a chunk; all but ``O`` are types.

    Examples
    --------
    >>> from structsvm.metrics._schemes import Runs
    >>> Runs().chunks(["street", "street", "O", "city"])
    [(0, 2, 'street'), (3, 4, 'city')]
    """

    name: str = "io"

    def part(self, label: object) -> Part | None:
        if not isinstance(label, str) or not label:
            return None
        return OUTSIDE if label == "O" else Part("I", label)

    def label(self, role: str, kind: str) -> str:
        return "O" if role == "O" else kind

    def __str__(self) -> str:
        return "runs"


def name_no_tags(labels: Iterable[object]) -> bool:
    """Whether none of some labels, which are texts, is O with a type, or a tag of any scheme with or without one."""
    every = [Scheme(name, separator, is_suffix) for (is_suffix, separator), name in product(FORMS, READ)]
    return all(
        isinstance(label, str) and bool(label) and all(scheme.part(label) is None for scheme in every)
        for label in labels
        if label != "O"
    )


# ``(is_suffix, separator)``, in the order in which they are tried.
FORMS = tuple(product((False, True), "-_"))
BIO, BIOES = Scheme("bio"), Scheme("bioes")


def _split(label: str, separator: str, *, is_suffix: bool) -> tuple[str, str] | None:
    """Tag and type of a label of a form; None if it is of another one."""
    tag, rest = (label[-1:], label[:-1]) if is_suffix else (label[:1], label[1:])
    if not rest:
        return tag, ""
    if (rest[-1] if is_suffix else rest[0]) != separator:
        return None
    return tag, rest[:-1] if is_suffix else rest[1:]


def chunks_of(parts: Iterable[Part]) -> Iterator[tuple[int, int, str]]:
    """Chunks ``(start, stop, type)`` of a sequence's labels, read as the head of this file says."""
    start, before, t = 0, OUTSIDE, -1
    for t, here in enumerate(parts):
        goes_on = before.role in ("B", "I") and here.role in ("I", "E") and here.kind == before.kind
        if before.role != "O" and not goes_on:
            yield start, t, before.kind
        if not goes_on:
            start = t
        before = here
    if before.role != "O":
        yield start, t + 1, before.kind


def scheme_of(labels: Iterable[object]) -> Scheme | None:
    """The scheme of all labels of some data, read off them; None if they have none. Labels that are all O are BIO.

    Examples
    --------
    >>> from structsvm.metrics import scheme_of
    >>> print(scheme_of(["PER-B", "PER-I", "O"]), scheme_of(["NN", "VB"]))
    bio X-B None
    """
    distinct = set(labels)
    for (is_suffix, separator), name in product(FORMS, READ):
        scheme = Scheme(name, separator, is_suffix)
        if not scheme.outside(distinct):
            return scheme if _names_chunks(distinct, scheme) else None
    return None


def _names_chunks(labels: Iterable[object], scheme: Scheme) -> bool:
    """Whether labels that fit a scheme are meant as one; see the head of this file."""
    roles = defaultdict(set)
    for label in labels:
        part = scheme.part(label)
        if part is not None and part.role != "O":
            roles[part.kind].add(part.role)
    is_doubtful = bool(roles) and all(kind == "" or kind.isdigit() for kind in roles)
    return not is_doubtful or any(len(of_kind) > 1 for of_kind in roles.values())


def scheme_for(labels: Iterable[object], name: str | Scheme | None = None) -> Scheme:
    """The scheme of labels, by its name or read off them.

    Raises
    ------
    ValueError
        For an unknown name, labels outside of the scheme, and labels without one; the message names the label.
    TypeError
        A label is not a string.
    """
    labels = list(dict.fromkeys(labels))
    for label in labels:
        if not isinstance(label, str):
            raise TypeError(
                f"chunks need labels that are strings, such as 'B-NP', 'I-NP' or 'O'. Got {label!r:.80} of type "
                f"{type(label).__name__}. Numbers of a list of names (Hugging Face: names = "
                "features['ner_tags'].feature.names) become labels by y = [[names[k] for k in labels] for labels in y]"
            )
    if name is None:
        found = scheme_of(labels)
        if found is None:
            raise ValueError(f"{why_none(labels)}. Name the scheme (scheme='bio', say), or score tokens")
        return found
    if isinstance(name, str) and scheme_name(name) is None:
        raise ValueError(f"no scheme {name!r:.80}; there are {', '.join(SCHEMES)}, and other orders of their letters")
    candidates = [name] if isinstance(name, Scheme) else [Scheme(scheme_name(name) or "", s, a) for a, s in FORMS]
    scheme = min(candidates, key=lambda one: len(one.outside(labels)))
    outside = scheme.outside(labels)
    if outside:
        own = scheme_of(labels)
        hint = "" if own is None else f"; the labels are {own.name.upper()}"
        raise ValueError(
            f"the label {outside[0]!r:.80} is none of the scheme {scheme.name.upper()}, whose tags are "
            f"{', '.join(scheme.rules.tags)} and O, with a type as in 'B-PER', 'B_PER' or 'PER-B'{hint}"
        )
    return scheme


def why_none(labels: Iterable[object]) -> str:
    """The reason why labels have no scheme, which names one of them."""
    label, fitting = odd_one(labels)
    reason = f"{label!r:.80} has no tag of one, or of another one than the rest"
    if fitting is not None:
        reason = f"{label!r:.80} could be one of {fitting.name.upper()}, but no type has a second tag"
    return f"the labels have no scheme of chunks (tags as in BIO, BIOES, BILOU or BMES): {reason}"


def doubt_of_tags(labels: Iterable[object]) -> str | None:
    """Why labels that look like tags of chunks have no scheme; None if they have one, or look like others.

    They look so if all do but those of `OTHERS` and one more, and chunks of some type begin and go on.

    Examples
    --------
    >>> from structsvm.metrics._schemes import doubt_of_tags
    >>> doubt_of_tags(["b-PER", "i-PER", "O"])
    "labels such as 'b-PER' look like tags of chunks: write 'B-PER'"
    >>> doubt_of_tags(["B-PER", "I-PER", "O"]), doubt_of_tags(["street", "city"])
    (None, None)
    """
    named = sorted({label for label in labels if isinstance(label, str)} - {"O"})
    if scheme_of([*named, "O"]) is not None:
        return None
    found = [(text, match) for text in named if (match := ALMOST.fullmatch(text))]
    parts = {text: ((m["tag"] or m["last"]).upper(), (m["kind"] or m["type"]).strip()) for text, m in found}
    tags = defaultdict(set)
    for tag, kind in parts.values():
        tags[kind].add(tag)
    others = [text for text in named if text not in parts]
    strange = [text for text in others if text.strip("<>[]{}").casefold() not in OTHERS]
    if len(strange) > 1 or not any(own >= some for own in tags.values() for some in TOGETHER):
        return None
    if others and scheme_of([*parts, "O"]) is not None:
        other = (strange or others)[0]
        return (
            f"labels such as {other!r:.80} stand among tags of chunks: write O for tokens outside of chunks; for "
            f"tokens whose label is not known say unknown={other!r:.80} (--unknown)"
        )
    odd = next((text for text, part in parts.items() if text != "-".join(part)), None)
    if odd is None:
        used = ", ".join(sorted(set().union(*tags.values())))
        return f"labels have the tags {used}, which are those of no one scheme, such as BIOES or BILOU"
    return f"labels such as {odd!r:.80} look like tags of chunks: write {'-'.join(parts[odd])!r:.80}"


def odd_one(labels: Iterable[object]) -> tuple[str, Scheme | None]:
    """The label because of which labels have no scheme, and the scheme that all would fit, if there is one."""
    named = sorted({str(label) for label in labels} - {"O"})
    every = [Scheme(name, separator, is_suffix) for (is_suffix, separator), name in product(FORMS, READ)]
    alien = (label for label in named if all(scheme.part(label) is None for scheme in every))
    return next(alien, named[0]), next((scheme for scheme in every if not scheme.outside(named)), None)
