"""XMI, the XML of UIMA's annotated documents: words, sentences and annotations read and added.

Offsets of UIMA count halves of characters beyond the basic plane (UTF-16); here they are characters.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from itertools import accumulate
from xml.etree import ElementTree as ET

from structsvm.serve.models import Span
from structsvm.serve.values import an_element

XMI = "http://www.omg.org/XMI"
CAS = "http:///uima/cas.ecore"
SEGMENTATION = "de.tudarmstadt.ukp.dkpro.core.api.segmentation.type."
ID = f"{{{XMI}}}id"
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
        self._units = list(accumulate((1 + (character > "\uffff") for character in self.text), initial=0))

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

    def spans(self, layer: str, feature: str) -> list[Span]:
        """The annotations of a layer that have a label."""
        return [
            Span(*self._place(element), label) for element in self._of(layer) if (label := element.get(feature, ""))
        ]

    def add(self, layer: str, feature: str, span: Span, more: dict[str, str]) -> None:
        """Add an annotation with a label and other features."""
        ids = [int(own) for element in self._root if (own := element.get(ID, "")).isdigit()]
        number = str(max(ids, default=0) + 1)
        place = {"begin": str(self._units[span.start]), "end": str(self._units[span.end])}
        features = {ID: number, "sofa": self._sofa.get(ID, ""), **place, feature: span.label, **more}
        self._root.insert(list(self._root).index(self._sofa), ET.Element(_tag(layer), features))
        self._view.set("members", f"{self._view.get('members', '')} {number}".strip())

    def to_xmi(self) -> str:
        """The document as text."""
        return ET.tostring(self._root, encoding="unicode", xml_declaration=True)

    def _of(self, layer: str) -> Iterator[ET.Element]:
        return self._root.iterfind(_tag(layer))

    def _place(self, element: ET.Element) -> tuple[int, int]:
        begin, end = element.get("begin", ""), element.get("end", "")
        if not (begin.isdigit() and end.isdigit()) or not int(begin) <= int(end) <= self._units[-1]:
            raise ValueError(f"xmi: an annotation from {begin!r:.20} to {end!r:.20} in {self._units[-1]} characters")
        return bisect_left(self._units, int(begin)), bisect_left(self._units, int(end))


def _tag(layer: str) -> str:
    """The XML name of a type: packages are the namespace."""
    package, _, name = layer.rpartition(".")
    if not name.isidentifier():
        raise ValueError(f"layer: {layer!r:.100} is no name of a type")
    return f"{{http:///{package.replace('.', '/') or 'uima/noNamespace'}.ecore}}{name}"
