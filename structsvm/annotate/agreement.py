"""Agreement of annotators: Cohen's kappa of each two, Krippendorff's alpha of all.

Both compare what is observed with what chance would give. Kappa is ``(p_o - p_e) / (1 - p_e)``, with the share p_o of
units of one label, and p_e the share expected from each annotator's own labels (Cohen 1960). Alpha is
``1 - D_o / D_e``, with disagreements of labels in the same unit and in any units (Krippendorff 2011, nominal data).

A unit of texts is a text. Units of sequences are the spans that any of the annotators of a text has marked: who has not
marked exactly this span says that there is none. So alpha and kappa by span count a wrong boundary as a wrong label.
Kappa of two is theirs alone: spans that only others have marked are no units of it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import nan

from structsvm.annotate.answers import Answer

Unit = Mapping[str, Hashable]
NOT_MARKED = None


@dataclass(frozen=True)
class Agreement:
    """Agreement of all annotators.

    Attributes
    ----------
    n_units : int
        Units that two or more have labelled.
    alpha : float
        NaN if nothing can disagree.
    kappas : dict of (annotator, annotator) to (kappa, number of units)
        One entry per pair of annotators who share a text.
    n_texts : int
        Texts that two or more have labelled completely; those without any span have no units.
    """

    n_units: int
    alpha: float
    kappas: Mapping[tuple[str, str], tuple[float, int]]
    n_texts: int = 0

    def __str__(self) -> str:
        if not self.n_texts:
            return "no text has been labelled by two annotators"
        if not self.n_units:
            return "in no text that two annotators have labelled is there a span"
        lines = [f"Krippendorff's alpha: {self.alpha:.3f} ({self.n_units} units)"]
        for (a, b), (kappa, n) in self.kappas.items():
            value = f"{kappa:.3f} ({n} units)" if n else "neither has marked a span in the texts of both"
            lines.append(f"Cohen's kappa, {a} and {b}: {value}")
        return "\n".join(lines)


def agreement(answers: Iterable[Mapping[str, Answer]]) -> Agreement:
    """The agreement of answers: per text, a dict from annotators to their answers.

    Parts of texts that an answer leaves open are not compared: partial answers are left out.
    """
    answers = list(answers)
    units = [unit for own in answers for unit in units_of(own)]
    together = [names for names in map(_names_of_whole, answers) if len(names) > 1]
    kappas = {}
    for a, b in sorted({pair for names in together for pair in combinations(names, 2)}):
        both = ((unit[a], unit[b]) for unit in units if a in unit and b in unit)
        pairs = [pair for pair in both if pair != (NOT_MARKED, NOT_MARKED)]
        kappas[a, b] = cohen_kappa(pairs), len(pairs)
    return Agreement(len(units), krippendorff_alpha([list(unit.values()) for unit in units]), kappas, len(together))


def _names_of_whole(answers: Mapping[str, Answer]) -> list[str]:
    """The annotators who have left nothing open of a text, sorted."""
    return sorted(name for name, answer in answers.items() if answer.is_whole)


def units_of(answers: Mapping[str, Answer]) -> list[Unit]:
    """Labels that the annotators of one text have given, unit by unit; empty if there are fewer than two."""
    whole = {name: answers[name] for name in _names_of_whole(answers)}
    if len(whole) < 2:
        return []
    if any(answer.label is not None for answer in whole.values()):
        return [{name: answer.label for name, answer in whole.items()}]
    marked = {name: {(a, b): label for a, b, label in answer.spans} for name, answer in whole.items()}
    places = sorted({place for own in marked.values() for place in own})
    return [{name: own.get(place, NOT_MARKED) for name, own in marked.items()} for place in places]


def cohen_kappa(pairs: Sequence[tuple[Hashable, Hashable]]) -> float:
    """Cohen's kappa of pairs of labels; NaN where both annotators have one and the same label throughout, or none.

    Examples
    --------
    >>> from structsvm.annotate.agreement import cohen_kappa
    >>> cohen_kappa([("a", "a"), ("a", "b"), ("b", "b"), ("b", "b")])
    0.5
    """
    n = len(pairs)
    if not n:
        return nan
    observed = sum(one == other for one, other in pairs) / n
    ones, others = Counter(one for one, _ in pairs), Counter(other for _, other in pairs)
    expected = sum(ones[label] * others[label] for label in ones) / n**2
    return nan if expected == 1.0 else (observed - expected) / (1.0 - expected)


def krippendorff_alpha(units: Sequence[Sequence[Hashable]]) -> float:
    """Krippendorff's alpha of nominal labels; NaN where there is one label only, or no unit of two.

    Examples
    --------
    >>> from structsvm.annotate.agreement import krippendorff_alpha
    >>> round(krippendorff_alpha([["a", "a"], ["a", "b"], ["b", "b"], ["b", "b"]]), 4)
    0.5333
    """
    units = [unit for unit in units if len(unit) > 1]
    totals = Counter(label for unit in units for label in unit)
    n = sum(totals.values())
    if len(totals) < 2:
        return nan
    unlike = sum((len(unit) ** 2 - sum(k * k for k in Counter(unit).values())) / (len(unit) - 1) for unit in units)
    expected = (n * n - sum(k * k for k in totals.values())) / (n - 1)
    return 1.0 - unlike / expected
