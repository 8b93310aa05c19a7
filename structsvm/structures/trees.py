"""Constituency trees and their bracketed files.

A tree is immutable, and nothing here recurses: trees may be as deep as memory allows. The text form is the Penn
Treebank's, ``(S (NP (DT the) (NN cat)) (VP (VBZ sleeps)))``.
"""

from __future__ import annotations

import os
import re
from array import array
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from html import escape
from itertools import accumulate, dropwhile
from operator import is_
from typing import Any, BinaryIO

from structsvm.features.inputs.places import PlacedList
from structsvm.features.sources import load_text
from structsvm.features.text.encodings import NotTextError
from structsvm.files.new_file import new_file
from structsvm.parameters import printable

__all__ = [
    "Tree",
    "TreeFileError",
    "clean_tree",
    "merge_repeats",
    "parse_tree",
    "parse_trees",
    "read_trees",
    "write_trees",
]

# Labels of trees that are known in part, see `structsvm.structures.known_trees`.
UNKNOWN_LABEL, STRETCH = "_", "..."

_NOT_A_LABEL = re.compile(r"[\s()]")
_TOKEN = re.compile(r"[()]|[^\s()]+")
_ESCAPES = {"(": "-LRB-", ")": "-RRB-"}


class TreeFileError(ValueError):
    """Bracketed text that is not a tree; the message names file and line.

    Examples
    --------
    >>> from structsvm.structures.trees import parse_tree
    >>> parse_tree("(S (NP ice)")
    Traceback (most recent call last):
        ...
    structsvm.structures.trees.TreeFileError: <text>:1: the tree that begins here lacks 1 closing brackets
    """


class Tree:
    """A node with its label and its children, which are trees or words (`str`).

    Parameters
    ----------
    label : str
        Without white space and brackets; may be empty, as the Penn Treebank's outermost one is.
    children : iterable of Tree or str
        At least one.

    Raises
    ------
    ValueError
        For a label or a word that the text form cannot represent, or no children.

    Notes
    -----
    In text, a bracket within a word is written ``-LRB-`` or ``-RRB-``, as in the treebank.

    Examples
    --------
    >>> from structsvm.structures.trees import Tree
    >>> tree = Tree("S", [Tree("NP", ["ice"]), Tree("VP", ["melts"])])
    >>> str(tree), tree.leaves()
    ('(S (NP ice) (VP melts))', ['ice', 'melts'])
    """

    __slots__ = ("children", "label")

    label: str
    children: tuple[Tree | str, ...]

    def __init__(self, label: str, children: Iterable[Tree | str]) -> None:
        check_label(label)
        children = (children,) if isinstance(children, str) else tuple(children)
        if not children:
            raise ValueError(f"a tree must have children; the node {label!r} has none")
        check_children(children)
        _set_label(self, label)
        _set_children(self, children)

    @classmethod
    def made(cls, label: str, children: tuple[Tree | str, ...]) -> Tree:
        """A tree of a label and children that have been checked."""
        tree = cls.__new__(cls)
        _set_label(tree, label)
        _set_children(tree, children)
        return tree

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError("trees are immutable; make a new one")

    def __delattr__(self, name: str) -> None:
        raise AttributeError("trees are immutable; make a new one")

    @property
    def is_preterminal(self) -> bool:
        """Whether the only child is a word."""
        return len(self.children) == 1 and isinstance(self.children[0], str)

    def preorder(self) -> Iterator[Tree]:
        """All nodes, parents before children, left to right."""
        stack = [self]
        while stack:
            node = stack.pop()
            yield node
            stack += [child for child in reversed(node.children) if isinstance(child, Tree)]

    def postorder(self) -> list[Tree]:
        """All nodes, children before parents, left to right."""
        found, stack = [], [self]
        while stack:
            node = stack.pop()
            found.append(node)
            stack += [child for child in node.children if isinstance(child, Tree)]
        return found[::-1]

    def leaves(self) -> list[str]:
        """The words, left to right."""
        return [word for word, _ in self.tokens()]

    def tokens(self) -> list[tuple[str, str | None]]:
        """``(word, tag)`` of the words, left to right; a word with siblings has no tag."""
        found: list[tuple[str, str | None]] = []
        stack: list[Tree | str] = [self]
        while stack:
            node = stack.pop()
            if isinstance(node, str):
                found.append((node, None))
            elif node.is_preterminal:
                found.append((node.children[0], node.label))  # type: ignore[arg-type]
            else:
                stack.extend(reversed(node.children))
        return found

    def spans(self) -> list[tuple[str, int, int]]:
        """``(label, i, j)`` of all nodes in `preorder`: the node covers words i .. j - 1."""
        order = list(self.preorder())
        size: dict[int, int] = {}
        for node in reversed(order):
            size[id(node)] = sum(size[id(child)] if isinstance(child, Tree) else 1 for child in node.children)
        spans = []
        stack = [(self, 0)]
        while stack:
            node, i = stack.pop()
            spans.append((node.label, i, i + size[id(node)]))
            parts = []
            for child in node.children:
                if isinstance(child, Tree):
                    parts.append((child, i))
                    i += size[id(child)]
                else:
                    i += 1
            stack.extend(reversed(parts))
        return spans

    def map(self, make: Callable[[Tree, list[Any]], Any]) -> Any:
        """Fold the tree from the leaves up: ``make(node, made)`` with the values made of the children.

        Words are passed unchanged.
        """
        made: list[Any] = []
        for node in self.postorder():
            values = [made.pop() if isinstance(child, Tree) else child for child in reversed(node.children)]
            made.append(make(node, values[::-1]))
        return made[0]

    def __str__(self) -> str:
        parts: list[str] = []
        stack: list[Tree | str | None] = [self]
        while stack:
            item = stack.pop()
            if item is None:
                parts.append(")")
            elif isinstance(item, str):
                parts.append(" " + escaped(item))
            else:
                parts.append((" (" if parts else "(") + item.label)
                stack.append(None)
                stack.extend(reversed(item.children))
        return "".join(parts)

    def __repr__(self) -> str:
        text = str(self)
        return f"parse_tree({text if len(text) <= 200 else text[:197] + '...'!r})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Tree):
            return NotImplemented
        stack: list[tuple[Any, Any]] = [(self, other)]
        while stack:
            a, b = stack.pop()
            if a is b:
                continue
            if not (isinstance(a, Tree) and isinstance(b, Tree)):
                if a != b if isinstance(a, str) and isinstance(b, str) else True:
                    return False
            elif a.label != b.label or len(a.children) != len(b.children):
                return False
            else:
                stack.extend(zip(a.children, b.children, strict=True))
        return True

    def __hash__(self) -> int:
        return hash(str(self))

    def __reduce__(self) -> tuple[Any, ...]:
        return _from_flat, (_flat(self),)

    def __copy__(self) -> Tree:
        return self

    def __deepcopy__(self, memo: object) -> Tree:
        return self

    def pretty(self) -> str:
        """The tree as indented text: one constituent per line, flat ones on one line."""
        lines: list[str] = []
        stack: list[tuple[Tree | str, int] | None] = [(self, 0)]
        while stack:
            item = stack.pop()
            if item is None:
                lines[-1] += ")"
                continue
            node, depth = item
            if isinstance(node, str):
                lines.append("  " * depth + escaped(node))
            elif all(isinstance(child, str) or child.is_preterminal for child in node.children):
                lines.append("  " * depth + str(node))
            else:
                lines.append("  " * depth + f"({node.label}")
                stack.append(None)
                stack.extend((child, depth + 1) for child in reversed(node.children))
        return "\n".join(lines)

    def _repr_svg_(self) -> str:
        """The tree as a picture, for notebooks: grey lines and text in the colour of the page."""
        places = places_of(self)
        widths = [7.5 * len(text) + 12.0 for _, _, _, text, is_node in places if not is_node]
        # Words stand side by side, each as wide as it is; what is above them between their centres.
        centres = [right - 0.5 * width for right, width in zip(accumulate(widths), widths)]
        spots = []
        for x, y, *_ in places:
            left, share = int(x), x - int(x)
            spots.append((centres[left] * (1.0 - share) + (centres[left + 1] * share if share else 0.0), y))
        margin = 4.0 * max(len(text) for _, _, _, text, _ in places)
        width, top = sum(widths) + 2.0 * margin, places[0][1]
        lines, texts = [], []
        for (x, y), (_, _, parent, text, is_node) in zip(spots, places, strict=True):
            x, height = x + margin, 34.0 * (top - y) + 16.0
            style = "" if is_node else ' font-style="italic"'
            texts.append(f'<text x="{x:.1f}" y="{height + 5.0:.1f}"{style}>{escape(printable(text))}</text>')
            if parent >= 0:
                above, level = spots[parent]
                lines.append(f"M{above + margin:.1f} {34.0 * (top - level) + 26.0:.1f}L{x:.1f} {height - 9.0:.1f}")
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {34 * top + 32}" width="{width:.0f}" '
            f'font-family="sans-serif" font-size="13" text-anchor="middle" fill="currentColor">'
            f'<path d="{"".join(lines)}" stroke="#999999" fill="none"/>{"".join(texts)}</svg>'
        )

    # ---- other libraries' trees -----------------------------------------------------------------

    @classmethod
    def from_nltk(cls, tree: Any) -> Tree:
        """A copy of an ``nltk.Tree`` (anything with ``label()`` that iterates over children)."""
        order, stack = [], [tree]
        while stack:
            node = stack.pop()
            order.append(node)
            stack.extend(child for child in node if hasattr(child, "label"))
        made: dict[int, Tree] = {}
        for node in reversed(order):
            made[id(node)] = cls(node.label(), (made[id(c)] if hasattr(c, "label") else c for c in node))
        return made[id(tree)]

    def to_nltk(self) -> Any:
        """The tree as an ``nltk.Tree``; ImportError without nltk."""
        try:
            from nltk import Tree as NLTKTree
        except ImportError:
            raise ImportError("trees of NLTK need it: pip install 'structured-svm[trees]'") from None

        return self.map(lambda node, children: NLTKTree(node.label, children))


# A tree refuses to be changed: these fill in a new one.
_set_label, _set_children = (vars(Tree)[slot].__set__ for slot in ("label", "children"))


def as_tree(tree: Any) -> Tree:
    """A tree of ours: one of NLTK's is copied. ValueError for anything else."""
    if isinstance(tree, Tree):
        return tree
    if callable(getattr(tree, "label", None)):
        return Tree.from_nltk(tree)
    raise ValueError(f"expected a Tree, got {tree!r:.80}; parse_tree makes one of text.")


def places_of(tree: Tree) -> list[tuple[float, int, int, str, bool]]:
    """Return ``(x, y, parent's index, label or word, whether it is a node)`` of nodes and words in preorder.

    Words are at y = 0, side by side; a node is centred above its children.
    """
    items: list[tuple[Any, int]] = []
    stack: list[tuple[Tree | str, int]] = [(tree, -1)]
    while stack:
        item, parent = stack.pop()
        if not isinstance(item, str):
            stack.extend((child, len(items)) for child in reversed(item.children))
        items.append((item, parent))
    x, y = [0.0] * len(items), [0] * len(items)
    first, last = list(x), [0.0] * len(items)
    n_words = sum(isinstance(item, str) for item, _ in items)
    for k in reversed(range(len(items))):  # from the right: children before their parents
        item, parent = items[k]
        if isinstance(item, str):
            x[k] = n_words = n_words - 1
        else:
            x[k] = 0.5 * (first[k] + last[k])
        if parent >= 0:
            last[parent] = last[parent] if y[parent] else x[k]
            first[parent] = x[k]
            y[parent] = max(y[parent], y[k] + 1)
    return [
        (x[k], y[k], parent, item if isinstance(item, str) else item.label, not isinstance(item, str))
        for k, (item, parent) in enumerate(items)
    ]


def check_label(label: Any) -> None:
    """Raise ValueError for what is not a label of a tree."""
    if not isinstance(label, str) or _NOT_A_LABEL.search(label):
        raise ValueError(f"a tree's label must be a str without white space and brackets, got {label!r:.80}")


def check_children(children: Iterable[Any]) -> None:
    """Raise ValueError for what is neither a tree nor a word."""
    for child in children:
        if not isinstance(child, Tree) and (not isinstance(child, str) or child.split() != [child]):
            raise ValueError(f"a tree's children must be trees and words without white space, got {child!r:.80}")


def escaped(word: str) -> str:
    """The word with escaped brackets."""
    return word.replace("(", _ESCAPES["("]).replace(")", _ESCAPES[")"])


def _flat(tree: Tree) -> list[Any]:
    """The tree in preorder, a node as ``(label, number of children)``."""
    flat: list[Any] = []
    stack: list[Tree | str] = [tree]
    while stack:
        item = stack.pop()
        if isinstance(item, str):
            flat.append(item)
        else:
            flat.append((item.label, len(item.children)))
            stack.extend(reversed(item.children))
    return flat


def _from_flat(flat: list[Any]) -> Tree:
    made: list[Any] = []
    for item in reversed(flat):
        if isinstance(item, str):
            made.append(item)
        else:
            label, n = item
            children = made[: -n - 1 : -1]
            del made[-n:]
            made.append(Tree(label, children))
    return made[0]


# How a line outside of trees begins that is a comment: of treebanks, their tools, and predictions with scores.
_COMMENT = re.compile(r"[#%;]|\*x\*")

# ---- bracketed text -----------------------------------------------------------------------------


def parse_tree(text: str) -> Tree:
    """The tree of a bracketed text; raises TreeFileError unless there is exactly one.

    Examples
    --------
    >>> from structsvm.structures.trees import parse_tree
    >>> parse_tree("(S (NP ice) (VP melts))").children[1].label
    'VP'
    """
    trees = list(parse_trees(text))
    if len(trees) != 1:
        raise TreeFileError(f"expected one tree, found {len(trees)} in {text!r:.80}")
    return trees[0]


def read_trees(source: str | os.PathLike[str] | BinaryIO | Iterable[str]) -> list[Tree]:
    """Read a file of bracketed trees: one or more per line, or over several lines as in the treebank's ``.mrg`` files.

    Comments are as for `parse_trees`.

    Parameters
    ----------
    source : path, binary file or lines of text
        A path or binary file may be compressed with gzip, xz or bzip2. UTF-8.

    Returns
    -------
    list of Tree

    Raises
    ------
    TreeFileError
        For unbalanced brackets, an empty tree, a node without children, text outside of brackets, no trees,
        damaged compression, bytes that are not UTF-8; the message names file and line.
    OSError
        If the file cannot be opened.

    Examples
    --------
    >>> from structsvm.structures.trees import read_trees
    >>> len(read_trees(["(S (NP ice) (VP melts))", "(S (NP dogs) (VP bark))"]))
    2
    """
    try:
        text, name = load_text(source, TreeFileError)
    except NotTextError as error:
        raise TreeFileError(str(error)) from error
    trees, places, line, end = [], [], 1, 0
    for position, tree in _parsed(text, name):
        line, end = line + text.count("\n", end, position), position
        trees.append(tree)
        places.append(f"{name}:{line}")
    if not trees:
        raise TreeFileError(f"{name}: no trees ({'only blank lines' if text else 'the file is empty'})")
    return PlacedList(trees, places)


def write_trees(path: str | os.PathLike[str], trees: Iterable[Tree]) -> None:
    """Write trees to a file, one per line, UTF-8.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from structsvm.structures.trees import parse_tree, read_trees, write_trees
    >>> path = Path(tempfile.mkdtemp()) / "trees.txt"
    >>> write_trees(path, [parse_tree("(S (NP ice) (VP melts))")])
    >>> print(read_trees(path)[0])
    (S (NP ice) (VP melts))
    """
    with new_file(path, "w", encoding="utf-8", newline="\n") as file:
        file.writelines(f"{tree}\n" for tree in trees)


def parse_trees(text: str, name: str = "<text>") -> Iterator[Tree]:
    """The trees of a bracketed text, read token by token; a TreeFileError names `name` and the line.

    Between trees, lines that begin with ``#``, ``%``, ``;`` or ``*x*`` are comments.

    Examples
    --------
    >>> from structsvm.structures.trees import parse_trees
    >>> [str(tree) for tree in parse_trees("(NP ice) (NP dogs)")]
    ['(NP ice)', '(NP dogs)']
    """
    return (tree for _, tree in _parsed(text, name))


def _parsed(text: str, name: str) -> Iterator[tuple[int, Tree]]:
    """Yield each tree with the position of its first bracket."""

    def fail(position: int, what: str) -> TreeFileError:
        return TreeFileError(f"{name}:{text.count(chr(10), 0, position) + 1}: {what}")

    # The open nodes: where they begin, their labels, and where in `parts` their children so far begin.
    positions, labels, firsts = array("q"), [], array("q")
    parts: list[Any] = []
    after_bracket, comment_end = False, 0
    for match in _TOKEN.finditer(text):
        piece = match[0]
        if match.start() < comment_end:
            continue
        if not positions and _COMMENT.match(piece) and begins_line(text, match.start()):
            comment_end = text.find("\n", match.start())
            if comment_end < 0:
                break
            continue
        if piece == "(":
            positions.append(match.start())
            labels.append("")
            firsts.append(len(parts))
            after_bracket = True
            continue
        if not positions:
            what = "a closing bracket without an opening one" if piece == ")" else f"{piece!r:.80} outside of brackets"
            raise fail(match.start(), what + "; CoNLL-U is for train dependency" * ("\n1\t" in f"\n{text[:4096]}"))
        if piece == ")":
            position, label, first = positions.pop(), labels.pop(), firsts.pop()
            children = parts[first:]
            if not children:
                raise fail(position, f"a node without children, ({label})" if label else "an empty tree, ()")
            del parts[first:]
            node = Tree(label, children)
            if positions:
                parts.append(node)
            else:
                yield position, node
        elif after_bracket:
            labels[-1] = piece
        else:
            parts.append(piece)
        after_bracket = False
    if positions:
        raise fail(positions[0], f"the tree that begins here lacks {len(positions)} closing brackets")


def after_comments(text: str) -> str:
    """The text without the comments that it begins with."""
    lines = text.splitlines(keepends=True)
    return "".join(dropwhile(lambda line: not line.strip() or _COMMENT.match(line.lstrip()), lines))


def begins_line(text: str, position: int) -> bool:
    """Whether nothing but blanks stands before a position in its line."""
    return not text[text.rfind("\n", 0, position) + 1 : position].strip()


# ---- treebanks ----------------------------------------------------------------------------------


def merge_repeats(tree: Tree) -> Tree:
    """The tree without repeated labels in chains of only children: of equal nodes and those between them, the lowest
    is kept.

    ``(NP (NP x))`` becomes ``(NP x)``, and so does ``(NP (S (NP x)))``. Hence no chain of unary rules is a cycle.

    Examples
    --------
    >>> from structsvm.structures.trees import merge_repeats, parse_tree
    >>> print(merge_repeats(parse_tree("(NP (S (NP ice)))")))
    (NP ice)
    """
    if not _has_repeats(tree):
        return tree

    def make(node: Tree, children: list[Any]) -> tuple[Tree, dict[str, Tree]]:
        """The node's tree, and by label the nodes of the chain below it (inclusive), lowest first."""
        chain: dict[str, Tree] = {}
        if len(children) == 1 and not isinstance(children[0], str):
            chain = children[0][1]
            if node.label in chain:
                while next(reversed(chain)) != node.label:
                    chain.popitem()
                return chain[node.label], chain
        made = Tree.made(node.label, tuple([c if isinstance(c, str) else c[0] for c in children]))
        if node.label not in (UNKNOWN_LABEL, STRETCH):
            chain[node.label] = made
        return made, chain

    return tree.map(make)[0]


def _has_repeats(tree: Tree) -> bool:
    """Whether a label stands twice in a chain of only children."""
    stack = [tree]
    while stack:
        node, labels = stack.pop(), []
        while len(node.children) == 1 and isinstance(node.children[0], Tree):
            labels.append(node.label)
            node = node.children[0]
        if labels:
            known = [label for label in (*labels, node.label) if label not in (UNKNOWN_LABEL, STRETCH)]
            if len({*known}) < len(known):
                return True
        stack += [child for child in node.children if isinstance(child, Tree)]
    return False


@lru_cache(1 << 12)
def clean_label(label: str) -> str:
    """The label without functions, see `clean_tree`."""
    return re.split("[-=]", label, maxsplit=1)[0] or label


def clean_tree(tree: Tree, start: str = "TOP") -> Tree | None:
    """A treebank tree for training and scoring parsers: without traces, empty nodes and functions.

    Nodes ``-NONE-`` and nodes left empty by them are removed; labels end before the first ``-`` or ``=`` (except
    labels that begin with one); equal labels in a chain are merged (`merge_repeats`); an outermost node without
    a label is named `start`.

    Returns
    -------
    Tree, or None if nothing is left

    Examples
    --------
    >>> from structsvm.structures.trees import clean_tree, parse_tree
    >>> print(clean_tree(parse_tree("( (S (NP-SBJ (NN ice)) (VP (VBZ melts) (NP (-NONE- *T*)))))")))
    (TOP (S (NP (NN ice)) (VP (VBZ melts))))
    """

    def make(node: Tree, children: list[Any]) -> Tree | None:
        kept = [child for child in children if child is not None]
        if node.label == "-NONE-" or not kept:
            return None
        label = clean_label(node.label)
        if label == node.label and len(kept) == len(node.children) and all(map(is_, kept, node.children)):
            return node
        return Tree.made(label, tuple(kept))

    cleaned = tree.map(make)
    if cleaned is None:
        return None
    return merge_repeats(cleaned if cleaned.label else Tree(start, cleaned.children))
