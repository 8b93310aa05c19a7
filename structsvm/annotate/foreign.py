"""JSON lines of other programs, in annotate's own form: ``text`` or ``words``, with ``spans``, ``labels`` or ``label``.

Read are lines of doccano, Prodigy, spaCy and Hugging Face's datasets, and of Label Studio's JSON-MIN.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence

from structsvm.serve.values import Object, utf16_offsets

# The field in which Prodigy has how a question was asked, and its values where one answer is about one span alone.
VIEW, ONE_SPAN = "_view_id", ("ner", "pos")
# Names of spans, in the order in which they are looked for, and of labels per word.
SPANS, TAGS = ("spans", "label", "labels", "entities"), ("labels", "ner_tags")
# The beginning, end and label of a span: our own, Prodigy's and spaCy's; doccano's; Label Studio's.
SPAN = ("start", "end", "label")
SPAN_NAMES = (SPAN, ("start_offset", "end_offset", "label"), ("start", "end", "labels"))
# Fields of JSON-MIN around those that are named after the controls of a project, and of texts.
FIRST, LAST = "id", "annotator"
TIMES = {"annotation_id", "created_at", "updated_at", "lead_time"}
NO_CONTROLS = {FIRST, LAST, *TIMES, "text", "other", "words", "tokens"}


def own_form(value: Object, task: str) -> Object:
    """A line in annotate's own form, without labels if it has no answer or Prodigy's user did not accept it.

    Raises
    ------
    ValueError
        For labels that are not read, and for spans that are not where their text is.
    """
    nested = value.get("annotations")
    are_objects = isinstance(nested, list) and any(isinstance(one, Mapping) for one in nested)
    if are_objects and not any(value.get(name) for name in (*SPANS, *TAGS)):
        raise ValueError("annotations: Label Studio's or doccano's own; export as JSON-MIN, or as JSONL with labels")
    words = _words_of(value, task)
    found = {"text": value.get("text"), "other": value.get("other"), "words": words}
    said, label = value.get("answer"), value.get("label")
    if said == "reject" and task != "sequence" and isinstance(label, str):
        return {**found, "wrong": [label]}
    if said in ("reject", "ignore"):
        return found
    value = _with_label(value, task)
    if task == "sequence":
        return {**found, **_labels_of(value, words)}
    return {**found, "label": _class_of(value), "wrong": value.get("wrong")}


def _words_of(value: Object, task: str) -> object:
    """The words of a line; Prodigy's tokens are objects, and those that are blank no words."""
    words, text = value.get("words"), value.get("text")
    words = value.get("tokens") if words is None else words
    if task == "pairs" or (task == "taxonomy" and isinstance(text, str) and text.strip()):
        return None
    if not isinstance(words, list):
        return words
    found = [one.get("text") if isinstance(one, Mapping) else one for one in words]
    are_blank = [isinstance(one, Mapping) and str(one.get("text")).isspace() for one in words]
    spans = value.get("spans")
    if any(are_blank) and isinstance(spans, list) and any(isinstance(span, list) for span in spans):
        raise ValueError("spans that count words, and tokens that are blank: give spans in characters")
    return [word for word, is_blank in zip(found, are_blank, strict=True) if not is_blank]


# ------------------------------------------------------------------------ labels of texts


def _class_of(value: Object) -> object:
    """The label of a text: among Prodigy's options, as doccano's list of one, or itself."""
    options, chosen = value.get("options"), value.get("accept")
    if isinstance(options, list) and isinstance(chosen, list):
        return _only([_option_name(one, options) for one in chosen], "a text")
    label = value.get("label")
    if isinstance(label, Mapping) and "choices" in label:  # Label Studio's, of several
        label = label["choices"]
    return _only(label, "a text")


def _option_name(chosen: object, options: Sequence[object]) -> object:
    """The name of an option: its id, or for one with a number the text that it shows, if there is one."""
    if type(chosen) is not int:
        return chosen
    texts = [one.get("text") for one in options if isinstance(one, Mapping) and one.get("id") == chosen]
    return next((text for text in texts if isinstance(text, str)), str(chosen))


def _only(label: object, owner: str) -> object:
    """The one label of a list, or None for an empty one. Raises ValueError for several."""
    if not isinstance(label, list):
        return label
    if len(label) > 1:
        raise ValueError(f"label has {len(label)} labels, and {owner} has one")
    return label[0] if label else None


def _with_label(value: Object, task: str) -> Object:
    """A line of JSON-MIN with the field of its control as ``label``; others as they are.

    Raises ValueError where several fields may be the one.
    """
    if "annotation_id" not in value:
        return value
    names = list(value)
    start = names.index(FIRST) + 1 if FIRST in names else 0
    stop = names.index(LAST) if LAST in names else len(names)
    among = names[start:stop] if start <= stop else names
    is_one = _are_marked if task == "sequence" else _is_class
    found = [name for name in among if name not in NO_CONTROLS and is_one(value[name])]
    if "label" in found or not found:
        return value
    if len(found) > 1:
        raise ValueError(f"{' and '.join(found)}: each may have the labels: keep one, or name it label")
    others = {name: own for name, own in value.items() if name not in (*SPANS, *TAGS)}
    return {**others, "label": value[found[0]]}


def _are_marked(own: object) -> bool:
    """Whether a field has spans as Label Studio writes them."""
    names = set(SPAN_NAMES[-1])
    return isinstance(own, list) and own != [] and all(isinstance(one, Mapping) and names <= one.keys() for one in own)


def _is_class(own: object) -> bool:
    """Whether a field may be a choice of Label Studio."""
    return isinstance(own, str) or (isinstance(own, Mapping) and "choices" in own)


# ------------------------------------------------------------------------ labels of words


def _labels_of(value: Object, words: object) -> Object:
    """Labels per word, or spans and whether they are all; empty if a line says nothing of them."""
    if (tags := _tags_of(value)) is not None:
        return {"labels": tags}
    is_confirmed = value.get("complete") is True or value.get("answer") == "accept"
    spans, wrong = _spans_of(value, words, is_confirmed=is_confirmed), value.get("wrong") or []
    label = value.get("label")
    if not spans and isinstance(words, list) and _are_texts(label, len(words)):
        return {"labels": label}
    complete = value.get("complete", True)
    if value.get(VIEW) in ONE_SPAN or (VIEW not in value and _has_score(spans)):
        complete = False
    if spans is None or (spans == [] and not wrong and not (is_confirmed and complete)):
        return {}  # as other programs write a text that nobody has labelled
    return {"spans": spans, "wrong": _placed("wrong", wrong, _text_of(value, words)), "complete": complete}


def _tags_of(value: Object) -> object:
    """The labels of words. Raises ValueError for their numbers, whose names are elsewhere."""
    for name in TAGS:
        own = value.get(name)
        if isinstance(own, list) and own and all(type(one) is int for one in own):
            raise ValueError(f"{name} has the numbers of classes without their names: write the names in their place")
        are_spans = isinstance(own, list) and all(isinstance(one, (list, Mapping)) for one in own)
        if own is not None and not are_spans:
            return own
    return None


def _are_texts(own: object, n: int | None = None) -> bool:
    """Whether a value is a list of texts, of so many."""
    if not isinstance(own, list) or not own or n not in (None, len(own)):
        return False
    return all(isinstance(one, str) for one in own)


def _has_score(spans: object) -> bool:
    """Whether a model had proposed spans, as Prodigy's first versions write them."""
    return isinstance(spans, list) and any(isinstance(span, Mapping) and "score" in span for span in spans)


def _spans_of(value: Object, words: object, *, is_confirmed: bool) -> object:
    """The spans of a line, by the first name that has some, or that somebody confirmed to have none.

    Raises ValueError for lists of other things under these names; texts are classes of a text, and no spans.
    """
    empty = None
    for name in SPANS:
        own = value.get(name)
        if name == "spans" and own is not None and not isinstance(own, list):
            return own
        if not isinstance(own, list) or (name != "spans" and _are_texts(own)):
            continue
        if own or (name == "spans" and is_confirmed):
            return _placed(name, own, _text_of(value, words))
        empty = own
    return empty


def _text_of(value: Object, words: object) -> str:
    """The text in which the characters of spans are counted."""
    text = value.get("text")
    if isinstance(text, str):
        return text
    return " ".join(map(str, words)) if isinstance(words, list) else ""


def _placed(name: str, given: object, text: str) -> object:
    """Spans of characters as ``{"start", "end", "label"}``; our own of words, and what is no list, as they are.

    Label Studio counts characters, and in its first versions halves of them (UTF-16): the texts of its spans tell.
    Raises ValueError where they do not, and where another text stands.
    """
    if not isinstance(given, list):
        return given
    spans = [_span_object(name, one) for one in given]
    readings = [spans]
    if any(isinstance(one, Mapping) and "labels" in one for one in given) and max(text, default="") > "\uffff":
        units = utf16_offsets(text)
        readings.append([_in_characters(span, units) for span in spans])
    wrong = [next(filter(None, (_misfit(span, text) for span in own)), None) for own in readings]
    fitting = [own for own, fault in zip(readings, wrong, strict=True) if fault is None]
    if not fitting:
        raise ValueError(f"{name}: {wrong[0]}")
    if fitting[0] != fitting[-1]:
        raise ValueError(f"{name}: start and end fit as characters and as UTF-16, with other words: leave them out")
    return fitting[0]


def _span_object(name: str, one: object) -> object:
    """A span of characters: ``[start, end, label]``, or an object as another program has it."""
    if isinstance(one, list) and name in ("spans", "wrong"):
        return one
    if isinstance(one, list) and len(one) == 3:
        return dict(zip(SPAN, one, strict=True))
    for names in SPAN_NAMES:
        if isinstance(one, Mapping) and one.keys() >= set(names):
            start, end, label = (one[own] for own in names)
            return {**one, "start": start, "end": end, "label": _only(label, "a span")}
    raise ValueError(f"{name}: {one!r:.80} is no [start, end, label], and has no start, end and label")


def _in_characters(span: object, units: Sequence[int]) -> object:
    """A span in UTF-16 as one in characters."""
    if not isinstance(span, Mapping):
        return span
    places = {name: bisect_right(units, span[name]) - 1 for name in ("start", "end") if type(span[name]) is int}
    return {**span, **places}


def _misfit(span: object, text: str) -> str | None:
    """The fault of a span that has a text, and at whose place another one stands; None without such."""
    if not isinstance(span, Mapping) or not isinstance(own := span.get("text"), str):
        return None
    start, end = span.get("start"), span.get("end")
    if type(start) is not int or type(end) is not int or _bare(text[max(start, 0) : max(end, 0)]) == _bare(own):
        return None
    return f"at characters {start} to {end} stands {text[max(start, 0) : max(end, 0)]!r:.60}, not {own!r:.60}"


def _bare(text: str) -> list[str]:
    """The words of a text, in which Label Studio may write the end of a line as a backslash and n."""
    return text.replace("\\n", " ").split()
