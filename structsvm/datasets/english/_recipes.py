"""Lines of ingredients: how much of what, and what is done with it."""

from __future__ import annotations

from typing import NamedTuple

from structsvm.datasets._draws import SHARE, RandomState
from structsvm.datasets.english._lines import Labelled, Line, Writer, labelled_lines
from structsvm.parameters import COUNT, check_arguments

LABELS = ("quantity", "unit", "size", "name", "preparation", "comment")
# Names whose words are units and preparations elsewhere: two cloves of garlic; tomatoes, crushed.
SHARED = (
    "cloves",
    "ground cloves",
    "crushed tomatoes",
    "chopped nuts",
    "canned tuna",
    "cinnamon sticks",
    "melted cheese",
)
COMMENTS = ("optional", "or more to taste", "plus extra to serve", "see note")


class Kind(NamedTuple):
    """Ingredients that are measured and prepared alike; no units: they are counted."""

    quantities: tuple[str, ...]
    units: tuple[str, ...]
    sizes: tuple[str, ...]
    names: tuple[str, ...]
    preparations: tuple[str, ...]


KINDS = (
    Kind(
        ("25", "50", "100", "150", "250", "400", "500", "100-150"),
        ("g", "grams of"),
        (),
        (
            "plain flour",
            "brown sugar",
            "butter",
            "rolled oats",
            "dark chocolate",
            "cream cheese",
            "red lentils",
            "rice",
        ),
        ("sifted", "at room temperature", "plus extra for dusting"),
    ),
    Kind(
        ("1", "2", "1/2", "1 1/2", "½", "3-4"),
        ("pound", "pounds of", "lb", "kg"),
        (),
        ("minced beef", "chicken breasts", "pork shoulder", "spinach", "mushrooms", "parmesan"),
        ("cut into cubes", "trimmed", "roughly chopped", "grated"),
    ),
    Kind(
        ("1", "2", "3", "4", "6", "1/2", "2-3"),
        (),
        ("large", "small", "medium"),
        ("eggs", "carrots", "red onions", "bay leaves", "lemons", "potatoes", "green peppers", "spring onions"),
        ("beaten", "finely chopped", "peeled and sliced", "crushed", "halved"),
    ),
    Kind(
        ("1", "2", "1/4", "3/4", "2 1/4", "1½", "1-2"),
        ("cup", "cups", "tablespoons", "tbsp", "teaspoon", "tsp", "cups of"),
        (),
        ("milk", "olive oil", "chicken stock", "coconut milk", "water", "soy sauce", "white wine", "double cream"),
        ("warm", "for frying", "heated", "divided"),
    ),
    Kind(
        ("1", "2", "one", "two"),
        ("can", "tin", "cans of", "jar of", "packet"),
        ("(400 g)", "(14 oz)", "(250 g)"),
        ("chickpeas", "plum tomatoes", "black beans", "sweetcorn", "coconut cream", "dry yeast"),
        ("drained", "rinsed and drained", "mashed", "crushed"),
    ),
    Kind(
        ("a", "2", "1"),
        ("pinch of", "handful of", "sprigs of", "dash of"),
        ("large", "small"),
        ("salt", "black pepper", "paprika", "saffron", "parsley", "thyme", "chilli flakes"),
        ("freshly ground", "chopped", "torn"),
    ),
)


def ingredient(writer: Writer) -> Line:
    """Draw one line: how much, of which size, of what; then what is done with it, and remarks."""
    kind = writer.pick(KINDS)
    line = [(writer.pick(kind.quantities), "quantity")]
    if kind.sizes and writer.chance(0.4):
        line.append((writer.pick(kind.sizes), "size"))
    if kind.units:
        line.append((writer.pick(kind.units), "unit"))
    line.append((writer.name(kind.names, SHARED), "name"))
    for share, options, label in ((0.4, kind.preparations, "preparation"), (0.15, COMMENTS, "comment")):
        if writer.chance(share):
            text, before = line[-1]
            if writer.chance(0.2):
                line.append((f"({writer.pick(options)})", label))
            else:
                line[-1:] = [(f"{text},", before), (writer.pick(options), label)]
    return line


def make_recipes(
    n_lines: int = 1000,
    *,
    ambiguity: float = 0.1,
    typos: float = 0.02,
    noise: float = 0.0,
    random_state: RandomState = None,
) -> Labelled:
    """Draw lines of ingredients whose words are labelled: quantity, unit, size, name, preparation, comment.

    Parameters
    ----------
    n_lines : int
        Number of lines, at least 1.
    ambiguity : float
        Probability, from 0 to 1, that an ingredient has words that are units or preparations elsewhere
        (``crushed tomatoes``).
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
    >>> from structsvm.datasets import make_recipes
    >>> X, y = make_recipes(2, random_state=4)
    >>> " ".join(X[0])
    'two packet melted cheese'
    """
    check_arguments("make_recipes", locals(), n_lines=COUNT, ambiguity=SHARE, typos=SHARE, noise=SHARE)
    how = {"ambiguity": ambiguity, "typos": typos, "noise": noise}
    return labelled_lines(ingredient, LABELS, n_lines, **how, random_state=random_state)
