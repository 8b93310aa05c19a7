"""The span features of a parser as it comes: templates, see `structsvm.structures.spans`.

After Hall, Durrett and Klein (2014), "Less grammar, more features": what stands at the edges of a span and around them,
alone and in pairs, and around splits. Chosen on wsj_0140-0159 of the treebank sample, none of its test part.
"""

from __future__ import annotations

from collections.abc import Iterable

from structsvm.structures.spans import PLAIN
from structsvm.tasks.common.parameters import lines

PAIRS = """
first-1.terminal first.terminal
last.terminal last+1.terminal
first.terminal last.terminal
first-1.terminal last+1.terminal
split-1.terminal split.terminal
"""

OF_TAGS = """
first-1.terminal first.terminal last.terminal last+1.terminal
first.terminal first+1.terminal
last-1.terminal last.terminal
first-2.terminal first-1.terminal
last+1.terminal last+2.terminal
split-1.terminal
split-2.terminal split-1.terminal split.terminal
split-1.terminal split.terminal split+1.terminal
"""

OF_WORDS = """
first.word
last.word
first-1.word
last+1.word
first.word length
last.word length
first-1.word first.word
last.word last+1.word
first.word last.word
first-1.word last+1.word
first.end2
first.end3
last.end3
first.end1 length
first.end2 length
first.end3 length
first.prefix length
first.shape length
last.shape
split.word
split-1.word
split-1.word split.word
"""

OF_BOTH = """
first.terminal last.word
first.word last.terminal
first-1.terminal first.word
first-1.word first.terminal
last.terminal last+1.word
last.word last+1.terminal
split-1.terminal split.word
split-1.word split.terminal
"""

# Templates of the tags between the children of a rule.
OF_RULES = """
rule split-2.terminal
rule split-1.terminal
rule split.terminal
rule split+1.terminal
rule split-1.terminal split.terminal
rule first-1.terminal
rule first.terminal
rule first-1.terminal first.terminal
"""

# Templates of words beside tags.
OF_RULES_OF_BOTH = """
rule split-1.word
rule split.word
rule first.word
"""

# From words, of the endings that stand there instead.
OF_RULES_OF_WORDS = """
rule split-1.word
rule split.word
rule split-2.end2
rule split-1.end2
rule split.end2
rule split+1.end2
rule first-1.end2
rule first.end2
rule split-2.end3
rule split-1.end3
rule split.end3
rule split+1.end3
rule first-1.end3
rule first.end3
"""

# Templates of tags that are given with words, beside those of words. The parser finds its own tags, which rules have.
OF_GIVEN = """
first-1.tag
first.tag
last.tag
last+1.tag
split.tag
first-1.tags
first.tags
last.tags
last+1.tags
split-1.tags
split.tags
"""

# Beside those by rule.
OF_RULES_OF_GIVEN = """
rule split-1.tags
rule split.tags
rule first.tags
"""

# Templates for each of the user's own columns.
OWN = """
first.own
last.own
first-1.own
last+1.own
first.own last.own
split-1.own split.own
"""

# Templates for each of the user's own columns of vectors.
OWN_VECTORS = """
first.own
last.own
first-1.own
last+1.own
split.own
"""


def given(text: str) -> tuple[str, ...]:
    """The templates of a text, with the tags that are given in place of the grammar's terminals."""
    return lines(text.replace("terminal", "tag"))


def default_templates(
    kind: str, own: Iterable[str] = (), vectors: Iterable[str] = (), *, rules: bool = True
) -> tuple[str, ...]:
    """The templates for terminals of a kind, and for the user's own columns; with `rules` those of rules too."""
    more = [OWN.replace("own", name) for name in own] + [OWN_VECTORS.replace("own", name) for name in vectors]
    if more:
        return default_templates(kind, rules=rules) + lines("".join(more))
    by_rule = rule_templates(kind) if rules else ()
    if kind == "words":
        return ("length", *lines(OF_WORDS), *by_rule)
    if kind == "predicted":
        return ("length", *lines(OF_WORDS), *lines(OF_GIVEN), *given(PAIRS), *given(OF_BOTH), *by_rule)
    others = lines(OF_TAGS) if kind == "tags" else lines(OF_WORDS) + lines(OF_BOTH)
    return PLAIN + lines(PAIRS) + others + by_rule


def rule_templates(kind: str) -> tuple[str, ...]:
    """Templates by rule, for terminals of a kind."""
    if kind == "words":
        return lines(OF_RULES_OF_WORDS)
    if kind == "predicted":
        return (*lines(OF_RULES_OF_WORDS), *given(OF_RULES), *lines(OF_RULES_OF_GIVEN))
    return lines(OF_RULES) if kind == "tags" else lines(OF_RULES) + lines(OF_RULES_OF_BOTH)


def sees_rules(texts: Iterable[str]) -> bool:
    """Whether a template has weights by rule."""
    return any("rule" in text.split() for text in texts)
