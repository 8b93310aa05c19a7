"""Models of whole segments for the runtime in C: their nodes, scores of lengths, and phrases as its file has them."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from structsvm._warnings import AdviceWarning, warn
from structsvm.export.binary import PairTable, StringTable
from structsvm.export.letters import LetterTable
from structsvm.export.texts import table_of
from structsvm.tasks.sequence.phrases import KINDS, MADE

if TYPE_CHECKING:
    from typing import Self

    from structsvm.arrays import Floats, Integers
    from structsvm.export.binary import RuntimeFile
    from structsvm.export.weights import Form
    from structsvm.features.encoder import FeatureEncoder
    from structsvm.tasks.sequence.model import SequenceModel
    from structsvm.tasks.sequence.phrases import Phrases

KIND = 4
MARKS = ("=", ":")  # between the name of a feature and its text: in lists of attributes, in dicts


class PhraseTables(NamedTuple):
    """The tables of phrases.

    Attributes
    ----------
    columns, made : list of int
        Per kind of name the column that it is in, and what is made of it.
    beginnings : list of bytes
        The beginnings of attributes that have the name; empty for columns.
    names : list of StringTable
    runs : list of list of PairTable
        Per kind the known runs of 2, 3, ... names: pairs of a run and of one name more.
    rows : ndarray
        The phrases in the order of the tables: those of 2 names first, by kind.
    """

    columns: list[int]
    made: list[int]
    beginnings: list[bytes]
    names: list[StringTable]
    runs: list[list[PairTable]]
    rows: Integers

    @classmethod
    def of(cls, phrases: Phrases, encoder: FeatureEncoder) -> Self:
        """The tables of a training text's phrases.

        Raises
        ------
        ValueError
            If the runtime cannot tell which attributes have a name.
        """
        names = [table_of(own) for own in phrases.names]
        runs = [_runs(table, keys) for table, keys in zip(names, phrases.keys, strict=True)]
        rows, first = [np.zeros(0, dtype=np.int64)], 0
        for m, own in product(range(phrases.max_length - 1), runs):
            rows.append(first + np.argsort(own[m].place))
            first += len(own[m].place)
        places = [where if isinstance(where, int) else 0 for where, _ in phrases.sources]
        beginnings = [
            b"" if isinstance(where, int) else _beginning(where, phrases, encoder) for where, _ in phrases.sources
        ]
        made = [KINDS.index(form) for _, form in phrases.sources]
        return cls(places, made, beginnings, names, runs, np.concatenate(rows))

    def add_to(self, file: RuntimeFile, *, has_letters: bool) -> None:
        """Add the tables, behind properties of letters if the file does not have them."""
        if not has_letters:
            LetterTable.of_python().add_to(file)
        kinds = zip(self.columns, self.made, self.beginnings, self.names, self.runs, strict=True)
        for column, made, beginning, names, runs in kinds:
            file.add("<u4", [column, made])
            file.add("u1", np.frombuffer(beginning, dtype=np.uint8))
            names.add_to(file)
            for table in runs:
                table.add_to(file)


def _runs(names: StringTable, keys: list[Integers]) -> list[PairTable]:
    """Tables of runs whose keys are numbers of a run and of a name."""
    n = len(names.place)
    place, found = names.place, list[PairTable]()
    for own in keys:
        run, last = np.divmod(own, max(n, 1))
        found.append(PairTable.of(place[run], names.place[last], len(place), n))
        place = found[-1].place
    return found


def _beginning(name: str, phrases: Phrases, encoder: FeatureEncoder) -> bytes:
    """The beginning of attributes that have the text of a feature: that of those which make the names of phrases.

    Where no such feature is left, as none of words that are all rare, the columns of the training tokens tell.
    """
    own = [k for k, (where, _) in enumerate(phrases.sources) if where == name]
    seen = {} if encoder.seen is None else encoder.seen.columns
    marks = [mark for mark in MARKS if _makes_names(name + mark, own, phrases, encoder)]
    marks = marks or [mark for mark in MARKS if name + mark in seen]
    if len(marks) != 1:
        found = f"both {name + '='!r} and {name + ':'!r}" if marks else f"neither {name + '='!r} nor {name + ':'!r}"
        raise ValueError(
            f"a SequenceLabeler whose segments have the feature {name!r} cannot be exported where {found} begin "
            "features that may be its text, in lists or in dicts: the runtime needs one of the two"
        )
    return (name + marks[0]).encode("utf-8", "surrogatepass")


def warn_of_others(phrases: Phrases, encoder: FeatureEncoder) -> None:
    """Warn of features of training whose attributes begin as the word does, and are not its text.

    Python's runtime and JavaScript's see the dicts and mark them; a program in C has to.
    """
    seen = {} if encoder.seen is None else encoder.seen.columns
    found = set[str]()
    for name in {where for where, _ in phrases.sources if isinstance(where, str)}:
        beginning = _beginning(name, phrases, encoder).decode("utf-8", "surrogatepass")
        found |= {column for column in seen if column.startswith(beginning) and column != beginning}
        if name in seen and name not in encoder.feature_names:  # a list or dict, not a number
            found.add(name)
    if found:
        warn(
            f"training had features that a program in C has to tell from the words of phrases: add STRUCTSVM_NO_TEXT "
            f"to the sizes of the attributes of {', '.join(map(repr, sorted(found))):.200}, or they are read as words",
            AdviceWarning,
        )


def _makes_names(beginning: str, own: list[int], phrases: Phrases, encoder: FeatureEncoder) -> bool:
    """Whether what is behind the beginning of a feature makes a name of phrases."""
    texts = [text.removeprefix(beginning) for text in encoder.feature_names if text.startswith(beginning)]
    return any(MADE[phrases.sources[k][1]](text) in phrases.numbers[k] for k in own for text in texts)


def add_segments(file: RuntimeFile, model: SequenceModel, weights: Floats, form: Form, phrases: PhraseTables) -> None:
    """Add all before the weights of tokens: sizes, labels and tags, scores of label pairs and lengths, nodes."""
    encoder, oracle, temperature = model.encoder, model.oracle, model.temperature
    layout, nodes, first = encoder.layout, oracle.segment_tables, oracle.n_token_features
    shown = list(dict.fromkeys(map(str, model.shown)))
    is_scaled = temperature not in (None, 1.0)
    n_columns, n_placed = (0, 0) if layout is None else (layout.n_columns, len(layout.placed))
    file.add("<u4", [
        KIND, oracle.n_labels, len(shown), n_columns, encoder.n_features, form.number, n_placed, is_scaled,
        len(oracle.tags), oracle.max_length, len(phrases.names), len(phrases.rows), len(nodes.labels),
        len(nodes.groups), len(nodes.heads), len(nodes.on), len(nodes.last), len(nodes.singles),
    ])  # fmt: skip
    file.add("<f4", [temperature or 0.0])
    file.add_texts(shown)
    file.add("<u4", [shown.index(str(label)) for label in model.shown])
    file.add("<i4", oracle.tags)
    lengths = slice(first + oracle.n_labels + 2, oracle.first_bigram_row)
    for divisor in (1.0, temperature) if is_scaled else (1.0,):
        scaled = weights / np.float32(divisor)
        file.add("<f4", scaled[first : first + oracle.n_labels + 1])
        file.add("<f4", scaled[lengths, : len(oracle.tags)])
    for name, array in nodes._asdict().items():
        if name != "end_at":  # a label has it
            file.add("<i4", array)
