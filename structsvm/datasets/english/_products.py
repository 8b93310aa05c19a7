"""Titles of products in a shop's tree of categories."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from structsvm.datasets._draws import SHARE, RandomState
from structsvm.datasets.english._lines import Errors, Writer
from structsvm.parameters import COUNT, check_arguments
from structsvm.structures.taxonomy import Taxonomy

# Categories, each with nouns for its products and with what is said of them.
CATEGORIES = {
    "Electronics/Audio/Headphones": (("headphones", "earbuds", "headset"), ("noise cancelling", "over ear", "wired")),
    "Electronics/Audio/Speakers": (("speaker", "soundbar"), ("portable", "bluetooth", "waterproof")),
    "Electronics/Computers/Laptops": (("laptop", "notebook"), ("14 inch", "16 GB memory", "touchscreen")),
    "Electronics/Computers/Keyboards": (("keyboard",), ("mechanical", "wireless", "backlit")),
    "Electronics/Phones/Cases": (("phone case", "cover"), ("shockproof", "clear", "leather")),
    "Home/Kitchen/Pans": (("frying pan", "saucepan", "wok"), ("non stick", "28 cm", "cast iron")),
    "Home/Kitchen/Knives": (("chef's knife", "bread knife"), ("stainless steel", "20 cm", "forged")),
    "Home/Furniture/Chairs": (("chair", "armchair", "stool"), ("oak", "upholstered", "folding")),
    "Home/Furniture/Desks": (("desk", "standing desk"), ("oak", "height adjustable", "140 cm")),
    "Home/Lighting/Lamps": (("desk lamp", "floor lamp"), ("dimmable", "brass", "LED")),
    "Clothing/Shoes/Boots": (("boots", "hiking boots"), ("waterproof", "leather", "lined")),
    "Clothing/Shoes/Sneakers": (("sneakers", "running shoes"), ("breathable", "lightweight", "canvas")),
    "Clothing/Outerwear/Jackets": (("jacket", "rain coat", "parka"), ("waterproof", "lined", "hooded")),
    "Sports/Cycling/Helmets": (("bike helmet", "helmet"), ("lightweight", "adjustable", "for children")),
    "Sports/Camping/Tents": (("tent", "dome tent"), ("for two persons", "waterproof", "lightweight")),
    "Sports/Camping/Stoves": (("camping stove", "burner"), ("portable", "folding", "gas")),
}  # fmt: skip
# Nouns of things that go with products of many categories.
SHARED = ("stand", "bag", "cover", "set", "kit", "holder")
BRANDS = ("Norda", "Velmo", "Kestrel", "Tarn", "Ospra", "Lumeo", "Brackwell", "Finch & Co", "Altus", "Mirava")
COLOURS = ("black", "white", "navy", "grey", "red", "olive", "silver")


def title(writer: Writer, nouns: tuple[str, ...], said: tuple[str, ...]) -> str:
    """Draw a title: brand, what is said of it, the noun, a colour; in no fixed order."""
    noun = f"{writer.pick(nouns)} {writer.pick(SHARED)}" if writer.chance(writer.ambiguity) else writer.pick(nouns)
    words = [writer.pick(said)] if writer.chance(0.8) else []
    words.insert(writer.number(0, len(words)), noun)
    if writer.chance(0.5):
        words.append(writer.pick(COLOURS))
    return " ".join([writer.pick(BRANDS), *words])


def make_products(
    n_products: int = 1000,
    *,
    ambiguity: float = 0.1,
    typos: float = 0.02,
    noise: float = 0.0,
    random_state: RandomState = None,
) -> tuple[list[str], NDArray[np.str_], Taxonomy]:
    """Draw titles of products, and the categories that they are in.

    Parameters
    ----------
    n_products : int
        Number of products, at least 1.
    ambiguity : float
        Probability, from 0 to 1, that a title ends in a noun of any category (``tent bag``).
    typos : float
        Probability, from 0 to 1, that a word of four letters or more has a typing error.
    noise : float
        Probability, from 0 to 1, that a product stands in a category drawn at random.
    random_state : int, numpy.random.Generator or None

    Returns
    -------
    X : list of str
        Titles.
    y : array of str, shape (n_products,)
        Their categories, leaves of the taxonomy.
    taxonomy : Taxonomy
        Departments, their shelves, and categories, by their paths: ``Home``, ``Home/Kitchen``, ``Home/Kitchen/Pans``.

    Examples
    --------
    >>> from structsvm.datasets import make_products
    >>> X, y, taxonomy = make_products(2, random_state=4)
    >>> X[0], str(y[0])
    ('Brackwell running shoes grey', 'Clothing/Shoes/Sneakers')
    """
    check_arguments("make_products", locals(), n_products=COUNT, ambiguity=SHARE, typos=SHARE, noise=SHARE)
    categories, rng = tuple(CATEGORIES), np.random.default_rng(random_state)
    errors, writer = Errors(rng, typos, noise, categories), Writer(rng, ambiguity)
    drawn = [
        (category, title(writer, *CATEGORIES[category])) for category in map(writer.pick, [categories] * n_products)
    ]
    X = [" ".join(map(errors.word, text.split())) for _, text in drawn]
    y = [errors.label(category) for category, _ in drawn]
    ways = [category.split("/") for category in categories]
    taxonomy = Taxonomy.from_paths([["/".join(way[:end]) for end in range(1, len(way) + 1)] for way in ways])
    return X, np.array(y), taxonomy
