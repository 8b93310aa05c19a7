"""XMI, the XML of UIMA's annotated documents: words, sentences and annotations read and added.

Offsets of UIMA count halves of characters beyond the basic plane (UTF-16); here they are characters.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from xml.etree import ElementTree as ET

from structsvm.serve.models import Span
from structsvm.serve.values import an_element, utf16_offsets

XMI = "http://www.omg.org/XMI"
CAS = "http:///uima/cas.ecore"
SEGMENTATION = "de.tudarmstadt.ukp.dkpro.core.api.segmentation.type."
ID = f"{{{XMI}}}id"
# Digits of a number, and attributes of spans that are no labels.
MAX_DIGITS, RESERVED = 18, ("begin", "end", "sofa", "xmlns")
ET.register_namespace("xmi", XMI)
ET.register_namespace("cas", CAS)


class Document:
    """A document in XMI.

    Parameters
    ----------
    xmi : str

    Attributes
    ----------
    text : str

    Raises
    ------
    ValueError
        For anything but XMI of a document with one text.
    """

    def __init__(self, xmi: str) -> None:
        self._root = an_element(xmi, "xmi")
        sofas = self._root.findall(f"{{{CAS}}}Sofa")
        views = self._root.findall(f"{{{CAS}}}View")
        if len(sofas) != 1 or len(views) != 1:
            raise ValueError(f"xmi: a document has one text and one view, found {len(sofas)} and {len(views)}")
        self._sofa, self._view = sofas[0], views[0]
        self.text = self._sofa.get("sofaString", "")
        # Where each character begins, in UTF-16.
        self._units = utf16_offsets(self.text)

    def places(self, layer: str) -> list[tuple[int, int]]:
        """Where the annotations of a layer begin and end, sorted."""
        return sorted(self._place(element) for element in self._of(layer))

    @property
    def words(self) -> list[tuple[int, int]]:
        """Where the words begin and end."""
        return self.places(f"{SEGMENTATION}Token")

    @property
    def sentences(self) -> list[tuple[int, int]]:
        """Where the sentences begin and end; the whole text if there are none."""
        return self.places(f"{SEGMENTATION}Sentence") or [(0, len(self.text))]

    def spans(self, layer: str, feature: str, *, without: str = "") -> list[Span]:
        """The annotations of a layer that have a label, without those of which another feature is true."""
        return [
            Span(*self._place(element), label)
            for element in self._of(layer)
            if (label := element.get(feature, "")) and element.get(without) != "true"
        ]

    def add(self, layer: str, feature: str, added: Sequence[tuple[Span, Mapping[str, str]]]) -> None:
        """Add annotations: spans with the feature's value as their labels, and other features of each."""
        tag, feature, sofa = _tag(layer), checked_feature(feature), self._sofa.get(ID, "")
        first = 1 + max((_number(element.get(ID, "")) or 0 for element in self._root), default=0)
        elements = []
        for number, (span, more) in enumerate(added, first):
            place = {"begin": str(self._units[span.start]), "end": str(self._units[span.end])}
            features = {ID: str(number), "sofa": sofa, **place, feature: span.label, **more}
            elements.append(ET.Element(tag, features))
        at = list(self._root).index(self._sofa)
        self._root[at:at] = elements
        self._view.set("members", " ".join([*self._view.get("members", "").split(), *map(_id_of, elements)]))

    def to_xmi(self) -> str:
        """The document as text."""
        return ET.tostring(self._root, encoding="unicode", xml_declaration=True)

    def _of(self, layer: str) -> Iterator[ET.Element]:
        return self._root.iterfind(_tag(layer))

    def _place(self, element: ET.Element) -> tuple[int, int]:
        given = element.get("begin", ""), element.get("end", "")
        begin, end = map(_number, given)
        if begin is None or end is None or not begin <= end <= self._units[-1]:
            raise ValueError(
                "xmi: an annotation from {!r:.20} to {!r:.20} in {} characters".format(*given, self._units[-1])
            )
        return bisect_left(self._units, begin), bisect_left(self._units, end)


def _number(text: str) -> int | None:
    """A number of an attribute, None for anything else."""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= MAX_DIGITS else None


def _id_of(element: ET.Element) -> str:
    return element.get(ID, "")


def checked_feature(name: str) -> str:
    """The name of a feature that is a label. Raises ValueError for anything else, and for features of all spans."""
    if not _is_name(name) or name in RESERVED:
        raise ValueError(f"feature: {name!r:.100} is no name of a feature with a label")
    return name


def _is_name(text: str) -> bool:
    """Whether a text is a name in UIMA and in XML, which has fewer letters than Python."""
    if not text.isidentifier():
        return False
    try:
        ET.fromstring(f"<{text}/>")  # noqa: S314 (an identifier has no entities)
    except ET.ParseError:
        return False
    return True


def _tag(layer: str) -> str:
    """The XML name of a type: packages are the namespace."""
    package, _, name = layer.rpartition(".")
    if not all(map(_is_name, layer.split("."))):
        raise ValueError(f"layer: {layer!r:.100} is no name of a type")
    return f"{{http:///{package.replace('.', '/') or 'uima/noNamespace'}.ecore}}{name}"
