"""Loaders of sentences with their meaning representations."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from structsvm.datasets._fetch import DataHome, File, Split, fetch, fields
from structsvm.structures.meanings import MeaningGrammar


@dataclass(frozen=True, repr=False)
class SportsGame:
    """One game of RoboCup with its comments.

    Attributes
    ----------
    sentences : list of str
        Comments, for training.
    bags : list of (list of str)
        For each comment the meanings of the events around its time; the true one may be missing.
    gold_sentences : list of str
        Comments that describe an event, for test.
    gold_meanings : list of (list of str)
        The one meaning of each.

    Examples
    --------
    >>> from structsvm.datasets import fetch_robocup
    >>> game = fetch_robocup().games[2001]
    >>> len(game.sentences) == len(game.bags)
    True
    """

    sentences: list[str]
    bags: list[list[str]]
    gold_sentences: list[str]
    gold_meanings: list[list[str]]

    def __repr__(self) -> str:
        return f"SportsGame(n={len(self.sentences)}, n_gold={len(self.gold_sentences)})"


@dataclass(frozen=True)
class Sportscast:
    """The games by year, and the grammar of all meanings.

    Examples
    --------
    >>> from structsvm.datasets import fetch_robocup
    >>> sorted(fetch_robocup().games)
    [2001, 2002, 2003, 2004]
    """

    games: dict[int, SportsGame]
    grammar: MeaningGrammar = field(repr=False)


@dataclass(frozen=True, repr=False)
class GeoQuery(Split[list[str], list[list[str]]]):
    """Questions about the geography of the United States.

    Attributes
    ----------
    X_train, X_test : list of str
        Questions.
    y_train, y_test : list of (list of str)
        The one meaning of each, in FunQL.
    bags : dict of int to (list of (list of str))
        The candidate meanings of the training questions at ambiguity levels 1, 2 and 3.
    grammar : MeaningGrammar

    Examples
    --------
    >>> from structsvm.datasets import fetch_geoquery
    >>> data = fetch_geoquery()
    >>> len(data.X_train), sorted(data.bags)
    (600, [1, 2, 3])
    """

    bags: dict[int, list[list[str]]]
    grammar: MeaningGrammar


def _bags(file: File) -> tuple[list[str], list[list[str]]]:
    """Sentences and bags of a file of lines ``id, sentence, meanings separated by semicolons``."""
    rows = file.rows()
    return [row[1] for row in rows], [row[2].split(";") for row in rows]


def _grammar(file: File) -> MeaningGrammar:
    return MeaningGrammar(file.content.decode("utf-8"), file.path.name)


def fetch_robocup(data_home: DataHome = None, *, join_players: bool = True) -> Sportscast:
    """Load English comments on four RoboCup finals, 2001 to 2004, with candidate and with true meanings.

    1872 comments with 2.2 candidates on average, and 1539 pairs of a comment and its meaning. For research only.

    Folder ``robocup_sportscast/``, not downloaded; `data_home` and the errors are those of :func:`fetch_conll2000`.

    Parameters
    ----------
    data_home : path-like, optional
    join_players : bool
        Write a player as one word, ``purple7``, as the first publication of the data does; the files split them.

    References
    ----------
    D. Chen and R. Mooney, Learning to sportscast: a test of grounded language acquisition, ICML 2008.

    Examples
    --------
    >>> from structsvm.datasets import fetch_robocup
    >>> fetch_robocup().games[2001].gold_meanings[0]
    ['pass(purple9,purple2)']
    """

    def joined(sentences: list[str]) -> list[str]:
        if not join_players:
            return sentences
        return [re.sub(r"\b(purple|pink) (\d+)\b", r"\1\2", sentence) for sentence in sentences]

    files = fetch("robocup", data_home)
    games = {}
    for year in range(2001, 2005):
        sentences, bags = _bags(files[f"ambig.{year}.tsv"])
        gold_sentences, gold_meanings = _bags(files[f"gold.{year}.tsv"])
        games[year] = SportsGame(joined(sentences), bags, joined(gold_sentences), gold_meanings)
    return Sportscast(games, _grammar(files["grammar.txt"]))


def fetch_geoquery(data_home: DataHome = None) -> GeoQuery:
    """Load 880 questions about the geography of the United States and their meaning in FunQL (GeoQuery).

    600 for training, 280 for test (in a split of its own: equal questions do not cross), and the training part with
    artificial ambiguity of levels 1, 2 and 3. GPL version 2.

    Folder ``geoquery/``, not downloaded; parameter and errors are those of :func:`fetch_conll2000`.

    References
    ----------
    J. Zelle and R. Mooney, Learning to parse database queries using inductive logic programming, AAAI 1996.

    Examples
    --------
    >>> from structsvm.datasets import fetch_geoquery
    >>> fetch_geoquery().X_test[0]
    'Can you tell me the capital of Texas ?'
    """
    files = fetch("geoquery", data_home)

    def read(part: str) -> tuple[list[str], list[list[str]]]:
        rows = [row for row in files["geo.tsv"].rows() if row[1] == part]
        return [row[2] for row in rows], [[row[3]] for row in rows]

    return GeoQuery(
        **fields(read),
        bags={level: _bags(files[f"geo.train.ambig{level}.tsv"])[1] for level in (1, 2, 3)},
        grammar=_grammar(files["grammar.txt"]),
    )
