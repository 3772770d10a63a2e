"""PPTX: the text of slides and notes, tables, charts and diagrams, and comments; layouts and masters stay."""

from __future__ import annotations

import re

from sixfold.translation.documents.office.drawing import PREFIXES
from sixfold.translation.documents.xml_texts import XmlTexts

MAIN_PART = "ppt/presentation.xml"
DRAWING_PARTS = re.compile(
    r"ppt/(?:slides/slide|notesSlides/notesSlide|charts/chart|diagrams/(?:data|drawing)|comments/modernComment_\w*)\w*\.xml"
)
COMMENT_PARTS = re.compile(r"ppt/comments/comment\d*\.xml")
COMMENTS = XmlTexts(frozenset(["p:text"]), prefixes=tuple(PREFIXES.items()))
