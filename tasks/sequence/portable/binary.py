"""Models of label sequences for the runtime in C: tokens, templates and weights as its file has them."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from structsvm.export.binary import RuntimeFile, StringTable, TupleTable
from structsvm.export.folders import files_of
from structsvm.export.letters import LetterTable
from structsvm.export.page import page_of
from structsvm.export.weights import form_of
from structsvm.features.columns import Vocabulary
from structsvm.features.functions.places import PLACES
from structsvm.features.functions.strings import KIND
from structsvm.features.template_features import TemplateEncoder, TemplateVocabulary
from structsvm.tasks.sequence.portable.segments import PhraseTables, add_segments, warn_of_others

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from structsvm.arrays import Floats, Integers
    from structsvm.export.weights import Form
    from structsvm.features.encoder import FeatureEncoder
    from structsvm.features.templates import TemplateLayout
    from structsvm.oracles.chain import LabelChain
    from structsvm.structures.languages.nodes import Nodes
    from structsvm.tasks.sequence.model import SequenceModel

# Functions of strings and of places, as the runtime numbers them.
FUNCTIONS = (
    "x", "lower", "shape", *(f"prefix{k}" for k in range(1, 7)), *(f"suffix{k}" for k in range(1, 7)), "digit",
    "capital", "hyphen", "form", "length", "opening", "closing", "pattern", "vowels", "X",
)  # fmt: skip
# A kind is looked up by the pattern of its words.
NUMBERS = {name: k for k, name in enumerate(FUNCTIONS)} | {KIND: FUNCTIONS.index("pattern")}
PLAIN = ("x", "X", "hyphen")  # functions that need no properties of letters
N_SHOWN = 6  # words on a page


def runtime_files(model: SequenceModel, to: str) -> dict[str, bytes]:
    """The files of a folder for "c", "wasm" or "page".

    Raises
    ------
    ValueError
        As `runtime_bytes`; and for a page of tokens that are not words.
    ImportError
        If WebAssembly is asked for and cannot be compiled.

    Warns
    -----
    AdviceWarning
        For "c" and a model of segments, if a program has to mark attributes: see `warn_of_others`.
    """
    data, structure = runtime_bytes(model), "sequences" if model.segments is None else "segments"
    if to == "c" and model.segments is not None:
        warn_of_others(model.segments.phrases, model.encoder)
    if to != "page":
        return files_of(to, data, structure)
    layout = model.encoder.layout
    if layout is None or layout.n_columns != 1:
        raise ValueError("a page labels words, and the tokens of this model are no single column of words")
    words = known_words(model)
    return page_of(files_of("wasm", data, structure), "Labels of words", " ".join(words))


def known_words(model: SequenceModel) -> list[str]:
    """Some words that the model knows, to show first."""
    vocabulary, _ = model.encoder.vocabularies
    if not isinstance(vocabulary, TemplateVocabulary):
        return []
    plain = [k for k, (function, _) in enumerate(vocabulary.layout.sources) if function == "x"]
    return (
        vocabulary.tables[0][plain[0]].tolist(range(min(N_SHOWN, len(vocabulary.tables[0][plain[0]])))) if plain else []
    )


def runtime_bytes(model: SequenceModel) -> bytes:
    """The file of a model for the runtime.

    Raises
    ------
    ValueError
        For a model that the runtime does not support; the message names what it has.
    """
    check_supported(model)
    phrases = None if model.segments is None else PhraseTables.of(model.segments.phrases, model.encoder)
    model = model.narrowed_by_weights() if model.encoder.can_narrow else model
    encoder, oracle, layout = model.encoder, model.oracle, model.encoder.layout
    weights = model.weights.reshape(oracle.n_rows, oracle.stride)[:, : oracle.n_labels]
    sets = [Templates.of(one) if isinstance(one, TemplateVocabulary) else None for one in encoder.vocabularies]
    rows = np.arange(oracle.n_token_features) if sets[0] is None else sets[0].rows()
    others = np.arange(oracle.n_rows - oracle.first_bigram_row) if phrases is None else phrases.rows
    chosen = weights[np.concatenate([rows, oracle.first_bigram_row + others])]
    file = RuntimeFile()
    if phrases is None:
        form = form_of(chosen, oracle.n_labels)
        add_chain(file, model, weights, form)
    else:
        chosen[len(rows) :, len(oracle.tags) :] = 0.0  # rows of phrases have a number per type
        form = form_of(chosen, oracle.n_labels)
        add_segments(file, model, weights, form, phrases)
    for dtype, array in form.arrays:
        file.add(dtype, array)
    if layout is None:
        add_attributes(file, encoder)
    else:
        add_columns(file, layout, sets, has_phrases=phrases is not None)
    if phrases is not None:
        phrases.add_to(file, has_letters=layout is not None)
    return file.contents()


def add_chain(file: RuntimeFile, model: SequenceModel, weights: Floats, form: Form) -> None:
    """Add all before the weights of tokens: sizes, labels, scores of label pairs, an automaton."""
    encoder, oracle, temperature = model.encoder, model.oracle, model.temperature
    layout, nodes = encoder.layout, oracle.nodes
    is_scaled = temperature not in (None, 1.0)
    file.add("<u4", [
        1, oracle.n_labels, oracle.order, 0 if layout is None else layout.n_columns, encoder.n_features,
        encoder.n_bigrams, layout is None, form.number, nodes is not None,
        0 if layout is None else len(layout.placed), is_scaled,
    ])  # fmt: skip
    file.add("<f4", [temperature or 0.0])
    file.add_texts(model.labels)
    for divisor in (1.0, temperature) if is_scaled else (1.0,):
        file.add("<f4", transitions_of(oracle, weights / np.float32(divisor)))
    if nodes is not None:
        add_nodes(file, nodes)


def check_supported(model: SequenceModel) -> None:
    """Raise ValueError, naming it, for what the runtime does not have."""
    encoder, oracle = model.encoder, model.oracle
    sets = [one for one in encoder.vocabularies if isinstance(one, TemplateEncoder)]
    functions = {item.function for one in sets for template in one.layout.templates for item in template.items}
    unknown = sorted(functions - set(NUMBERS) - set(PLACES))
    for holds, what in [
        (model.segments is not None and model.segments.depends_on_neighbours, "segments in IOB1 or IOE1"),
        (encoder.kind == "numeric", "rows of numbers"),
        (model.units is not None, "named features with numbers"),
        (encoder.hash_bits is not None, "hashed features (hash_bits)"),
        (model.is_greedy, "greedy inference"),
        (bool(getattr(oracle, "rules", ())), "rules that are no single automaton"),
        (not all(isinstance(label, str) for label in model.labels), "labels that are not str"),
        (bool(unknown), f"Wapiti's commands with regular expressions (%{unknown[0] if unknown else ''})"),
    ]:
        if holds:
            raise ValueError(f"a SequenceLabeler with {what} cannot be exported: the runtime does not support them")


# ---- scores -------------------------------------------------------------------------------------------------------


def transitions_of(oracle: LabelChain, weights: Floats) -> Floats:
    """Rows of scores (groups * predecessors + 2, n_labels): into each label, of the first, of the last; -inf: excluded.

    The sums are those of the decoder, in its order.
    """
    K, first = oracle.n_labels, oracle.n_token_features
    pairs, ends = weights[first : first + K], weights[first + K : first + K + 2].copy()
    if not oracle.end:
        ends[1] = 0.0
    if oracle.order == 2:
        triples = weights[first + K + 2 : first + K + 2 + (K + 1) * K].reshape(K + 1, K, K)
        pairs = pairs[:, None, :] + triples.transpose(1, 0, 2)  # by label before, then that before it
    allowed, allowed_first, allowed_last = oracle.allowed
    if allowed is not None:
        pairs = np.where(allowed[:, None, :] if oracle.order == 2 else allowed, pairs, np.float32(-np.inf))
    for row, mask in zip(ends, (allowed_first, allowed_last), strict=True):
        if mask is not None:
            row[~mask] = -np.inf
    table = pairs.reshape(-1, K)
    behind = np.zeros((K + 1 if oracle.order == 2 else 0, K), dtype=np.float32)  # nothing follows what is before all
    return np.concatenate([table, behind, ends]).astype(np.float32)


def add_nodes(file: RuntimeFile, nodes: Nodes) -> None:
    """The pairs of labels and states of an automaton."""
    file.add("<u4", [len(nodes.labels), len(nodes.following)])
    for array in (
        nodes.labels, nodes.rows, nodes.group, nodes.ends, nodes.groups, nodes.following, nodes.first, nodes.origins,
        nodes.origin,
    ):  # fmt: skip
        file.add("<i4", array)


# ---- features -----------------------------------------------------------------------------------------------------


def add_attributes(file: RuntimeFile, encoder: FeatureEncoder) -> None:
    """The names of features, which of them pairs of labels have, and the columns that tokens need."""
    names = Vocabulary.from_strings(encoder.feature_names)
    table = StringTable.of(names.data, names.starts)
    table.add_to(file, divides=True)
    file.add_indices(table.order)
    chosen = encoder.bigram_features
    file.add("<u4", [] if chosen is None else chosen)
    required = [] if encoder.seen is None else encoder.seen.required
    file.add_texts(sorted(required, key=lambda name: (len(name.encode("utf-8", "surrogatepass")), name)))


def add_columns(
    file: RuntimeFile, layout: TemplateLayout, sets: Sequence[Templates | None], *, has_phrases: bool
) -> None:
    """Functions of places, properties of letters, and the templates of tokens and of pairs of labels."""
    file.add("<u4", [[list(PLACES).index(function), column] for function, column in layout.placed])
    used = {function for one in sets if one is not None for function, _ in one.vocabulary.layout.sources}
    needs_letters = has_phrases or bool(layout.placed) or not used <= set(PLAIN)
    (LetterTable.of_python() if needs_letters else LetterTable.empty()).add_to(file)
    for one in sets:
        if one is not None:
            add_templates(file, one)
        else:
            for items in ([0] * 6, [], [], [0], [], [], []):
                file.add("<u4", items)


class Templates(NamedTuple):
    """The tables of templates.

    Attributes
    ----------
    vocabulary : TemplateVocabulary
    strings : list of StringTable
        The strings of each source.
    places : list of ndarray
        The runtime's code of each code of a source.
    tables : list of TupleTable
        The features of each space.
    are_runs : list of bool
        Whether a space's features are numbered as they stand in its table. A token has one of them at most, so that
        their order among one another changes no sum.
    """

    vocabulary: TemplateVocabulary
    strings: list[StringTable]
    places: list[NDArray[np.int64]]
    tables: list[TupleTable]
    are_runs: list[bool]

    @classmethod
    def of(cls, vocabulary: TemplateVocabulary) -> Templates:
        layout, margin = vocabulary.layout, vocabulary.layout.left + vocabulary.layout.right
        strings, features, their_codes = vocabulary.tables
        sorted_strings = [StringTable.of(one.data, one.starts) for one in strings]
        places = [np.concatenate([np.arange(margin), table.place + margin]) for table in sorted_strings]
        tables = []
        for space, ids, codes in zip(layout.spaces, features, their_codes, strict=True):
            moved = np.empty(codes.shape, dtype=np.int64)
            for k, source in enumerate(space):
                moved[:, k] = places[source][codes[:, k]]
            tables.append(TupleTable.of(moved, ids, [len(places[source]) for source in space]))
        uses = Counter(layout.template_space)
        runs = [not layout.of_bigrams and uses[k] == 1 and table.is_run for k, table in enumerate(tables)]
        return cls(vocabulary, sorted_strings, places, tables, runs)

    def rows(self) -> Integers:
        """The feature of each row of weights."""
        rows = np.arange(self.vocabulary.n_features)
        for table, is_run in zip(self.tables, self.are_runs, strict=True):
            if is_run:
                rows[table.ids.min() + np.arange(len(table.ids))] = table.ids
        return rows


def add_templates(file: RuntimeFile, given: Templates) -> None:
    """A set of templates, its sources by their columns."""
    vocabulary, layout = given.vocabulary, given.vocabulary.layout
    order = sorted(range(len(layout.sources)), key=lambda i: layout.sources[i][1])
    number = {source: k for k, source in enumerate(order)}
    templates = vocabulary.order().tolist()
    items = [
        [(number[source], item.row) for source, item in zip(layout.spaces[space], template.items, strict=True)]
        for template, space in zip(layout.templates, layout.template_space, strict=True)
    ]
    file.add("<u4", [
        len(order), layout.left, layout.right, len(templates), len(layout.spaces), layout.of_bigrams,
    ])  # fmt: skip
    file.add("<u4", [[NUMBERS[layout.sources[i][0]], layout.sources[i][1]] for i in order])
    file.add("<i4", [_outside(vocabulary, i, given.places[i]) for i in order])
    file.add("<u4", np.cumsum([0, *(len(items[k]) for k in templates)]))
    file.add("<u4", [layout.template_space[k] for k in templates])
    file.add("<i4", [part for k in templates for item in items[k] for part in item])
    file.add("<u4", [len(space) for space in layout.spaces])
    for i in order:
        given.strings[i].add_to(file)
    for table, is_run in zip(given.tables, given.are_runs, strict=True):
        table.add_to(file, as_run=is_run)


def _outside(vocabulary: TemplateVocabulary, source: int, places: NDArray[np.int64]) -> list[int]:
    """The codes of a source outside a sequence."""
    strings = vocabulary.layout.strings_outside
    if strings is None:
        return list(range(vocabulary.layout.left + vocabulary.layout.right))
    number = {text: k for k, text in enumerate(vocabulary.tables[0][source].tolist())}
    margin = len(strings[source])
    return [int(places[number[text] + margin]) if text in number else -1 for text in strings[source]]
