"""Words for the tags of simulated treebanks: sentences that a reader can check a tree against."""

from __future__ import annotations

from structsvm.structures.trees import Tree

# Right wherever the grammar has them: nouns with and without an article, verbs whose past is their base, after nouns
# and after auxiliaries, pronouns that are objects as well.
WORDS = {
    "DT": "the a this every",
    "NN": "fish stone cake paper chicken rope cheese glass coffee light pizza cloth brick soup string tape melon wire "
    "rock salad lamb fire tea ribbon",
    "NNP": "Anna Paul Lisbon Nora Sam Paris Tara David Carla Oslo Ben Rita",
    "JJ": "new small red quiet young warm heavy green tall bright plain kind",
    "VB": "hit cut hurt split spread shut put beat read let",
    "MD": "may can will must should",
    "PRP": "it you",
    "IN": "near in on with at by under behind after before",
    "CC": "and or",
    "RB": "very quite rather almost",
}
LISTS = {tag: words.split() for tag, words in WORDS.items()}


def spoken(tree: Tree) -> Tree:
    """Return the tree with words of English in the place of its codes, the first ones for the most frequent."""

    def word(node: Tree, below: list[Tree]) -> Tree:
        if not node.is_preterminal or node.label not in LISTS:
            return node if node.is_preterminal else Tree(node.label, below)
        words = LISTS[node.label]
        rank = int(node.leaves()[0].removeprefix(node.label.lower()))
        return Tree(node.label, (words[rank % len(words)],))

    return tree.map(word)
