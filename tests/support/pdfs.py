"""Small PDFs for tests, drawn line by line with ReportLab."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass

from reportlab.lib.pdfencrypt import StandardEncryption
from reportlab.lib.utils import ImageReader
from reportlab.pdfgen.canvas import Canvas


@dataclass(frozen=True)
class Text:
    """A text on a page: position of its start, in points, and font."""

    x: float
    y: float
    text: str
    size: float = 10
    font: str = "Helvetica"
    angle: float = 0
    """The direction of the text in degrees, counted from the right and upwards."""


def pdf(
    pages: Sequence[Sequence[Text]],
    *,
    outline: Sequence[tuple[str, int, int]] = (),
    title: str = "",
    password: str = "",
    rotate: int = 0,
) -> bytes:
    """A PDF with these texts. The outline lists title, level (from 0) and page (from 1).

    `rotate` is the /Rotate of all pages.
    """
    buffer = io.BytesIO()
    encrypt = StandardEncryption(password, canPrint=0) if password else None
    canvas = Canvas(buffer, pagesize=(595, 842), encrypt=encrypt, invariant=True)
    if title:
        canvas.setTitle(title)
    for number, page in enumerate(pages, 1):
        canvas.setPageRotation(rotate)
        for one in page:
            canvas.saveState()
            canvas.translate(one.x, one.y)
            canvas.rotate(one.angle)
            canvas.setFont(one.font, one.size)
            canvas.drawString(0, 0, one.text)
            canvas.restoreState()
        for entry, level, on_page in outline:
            if on_page == number:
                canvas.bookmarkPage(entry)
                canvas.addOutlineEntry(entry, entry, level)
        canvas.showPage()
    canvas.save()
    return buffer.getvalue()


def scanned() -> bytes:
    """A PDF whose only page is a picture."""
    from PIL import Image

    buffer = io.BytesIO()
    canvas = Canvas(buffer, pagesize=(200, 200), invariant=True)
    canvas.drawImage(ImageReader(Image.new("L", (20, 20), 128)), 10, 10, 180, 180)
    canvas.save()
    return buffer.getvalue()


def turned(texts: Sequence[Text], angle: int) -> list[Text]:
    """Texts of a page in landscape or, for 180 degrees, of an upright one, turned to a page of 595 × 842 points."""

    def place(one: Text) -> tuple[float, float]:
        return {90: (595 - one.y, one.x), 180: (595 - one.x, 842 - one.y), 270: (one.y, 842 - one.x)}[angle]

    return [Text(*place(one), one.text, one.size, one.font, angle) for one in texts]


def paragraph(top: float, lines: Sequence[str], *, x: float = 72, size: float = 10) -> list[Text]:
    """Lines below each other, as of one paragraph."""
    return [Text(x, top - 1.2 * size * number, line, size) for number, line in enumerate(lines)]
