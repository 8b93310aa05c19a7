"""Words of the glossary in the texts of the site's pages, each a link where a page uses it first."""

import re
from collections.abc import Iterator, MutableSet

# From headings of the glossary to how the word is written. Words that mean other things as well are links where what
# stands beside them tells: a score may be an accuracy, a pass is also what a test does, C is a language.
TERMS = {
    "Arg max": r"arg max(?:es)?",
    "Bag": r"bags?(?= of (?:labels|candidates|meanings|cuts))",
    "C": r"C(?=, the weight of| is chosen| multiplies| by hand)",
    "Calibration": r"calibrat(?:ed|es|ion)",
    "Certificate": r"certificates?",
    "Chunk": r"chunks?",
    "Completion": r"completions?",
    "Cut": r"cutting planes?",
    "Dual": r"dual",
    "Estimator": r"estimators?",
    "Feature": r"features?",
    "Gap": r"duality gaps?|(?<=dual and )gap|(?<=[Tt]he )gap(?= is | says )|gap(?= of \d+ %)",
    "Held-out examples": r"held-out(?= \w)|held out",
    "Joint feature": r"joint features?",
    "K best": r"k best",
    "Loss": r"loss(?:es)?",
    "Loss-augmented arg max": r"loss-augmented(?: arg max| inference)?",
    "Margin": r"margins?",
    "Marginal probability": r"marginals?(?: probability| probabilities)?",
    "Objective": r"objectives?",
    "Oracle": r"oracles?",
    "Pass": r"pass(?:es)?(?= over)|epochs?",
    "Primal": r"primal",
    "Scheme": r"schemes?(?= of chunks| such as| by)|labelling schemes?",
    "Score": r"scores?(?= of (?:an output|a tree|each (?:output|label)|labels|outputs))",
    "Slack": r"slacks?",
    "Solver": r"solvers?",
    "Structure": r"structures?",
    "Support vector": r"support vectors?(?! machine)",
    "Temperature": r"temperatures?",
    "Token": r"tokens?",
    "Transition": r"transitions?",
    "Weights": r"(?<!sample )(?<!class )weights",
}
# Longer words first: "loss-augmented" is no "loss".
PATTERN = re.compile(
    r"(?<![\w-])(?:"
    + "|".join(
        f"(?P<t{k}>{pattern})"
        for k, pattern in sorted(enumerate(TERMS.values()), key=lambda item: len(item[1]), reverse=True)
    )
    + r")(?![\w-])"
)
ANCHORS = [term.lower().replace(" ", "-") for term in TERMS]


def first_uses(text: str, seen: MutableSet[str]) -> Iterator[tuple[int, int, str]]:
    """Find the words that `seen` does not have yet, and enter them.

    Yields
    ------
    start, stop : int
        Where the word stands in the text.
    anchor : str
        Of its heading in the glossary.
    """
    for found in PATTERN.finditer(text):
        anchor = ANCHORS[int(str(found.lastgroup)[1:])]
        if anchor not in seen:
            seen.add(anchor)
            yield *found.span(), anchor
