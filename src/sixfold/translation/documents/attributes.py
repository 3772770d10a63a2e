"""Attributes of XML that people read, such as the descriptions of pictures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sixfold.translation.documents.units import Piece, Unit, make_unit
from sixfold.translation.documents.xml import escape_attribute
from sixfold.translation.documents.xml_tree import Element


def attribute_units(element: Element, names: Mapping[str, Sequence[str]]) -> list[Unit]:
    """Return the attributes of an element that people read as units. `names`: the attributes by element."""
    units = []
    for name in names.get(element.name, ()):
        if name in element.attributes:
            value, span = element.attributes[name]
            unit = make_unit([Piece(span, value)], escape_attribute)
            units += [unit] if unit is not None else []
    return units
