"""Postal addresses as people write them, in the order of the United States."""

from __future__ import annotations

from structsvm.datasets._draws import SHARE, RandomState
from structsvm.datasets.english._lines import Labelled, Line, Writer, labelled_lines
from structsvm.parameters import COUNT, check_arguments

LABELS = (
    "recipient", "number", "direction", "street", "street_type", "unit", "unit_number", "box", "box_number", "city",
    "state", "zip",
)  # fmt: skip
# Words that are streets, cities and people alike.
SHARED = ("Washington", "Lincoln", "Franklin", "Church", "Lake", "Park", "Madison", "Jackson", "Virginia", "Spring")
STREETS = (
    "Main", "Oak", "Maple", "Elm", "Cedar", "Walnut", "Hill", "River", "Mill", "Sunset", "Railroad", "Chestnut",
    "Old Post", "Orchard", "Meadow", "Canal", "Harbor View", "Fairground",
)  # fmt: skip
TYPES = (
    ("Street", "St", "St."), ("Avenue", "Ave", "Ave."), ("Road", "Rd", "Rd."), ("Lane", "Ln"), ("Drive", "Dr", "Dr."),
    ("Court", "Ct"), ("Boulevard", "Blvd"), ("Way",),
)  # fmt: skip
DIRECTIONS = ("N", "S", "E", "W", "North", "South", "East", "West", "NE", "SW")
UNITS = ("Apt", "Apt.", "Suite", "Ste", "Unit", "Floor", "#")
CITIES = (
    "Riverton", "Ashford", "Granite Falls", "Milltown", "Brookside", "Eagle Point", "New Haven", "Stony Creek",
    "West Salem", "Cold Spring", "Harmony", "Dry Fork", "Fort Bell", "Lakeview",
)  # fmt: skip
STATES = ("NY", "CA", "Ohio", "Texas", "IL", "WA", "Maine", "OR", "Georgia", "NC", "New Mexico", "VT")
PEOPLE = ("Ann Baker", "J. Moore", "Rosa Diaz", "Tom Field", "The Corner Bakery", "Hill Dental Group", "City Library")
BOXES = ("PO Box", "P.O. Box", "Box")


def street_line(writer: Writer) -> Line:
    """Draw number and street, perhaps with a direction and a unit."""
    line = [(str(writer.number(1, 9999)), "number")]
    if writer.chance(0.3):
        line.append((writer.pick(DIRECTIONS), "direction"))
    if writer.chance(0.15):
        ordinal = writer.number(1, 90)
        ending = "th" if ordinal // 10 == 1 else {1: "st", 2: "nd", 3: "rd"}.get(ordinal % 10, "th")
        line.append((f"{ordinal}{ending}", "street"))
    else:
        line.append((writer.name(STREETS, SHARED), "street"))
    if writer.chance(0.9):
        line.append((writer.pick(writer.pick(TYPES)), "street_type"))
    if writer.chance(0.1):
        line.append((writer.pick(DIRECTIONS), "direction"))
    return line


def address(writer: Writer) -> Line:
    """Draw one address: whom, where in the town, which town; commas more often than not."""
    comma = "," if writer.chance(0.7) else ""
    parts: list[Line] = []
    if writer.chance(0.3):
        parts.append([(writer.name(PEOPLE, SHARED), "recipient")])
    if writer.chance(0.1):
        parts.append([(writer.pick(BOXES), "box"), (str(writer.number(1, 4000)), "box_number")])
    else:
        parts.append(street_line(writer))
        if writer.chance(0.3):
            number = str(writer.number(1, 400)) if writer.chance(0.7) else writer.pick("ABCDEF")
            parts.append([(writer.pick(UNITS), "unit"), (number, "unit_number")])
    parts.append([(writer.name(CITIES, SHARED), "city")])
    line = [piece for part in parts for piece in (*part[:-1], (part[-1][0] + comma, part[-1][1]))]
    line.append((writer.pick(STATES), "state"))
    if writer.chance(0.8):
        line.append((f"{writer.number(1000, 99999):05d}", "zip"))
    return [(text.upper(), label) for text, label in line] if writer.chance(0.15) else line


def make_addresses(
    n_addresses: int = 1000,
    *,
    ambiguity: float = 0.1,
    typos: float = 0.02,
    noise: float = 0.0,
    random_state: RandomState = None,
) -> Labelled:
    """Draw postal addresses whose words are labelled by their fields.

    Parameters
    ----------
    n_addresses : int
        Number of addresses, at least 1.
    ambiguity : float
        Probability, from 0 to 1, that the name of a street, a city or a person is a word that is any of them
        (``Washington``).
    typos : float
        Probability, from 0 to 1, that a word of four letters or more has a typing error.
    noise : float
        Probability, from 0 to 1, that a word's label is drawn at random.
    random_state : int, numpy.random.Generator or None

    Returns
    -------
    X : list of (list of str)
        Words, with the marks that follow them.
    y : list of (list of str)
        Their labels: ``number``, ``street``, ``city`` and so on, without a scheme of chunks.

    Examples
    --------
    >>> from structsvm.datasets import make_addresses
    >>> X, y = make_addresses(2, random_state=4)
    >>> " ".join(X[0])
    '9702 Oak Ct Fort Bell WA 96481'
    """
    check_arguments("make_addresses", locals(), n_addresses=COUNT, ambiguity=SHARE, typos=SHARE, noise=SHARE)
    how = {"ambiguity": ambiguity, "typos": typos, "noise": noise}
    return labelled_lines(address, LABELS, n_addresses, **how, random_state=random_state)
