"""Questions to a map: keys and values, names and areas, counts, negation and conjunction, in three languages.

A question asks for places of a class (``cafe``), with properties (``greek`` food) or without one, perhaps of one name,
in an area or around another place. Names are drawn from thousands and seldom twice; a value has one or two phrases,
and some phrases say two terms at once (``pizzerias``).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from structsvm.datasets._draws import SHARE, RandomState, draw, pick, zipf
from structsvm.datasets.worlds._house import LEVEL
from structsvm.parameters import COUNT, Options, check_arguments

# Classes: a term, key and value, and its plurals.
CLASSES = {
    ("amenity", "cafe"): ("cafes", "coffee places"),
    ("amenity", "restaurant"): ("restaurants", "places to eat"),
    ("amenity", "fast_food"): ("fast food places", "snack bars"),
    ("amenity", "pub"): ("pubs", "inns"),
    ("amenity", "bank"): ("banks",),
    ("amenity", "school"): ("schools",),
    ("amenity", "pharmacy"): ("pharmacies", "chemists"),
    ("amenity", "place_of_worship"): ("places of worship", "houses of prayer"),
    ("amenity", "parking"): ("car parks", "parking lots"),
    ("shop", "bakery"): ("bakeries", "bakers"),
    ("shop", "butcher"): ("butchers",),
    ("shop", "books"): ("bookshops", "book stores"),
    ("shop", "bicycle"): ("bike shops", "bicycle dealers"),
    ("shop", "clothes"): ("clothes shops", "fashion stores"),
    ("tourism", "hotel"): ("hotels", "places to sleep"),
    ("tourism", "museum"): ("museums",),
    ("tourism", "camp_site"): ("camp sites", "campgrounds"),
    ("leisure", "park"): ("parks", "public gardens"),
    ("leisure", "playground"): ("playgrounds",),
    ("historic", "castle"): ("castles", "fortresses"),
    ("natural", "peak"): ("peaks", "summits"),
}
# Phrases of two terms at once.
TWO_TERMS = {
    "pizzerias": (("amenity", "restaurant"), ("cuisine", "pizza")),
    "mosques": (("amenity", "place_of_worship"), ("religion", "muslim")),
    "synagogues": (("amenity", "place_of_worship"), ("religion", "jewish")),
    "kebab stands": (("amenity", "fast_food"), ("cuisine", "kebab")),
}
# Properties: before the class, or after it ("{}": what stands before).
BEFORE = {
    ("cuisine", "greek"): ("greek",),
    ("cuisine", "italian"): ("italian",),
    ("cuisine", "chinese"): ("chinese",),
    ("access", "private"): ("private", "closed"),
    ("fee", "yes"): ("paid",),
    ("fee", "no"): ("free",),
}
AFTER = {
    ("wheelchair", "yes"): ("with wheelchair access", "usable in a wheelchair"),
    ("internet_access", "wlan"): ("with wifi",),
    ("smoking", "no"): ("without smoke",),
    ("outdoor_seating", "yes"): ("with seats outside", "with a terrace"),
    ("dogs", "yes"): ("that welcome dogs",),
}
NAMED = ("called", "named", "by the name of")
FIRST = ("Upper", "Lower", "Old", "New", "East", "West", "Saint", "Great", "Little", "High")
ONSETS = ("b", "br", "d", "f", "g", "gr", "h", "k", "l", "m", "n", "p", "r", "s", "st", "t", "w")
ENDS = ("ham", "ton", "ville", "berg", "field", "mouth", "dale", "ford", "wick", "stead", "by", "hurst")

# Kinds of answers: the word in meanings, and beginnings of the question.
ASKED = {
    "latlong": ("where are", "show me", "find"),
    "count": ("how many", "count the", "what is the number of"),
    "least": ("are there any", "do you know any"),
    "website": ("what are the websites of", "give me the homepages of"),
}

Term = tuple[str, str]


@dataclass
class Question:
    """A question's parts: terms that hold, a term that does not, a name, and an area or a place nearby."""

    asked: str
    terms: list[Term]
    without: Term | None = None
    name: str | None = None
    area: str | None = None
    near: str | None = None
    words: list[str] = field(default_factory=list)


def in_terms(q: Question) -> str:
    """Terms of a key and a value, all quoted: ``query(area(keyval('name','Paris')),nwr(...),qtype(latlong))``."""

    def term(key: str, value: str) -> str:
        return f"keyval('{key}','{value}')"

    terms = [term(*pair) for pair in q.terms] + ([term("name", q.name)] if q.name else [])
    terms += [f"not({term(*q.without)})"] if q.without else []
    found = f"nwr({','.join(terms)})"
    if q.area:
        return f"query(area({term('name', q.area)}),{found},qtype({q.asked}))"
    if q.near:
        return f"query(around(center({term('name', q.near)}),search({found})),qtype({q.asked}))"
    return f"query({found},qtype({q.asked}))"


def in_funql(q: Question) -> str:
    """Relations around what they restrict: ``count(in(cuisine(amenity(all,cafe),greek),areaid('Paris')))``."""
    found = "all"
    for key, value in q.terms:
        found = f"{key}({found},{value})"
    if q.name:
        found = f"called({found},nameid('{q.name}'))"
    if q.without:
        found = f"exclude({found},{q.without[0]}(all,{q.without[1]}))"
    if q.area:
        found = f"in({found},areaid('{q.area}'))"
    if q.near:
        found = f"near({found},placeid('{q.near}'))"
    return f"{q.asked}({found})"


def in_lambda(q: Question) -> str:
    """Conditions on a variable: ``lambda(A,and(is(A,cafe),has(A,cuisine,greek),in(A,'Paris'),ask(A,count)))``."""
    (_, kind), *others = q.terms
    conditions = [f"is(A,{kind})", *(f"has(A,{key},{value})" for key, value in others)]
    conditions += [f"called(A,'{q.name}')"] if q.name else []
    conditions += [f"not(has(A,{q.without[0]},{q.without[1]}))"] if q.without else []
    conditions += [f"in(A,'{q.area}')"] if q.area else []
    conditions += [f"near(A,'{q.near}')"] if q.near else []
    return f"lambda(A,and({','.join(conditions)},ask(A,{q.asked})))"


LANGUAGES: dict[str, Callable[[Question], str]] = {"terms": in_terms, "funql": in_funql, "lambda": in_lambda}
LANGUAGE = Options(*LANGUAGES)


@dataclass(frozen=True, repr=False)
class MapQueries:
    """Questions to a map with their meanings.

    Attributes
    ----------
    X_train, X_test : list of str
        Questions, their words separated by blanks; names with capitals.
    y_train, y_test : list of (list of str)
        The one meaning of each.
    bags : list of (list of str)
        Candidate meanings of the training questions.

    Examples
    --------
    >>> from structsvm.datasets import make_queries
    >>> len(make_queries(10, 5, random_state=0).X_test)
    5
    """

    X_train: list[str]
    y_train: list[list[str]]
    X_test: list[str]
    y_test: list[list[str]]
    bags: list[list[str]]

    def __repr__(self) -> str:
        return f"MapQueries(n_train={len(self.X_train)}, n_test={len(self.X_test)})"


def draw_name(rng: np.random.Generator) -> str:
    """Draw one of some 10,000 names of one or two words."""
    stem = "".join(pick(rng, ONSETS) + pick(rng, "aeiou") for _ in range(1 + int(rng.integers(2))))
    name = f"{stem}{pick(rng, ENDS)}".capitalize()
    return f"{pick(rng, FIRST)} {name}" if rng.random() < 0.4 else name


def draw_question(rng: np.random.Generator, name: Callable[[], str]) -> Question:
    """Draw a question whose names are those that `name` returns."""
    asked = pick(rng, tuple(ASKED))
    if rng.random() < 0.1:
        phrase = pick(rng, tuple(TWO_TERMS))
        q, words = Question(asked, [*TWO_TERMS[phrase]]), [phrase]
    else:
        term = tuple(CLASSES)[draw(rng, zipf(len(CLASSES)))]
        q, words = Question(asked, [term]), [pick(rng, CLASSES[term])]
        if rng.random() < 0.3:
            q.terms.append(pick(rng, tuple(BEFORE)))
            words.insert(0, pick(rng, BEFORE[q.terms[-1]]))
    if rng.random() < 0.25:
        q.terms.append(pick(rng, tuple(AFTER)))
        words.append(pick(rng, AFTER[q.terms[-1]]))
    elif rng.random() < 0.15:
        q.without = pick(rng, tuple(BEFORE))
        words += [pick(rng, ("that are not", "but not")), pick(rng, BEFORE[q.without])]
    if rng.random() < 0.15:
        q.name = name()
        words += [pick(rng, NAMED), q.name]
    place = rng.random()
    if place < 0.6:
        q.area = name()
        words += [pick(rng, ("in", "within", "in the city of")), q.area]
    elif place < 0.8:
        q.near = name()
        words += [pick(rng, ("near", "close to", "around")), q.near]
    q.words = [pick(rng, ASKED[asked]), *words, "?"]
    return q


def make_queries(
    n_train: int = 1000,
    n_test: int = 300,
    *,
    language: str = "terms",
    unseen: float = 0.5,
    names: int | None = None,
    level: int = 0,
    random_state: RandomState = None,
) -> MapQueries:
    """Draw questions to a map with their meanings, whose names are mostly seen once.

    Parameters
    ----------
    n_train, n_test : int
        Number of questions, at least 1.
    language : {"terms", "funql", "lambda"}, default="terms"
        ``query(area(keyval('name','Paris')),nwr(keyval('amenity','cafe')),qtype(count))``,
        ``count(in(amenity(all,cafe),areaid('Paris')))`` or ``lambda(A,and(is(A,cafe),in(A,'Paris'),ask(A,count)))``.
    unseen : float, default=0.5
        Share of the names in test questions that are in no training question, in expectation.
    names : int, optional
        Number of names that training questions are drawn from, at least 1: the k-th as often as 1/k. By default each
        name is drawn anew, from 10,000.
    level : int, default=0
        Mean number of wrong meanings in a bag, which are meanings of other training questions.
    random_state : int, numpy.random.Generator or None

    Returns
    -------
    MapQueries

    Examples
    --------
    >>> from structsvm.datasets import make_queries
    >>> data = make_queries(3, 1, language="funql", random_state=1)
    >>> data.bags == data.y_train
    True
    """
    given = locals()
    check_arguments("make_queries", given, n_train=COUNT, n_test=COUNT, unseen=SHARE, level=LEVEL, language=LANGUAGE)
    if names is not None:
        check_arguments("make_queries", given, names=COUNT)
    rng = np.random.default_rng(random_state)
    common = [draw_name(rng) for _ in range(names or 0)]
    weights = zipf(len(common)) if common else None
    met: list[str] = []

    def for_training() -> str:
        met.append(draw_name(rng) if weights is None else common[draw(rng, weights)])
        return met[-1]

    def for_test() -> str:
        if rng.random() >= unseen and met:
            return pick(rng, met)
        name = draw_name(rng)
        while name in known:
            name = draw_name(rng)
        return name

    train = [draw_question(rng, for_training) for _ in range(n_train)]
    known = frozenset(met)
    test = [draw_question(rng, for_test) for _ in range(n_test)]
    write = LANGUAGES[language]
    y_train, y_test = ([[write(q)] for q in part] for part in (train, test))
    bags = []
    for meanings in y_train:
        others = [pick(rng, y_train)[0] for _ in range(int(rng.integers(2 * level + 1)))]
        bag = [*dict.fromkeys([*meanings, *others])]
        bags.append([bag[k] for k in rng.permutation(len(bag))] if level else bag)
    X_train, X_test = ([" ".join(q.words) for q in part] for part in (train, test))
    return MapQueries(X_train, y_train, X_test, y_test, bags)
