"""Dependency parsers in the binary file of the runtime in C; `structsvm.export` has the layout."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from structsvm.export.binary import RuntimeFile
from structsvm.export.folders import files_of
from structsvm.export.letters import LetterTable
from structsvm.export.texts import refusal
from structsvm.export.weights import add_numbers, form_of
from structsvm.tasks.dependency.pairs import GAP, SCALE
from structsvm.tasks.dependency.words import GIVEN

if TYPE_CHECKING:
    from structsvm.arrays import Floats, Integers
    from structsvm.tasks.dependency.model import DependencyModel
    from structsvm.tasks.dependency.pairs import SecondStage

TARGETS = ("c", "wasm")
KIND, NAME = 3, "DependencyParser"
MOST_LABELS, MOST_WORDS, MOST_TEMPLATES = 1 << 16, 1 << 14, 1 << 12
LEAST_ABSENT = 0.1  # a tag equal to the one that stands in for it
ROLES = 5  # words that a template of pairs may see


def runtime_files(model: DependencyModel, to: str) -> dict[str, bytes]:
    """The files of a folder for "c" or "wasm".

    Raises
    ------
    ValueError
        As `runtime_bytes`.
    ImportError
        If WebAssembly is asked for and cannot be compiled.
    """
    return files_of(to, runtime_bytes(model), "trees")


def runtime_bytes(model: DependencyModel) -> bytes:
    """The file of a model for the runtime.

    Raises
    ------
    ValueError
        For a model that the runtime does not support; the message names what it has.
    """
    check(model)
    oracle, stage, file = model.oracle, model.pairs, RuntimeFile()
    n_numbers = 1 << oracle.arc_bits
    rows = model.weights[n_numbers:].reshape(-1, oracle.stride)[:, : oracle.n_labels]
    form = form_of(rows, oracle.n_labels)
    absent = sum(1 << k for k, share in enumerate(shares(model)) if share == 0.0)
    of_pairs = (
        (0, 0) if stage is None else (stage.oracle.templates.size, 2 * stage.oracle.bits + stage.oracle.projective)
    )
    file.add("<u4", [
        KIND, oracle.n_labels, len(GIVEN), oracle.projective, model.coarse, absent, min(model.max_length, MOST_WORDS),
        *oracle.templates.sizes, oracle.arc_bits, oracle.row_bits, form.number,
        0 if oracle.root_label is None else oracle.root_label + 1, *of_pairs,
    ])  # fmt: skip
    unit = (0.0, 0.0, 0.0) if stage is None else (GAP * stage.unit, SCALE / stage.unit, stage.arc_unit)
    file.add("<f8", [model.temperature or 0.0, *unit, *logs_of_absence(model)])
    file.add_texts(model.labels)
    LetterTable.of_python().add_to(file)
    add_templates(file, model)
    add_numbers(file, model.weights[:n_numbers])
    for dtype, array in form.arrays:
        file.add(dtype, array)
    if stage is not None:
        add_pairs(file, stage)
    return file.contents()


def check(model: DependencyModel) -> None:
    """Raise ValueError, naming it, for what the runtime does not have."""
    n_templates = max(*model.oracle.templates.sizes, 0 if model.pairs is None else model.pairs.oracle.templates.size)
    for holds, what in [
        (model.own.sizes != (), "columns of the user's own"),
        (len(model.labels) > MOST_LABELS, f"more than {MOST_LABELS} labels"),
        (n_templates > MOST_TEMPLATES, f"more than {MOST_TEMPLATES} templates"),
    ]:
        if holds:
            raise ValueError(refusal(NAME, what))


def shares(model: DependencyModel) -> list[float | None]:
    """Per column that users give, the share of the words of training that had it; None: no template sees it."""
    seen = model.columns_seen
    return [None if name not in seen or model.seen is None else model.seen.columns[name].share for name in GIVEN]


def logs_of_absence(model: DependencyModel) -> Floats:
    """Per column the log of the probability that a word seems not to have it, `LEAST_ABSENT` at least."""
    return np.log([max(1.0 - (share or 0.0), LEAST_ABSENT) for share in shares(model)])


def add_templates(file: RuntimeFile, model: DependencyModel) -> None:
    """Templates of arcs and of labels: distances, what is between, what they see of either word."""
    templates = model.oracle.templates
    n_arc, n = templates.sizes[0], sum(templates.sizes)
    arrays = templates.arrays
    file.add("<i4", arrays["distance"][:n])
    file.add("<i4", arrays["between"][:n_arc])
    for name in ("head", "below"):
        add_parts(file, arrays[f"{name}_ptr"][: n + 1], arrays[f"{name}_parts"])


def add_parts(file: RuntimeFile, ptr: Integers, parts: Integers) -> None:
    """Pairs of an offset and a column, and where each template's begin."""
    file.add("<i4", ptr)
    file.add("<i4", parts[: 2 * int(ptr[-1])])


def add_pairs(file: RuntimeFile, stage: SecondStage) -> None:
    """Templates of pairs of arcs and their weights, those of arcs and of crossings last."""
    templates, n = stage.oracle.templates, stage.oracle.templates.size
    ptr = templates.arrays["words_ptr"]
    width = (len(ptr) - 1) // ROLES
    file.add("<i4", templates.arrays["sees"][:n])
    places = np.concatenate([ptr[role * width : role * width + n] for role in range(ROLES)] + [ptr[-1:]])
    add_parts(file, places, templates.arrays["words_parts"])
    add_numbers(file, stage.weights[:-2])
    file.add("<f4", stage.weights[-2:])
