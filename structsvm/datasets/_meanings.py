"""Loaders of sentences with their meaning representations."""

from __future__ import annotations

import re
from dataclasses import dataclass

from structsvm.datasets._fetch import fetch
from structsvm.structures.meanings import MeaningGrammar

__all__ = ["GeoQuery", "SportsGame", "Sportscast", "fetch_geoquery", "fetch_robocup"]


@dataclass(frozen=True, repr=False)
class SportsGame:
    """One game of RoboCup with its comments.

    Attributes
    ----------
    sentences : list of str
        Comments, to train on.
    bags : list of (list of str)
        For each the meanings of the events around its time; the right one may be missing.
    gold_sentences : list of str
        Comments that mean an event, to test on.
    gold_meanings : list of (list of str)
        The one meaning of each.
    """

    sentences: list
    bags: list
    gold_sentences: list
    gold_meanings: list

    def __repr__(self):
        return f"SportsGame(n={len(self.sentences)}, n_gold={len(self.gold_sentences)})"


@dataclass(frozen=True)
class Sportscast:
    """The games by year, and the grammar of all meanings."""

    games: dict
    grammar: MeaningGrammar

    def __repr__(self):
        return f"Sportscast(games={self.games})"


@dataclass(frozen=True, repr=False)
class GeoQuery:
    """Questions about the geography of the United States.

    Attributes
    ----------
    X_train, X_test : list of str
        Questions.
    y_train, y_test : list of (list of str)
        The one meaning of each, in FunQL.
    bags : dict of int to (list of (list of str))
        For level 1, 2 and 3 of ambiguity the candidate meanings of the training questions.
    grammar : MeaningGrammar
    """

    X_train: list
    y_train: list
    X_test: list
    y_test: list
    bags: dict
    grammar: MeaningGrammar

    def __repr__(self):
        return f"GeoQuery(n_train={len(self.X_train)}, n_test={len(self.X_test)})"


def _rows(content):
    return [line.split("\t") for line in content.decode("utf-8").splitlines()]


def _bags(content):
    """Sentences, and their bags, of a file of lines ``id, sentence, meanings with semicolons between``."""
    rows = _rows(content)
    return [row[1] for row in rows], [row[2].split(";") for row in rows]


def fetch_robocup(data_home=None, *, join_players=True) -> Sportscast:
    """English comments on four RoboCup finals, 2001 to 2004, with candidate and with right meanings.

    1872 comments with 2.2 candidates on average, and 1539 pairs of a comment and its meaning. For research only.

    Parameters
    ----------
    data_home : path-like, optional
        The data folder (``robocup_sportscast/``); see :func:`fetch_conll2000`.
    join_players : bool
        Write a player as one word, ``purple7``, as the first publication of the data does; the files split them.

    Returns
    -------
    Sportscast

    Raises
    ------
    DatasetUnavailableError
        The files are missing, or they are not the right ones.

    References
    ----------
    D. Chen and R. Mooney, Learning to sportscast: a test of grounded language acquisition, ICML 2008.
    """
    files = fetch("robocup", data_home)
    games = {}
    for year in range(2001, 2005):
        parts = [*_bags(files[f"ambig.{year}.tsv"][1]), *_bags(files[f"gold.{year}.tsv"][1])]
        if join_players:
            for k in (0, 2):
                parts[k] = [re.sub(r"\b(purple|pink) (\d+)\b", r"\1\2", sentence) for sentence in parts[k]]
        games[year] = SportsGame(*parts)
    return Sportscast(games, MeaningGrammar(files["grammar.txt"][1].decode("utf-8"), "grammar.txt"))


def fetch_geoquery(data_home=None) -> GeoQuery:
    """880 questions about the geography of the United States and their meaning in FunQL (GeoQuery).

    600 to train on, 280 to test on (a split of its own: equal questions do not cross), and the training part with
    artificial ambiguity of levels 1, 2 and 3. GPL version 2.

    Parameters
    ----------
    data_home : path-like, optional
        The data folder (``geoquery/``); see :func:`fetch_conll2000`.

    Returns
    -------
    GeoQuery

    Raises
    ------
    DatasetUnavailableError
        The files are missing, or they are not the right ones.

    References
    ----------
    J. Zelle and R. Mooney, Learning to parse database queries using inductive logic programming, AAAI 1996.
    """
    files = fetch("geoquery", data_home)
    rows = _rows(files["geo.tsv"][1])
    split = {
        part: ([row[2] for row in rows if row[1] == part], [[row[3]] for row in rows if row[1] == part])
        for part in ("train", "test")
    }
    return GeoQuery(
        *split["train"],
        *split["test"],
        bags={level: _bags(files[f"geo.train.ambig{level}.tsv"][1])[1] for level in (1, 2, 3)},
        grammar=MeaningGrammar(files["grammar.txt"][1].decode("utf-8"), "grammar.txt"),
    )
