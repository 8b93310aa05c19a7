"""References as they stand at the end of papers, in several styles."""

from __future__ import annotations

from structsvm.datasets._draws import SHARE, RandomState
from structsvm.datasets.english._lines import Labelled, Line, Writer, labelled_lines
from structsvm.parameters import COUNT, check_arguments

LABELS = ("author", "title", "journal", "booktitle", "volume", "pages", "date", "publisher", "location")
SURNAMES = ("Abel", "Brand", "Costa", "Dietz", "Evans", "Fuchs", "Grant", "Haas", "Ito", "Jensen", "Klein", "Larsen")
# Words that are surnames, places and parts of titles alike.
SHARED = ("London", "Cambridge", "Berlin", "York", "Wood", "Field", "Stone", "Rivers")
SUBJECTS = (
    "parsing", "sequence alignment", "kernel machines", "river ice", "protein folding", "city planning", "bird song",
    "support vectors", "early printing", "soil carbon", "speech rhythm", "trade routes",
)  # fmt: skip
TITLES = (
    "On the theory of {}", "A short history of {}", "Learning {} from few examples", "{}: a review", "Notes on {}",
    "Towards a better understanding of {}", "Why {} matters", "{} in northern Europe", "Fast algorithms for {}",
)  # fmt: skip
JOURNALS = (
    "Journal of {}", "Annals of {}", "{} Letters", "Transactions on {}", "Review of {}", "International Journal of {}",
)  # fmt: skip
FIELDS = ("Linguistics", "Machine Learning", "Hydrology", "Economic History", "Biology", "Acoustics", "Geography")
MEETINGS = ("Proceedings of the {}th Conference on {}", "Proc. {}th Workshop on {}", "Advances in {1} {0}")
PUBLISHERS = ("Harbor Press", "North University Press", "Lindqvist and Sons", "Open Books", "Academic House")
DASHES = ("-", "\u2013", "--")
PLACES = ("Oxford", "Boston", "Vienna", "Leiden", "Chicago", "Uppsala")


def authors(writer: Writer, *, initials_first: bool) -> str:
    """Draw one to three names, with initials before or behind."""
    names = []
    for _ in range(writer.number(1, 3)):
        surname = writer.name(SURNAMES, SHARED)
        initials = " ".join(f"{writer.pick('ABCEHJKLMPRST')}." for _ in range(writer.number(1, 2)))
        names.append(f"{initials} {surname}" if initials_first else f"{surname}, {initials}")
    joined = ", ".join(names[:-1])
    return f"{joined} {writer.pick(('and', '&'))} {names[-1]}" if joined else names[-1]


def title(writer: Writer) -> str:
    """Draw a title, with a capital at its start."""
    text = writer.pick(TITLES).format(writer.name(SUBJECTS, SHARED))
    return text[0].upper() + text[1:]


def source(writer: Writer) -> Line:
    """Draw where it appeared: journal, meeting or publisher, with volume and pages."""
    first = writer.number(1, 900)
    pages = f"{first}{writer.pick(DASHES)}{first + writer.number(1, 30)}"
    kind = writer.number(0, 2)
    field = writer.pick(FIELDS)
    if kind == 0:
        volume = str(writer.number(1, 90)) + (f"({writer.number(1, 12)})" if writer.chance(0.5) else "")
        return [(writer.pick(JOURNALS).format(field) + ",", "journal"), (f"{volume}:", "volume"), (pages, "pages")]
    if kind == 1:
        meeting = writer.pick(MEETINGS).format(writer.number(4, 40), field)
        where = [(writer.name(PLACES, SHARED) + ",", "location")] if writer.chance(0.5) else []
        return [("In " + meeting + ",", "booktitle"), *where, (f"pp. {pages}", "pages")]
    place = [(writer.name(PLACES, SHARED), "location")]
    house = [(writer.pick(PUBLISHERS), "publisher")]
    if writer.chance(0.5):
        return [(place[0][0] + ":", "location"), *house]
    return [(house[0][0] + ",", "publisher"), *place]


def citation(writer: Writer) -> Line:
    """Draw one reference in one of three styles, which differ in order and marks."""
    style = writer.number(0, 2)
    year = str(writer.number(1950, 2025))
    names, about, where = authors(writer, initials_first=style > 0), title(writer), source(writer)
    end, label = where[-1]
    if style == 0:
        return [(names, "author"), (f"({year}).", "date"), (f"{about}.", "title"), *where[:-1], (f"{end}.", label)]
    quoted = (f"“{about},”" if style == 1 else f"{about}.", "title")
    return [
        (names + (":" if style == 2 else ","), "author"),
        quoted,
        *where[:-1],
        (f"{end},", label),
        (f"{year}.", "date"),
    ]


def make_citations(
    n_citations: int = 1000,
    *,
    ambiguity: float = 0.1,
    typos: float = 0.02,
    noise: float = 0.0,
    random_state: RandomState = None,
) -> Labelled:
    """Draw references in several styles, whose words are labelled: author, title, journal, pages and so on.

    Parameters
    ----------
    n_citations : int
        Number of references, at least 1.
    ambiguity : float
        Probability, from 0 to 1, that a surname, a place or a subject is a word that is any of them (``York``).
    typos, noise, random_state
        As for `make_addresses`.

    Returns
    -------
    X : list of (list of str)
        Words, with the marks that follow them.
    y : list of (list of str)
        Their labels, without a scheme of chunks.

    Examples
    --------
    >>> from structsvm.datasets import make_citations
    >>> X, y = make_citations(2, random_state=4)
    >>> " ".join(X[0])
    'B. J. Grant, R. L. Haas and L. Costa: Fast algorithms for speech rhythm. Academic House, Chicago, 2021.'
    """
    check_arguments("make_citations", locals(), n_citations=COUNT, ambiguity=SHARE, typos=SHARE, noise=SHARE)
    how = {"ambiguity": ambiguity, "typos": typos, "noise": noise}
    return labelled_lines(citation, LABELS, n_citations, **how, random_state=random_state)
