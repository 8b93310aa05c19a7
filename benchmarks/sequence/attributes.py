"""Tokens as lists of attribute strings, the input of other programs.

Their files have one token per line, its label and its attributes separated by tabs, and a blank line after
each sentence.
"""

from __future__ import annotations

from itertools import pairwise

from structsvm.features.functions.strings import FUNCTIONS
from structsvm.features.templates import built_in_templates, parse_templates


def attribute_lists(encoder, tokens):
    """Names of the attributes of encoded tokens, per sentence and token."""
    names = encoder.feature_names
    flat = [names[i] for i in tokens.indices.tolist()]
    rows = [flat[a:b] for a, b in pairwise(tokens.indptr.tolist())]
    return [rows[a:b] for a, b in pairwise(tokens.offsets.tolist())]


def write_attributes(path, X, y):
    """Write sentences of attribute lists and their labels."""
    with open(path, "w", encoding="utf-8", newline="\n") as stream:
        for sentence, labels in zip(X, y, strict=True):
            lines = ["\t".join((label, *token)) for token, label in zip(sentence, labels, strict=True)]
            stream.write("\n".join(lines) + "\n\n")


def read_attributes(path):
    """Yield ``(attribute lists, labels)`` of each sentence."""
    sentence = []
    with open(path, encoding="utf-8", newline="\n") as stream:
        for line in stream:
            if line != "\n":
                sentence.append(line[:-1].split("\t"))
                continue
            yield [token[1:] for token in sentence], [token[0] for token in sentence]
            sentence = []


class Expander:
    """Template expansion in plain Python, as scripts around other programs do it.

    Parameters
    ----------
    templates : {"rich", "crf++"}
    n_columns : int
        Columns of a token, without the label.
    """

    def __init__(self, templates, n_columns):
        self.templates, _ = parse_templates(built_in_templates(templates, n_columns))
        self.functions = {item.function for template in self.templates for item in template.items} - {"x"}

    def __call__(self, sentence):
        """Attribute lists of a sentence, a list of rows of strings."""
        columns = list(zip(*sentence, strict=True))
        strings = {("x", j): list(column) for j, column in enumerate(columns)}
        strings |= {
            (name, j): FUNCTIONS[name](list(column)) for name in self.functions for j, column in enumerate(columns)
        }
        return [self._token(strings, t, len(sentence)) for t in range(len(sentence))]

    def _token(self, strings, t, length):
        found = []
        for template in self.templates:
            parts = [template.literals[0]]
            for item, literal in zip(template.items, template.literals[1:], strict=True):
                row = t + item.row
                if row < 0:
                    value = f"_B-{-row}"
                elif row >= length:
                    value = f"_B+{row - length + 1}"
                else:
                    value = strings[item.function, item.column][row]
                if value is None:
                    break
                parts += [value, literal]
            else:
                found.append("".join(parts))
        return found
