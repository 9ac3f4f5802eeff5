"""What Word, PowerPoint and Excel draw with the same elements: text of shapes, tables, charts and diagrams."""

from __future__ import annotations

from collections.abc import Iterator

from perikope.formats._extraction.blocks import FileBlock
from perikope.formats._extraction.docx_formulas import formula_text
from perikope.formats._extraction.ooxml import OFFICE, STRICT, Parts, relation_id
from perikope.formats._extraction.package import LONGEST_REPEATED, MOST_COLUMNS, Element, attribute, block_of, number, table_of

DRAWING_SPACES = {
    "c": (f"{OFFICE}/drawingml/2006/chart", f"{STRICT}/drawingml/chart"),
    "cx": ("http://schemas.microsoft.com/office/drawing/2014/chartex",),
    "dgm": (f"{OFFICE}/drawingml/2006/diagram", f"{STRICT}/drawingml/diagram"),
    "a14": ("http://schemas.microsoft.com/office/drawing/2010/main",),
}
"""The namespaces of drawings."""
DRAWN = ("a:tbl", "c:chart", "cx:chart", "dgm:relIds")
"""What a drawing holds, besides shapes."""


class Drawings:
    """The drawings in one part of a file. A chart or a diagram is read once, however often the part shows it."""

    def __init__(self, parts: Parts, part: str) -> None:
        self._parts, self._names = parts, parts.names
        self._related = {relation.id: relation.part for relation in parts.relations(part)}
        self._read: set[str] = set()

    def text(self, paragraph: Element) -> str:
        """The text of an `a:p`."""
        pieces = []
        for child in self._parts.children(paragraph):
            name = self._names(child)
            if name in ("a:r", "a:fld"):
                pieces += [one.text or "" for one in child if self._names(one) == "a:t"]
            elif name == "a:br":
                pieces.append("\n")
            elif name == "a14:m":
                pieces.append(formula_text(child, self._names))
        return "".join(pieces)

    def paragraphs(self, body: Element | None) -> Iterator[FileBlock]:
        """The paragraphs of a text body; those with a level or a bullet of their own are items."""
        for paragraph in self._parts.inside(body, "a:p"):
            properties = self._parts.child(paragraph, "a:pPr")
            own = {self._names(one) for one in (properties if properties is not None else ())}
            is_item = number(attribute(properties, "lvl")) > 0 or not own.isdisjoint(("a:buChar", "a:buAutoNum", "a:buBlip"))
            yield block_of("li" if is_item else "p", self.text(paragraph))

    def graphic(self, holder: Element, *, values: bool = True) -> list[FileBlock]:
        """The table, the chart or the diagram in an `a:graphic`; without `values`, a chart has its titles only."""
        data = self._parts.child(holder, "a:graphicData")
        children = self._parts.children(data) if data is not None else ()
        return [block for child in children if self._names(child) in DRAWN for block in self.drawn(child, values=values)]

    def drawn(self, element: Element, *, values: bool = True) -> list[FileBlock]:
        """The blocks of one of the elements `DRAWN`."""
        name = self._names(element)
        if name == "a:tbl":
            return self._table(element)
        if name == "dgm:relIds":
            return self._diagram(self._part(relation_id(element, "dm")))
        return self._chart(self._part(relation_id(element)), values)

    def _part(self, id: str) -> Element | None:
        part = self._related.get(id, "")
        if not part or part in self._read:
            return None
        self._read.add(part)
        return self._parts.package.xml(part)

    def _table(self, table: Element) -> list[FileBlock]:
        rows: list[list[str]] = []
        for row in self._parts.inside(table, "a:tr"):
            texts: list[str] = []
            above = rows[-1] if rows else []
            beside = ""
            for cell in list(self._parts.inside(row, "a:tc"))[:MOST_COLUMNS]:
                paragraphs = self._parts.inside(cell, "a:txBody", "a:p")
                text = " ".join(" ".join(map(self.text, paragraphs)).split())
                if not text and attribute(cell, "hMerge") in ("1", "true"):
                    text = beside
                elif not text and attribute(cell, "vMerge") in ("1", "true") and len(texts) < len(above):
                    text = above[len(texts)]
                texts.append(text)
                beside = text if len(text) <= LONGEST_REPEATED else ""
            rows.append(texts)
        has_header = attribute(self._parts.child(table, "a:tblPr"), "firstRow") in ("1", "true")
        return table_of(rows, int(has_header))

    def _chart(self, root: Element | None, values: bool) -> list[FileBlock]:
        """The title, the titles of the axes, and a table with one row per category and one column per series."""
        if root is None or self._names(root) not in ("c:chartSpace", "cx:chartSpace"):
            return []
        titles = [block_of("caption", text) for one in self._all(root, "c:title", "cx:title") if (text := self._title(one))]
        if not values:
            return titles
        if self._names(root) == "cx:chartSpace":
            texts = [one.text or "" for one in self._all(root, "cx:pt", "cx:v")]
            return titles + [block_of("p", text) for text in dict.fromkeys(texts)]
        tables: dict[tuple[str, ...], list[tuple[str, dict[int, str]]]] = {}
        for series in self._all(root, "c:ser"):
            name = " ".join(self._values(self._parts.child(series, "c:tx")).values())
            shown, labels = (self._first_values(series, *names) for names in (("c:val", "c:yVal"), ("c:cat", "c:xVal")))
            count = max((*shown, *labels), default=-1) + 1
            if count <= 2 * (len(shown) + len(labels)):
                tables.setdefault(tuple(labels.get(index, "") for index in range(count)), []).append((name, shown))
        blocks = titles
        for labels_of, columns in tables.items():
            header = ["", *(name for name, _ in columns)]
            rows = [[label, *(column.get(index, "") for _, column in columns)] for index, label in enumerate(labels_of)]
            blocks += table_of([header, *rows], 1)
        return blocks

    def _title(self, title: Element) -> str:
        text = " ".join(self.text(paragraph) for paragraph in self._all(title, "a:p"))
        return " ".join(text.split()) or " ".join(one.text or "" for one in self._all(title, "c:v"))

    def _first_values(self, series: Element, *names: str) -> dict[int, str]:
        return next((found for name in names if (found := self._values(self._parts.child(series, name)))), {})

    def _values(self, holder: Element | None) -> dict[int, str]:
        """The texts of the points by their number; several levels of one point are joined."""
        found: dict[int, str] = {}
        if holder is None:
            return found
        points = list(self._all(holder, "c:pt"))
        for point in points:
            index, text = number(attribute(point, "idx")), " ".join((one.text or "").strip() for one in self._all(point, "c:v"))
            found[index] = f"{text} {found[index]}" if index in found else text
        if points:
            return found
        text = " ".join((one.text or "").strip() for one in self._all(holder, "c:v"))
        return {0: text} if text else {}

    def _diagram(self, root: Element | None) -> list[FileBlock]:
        """The points of a diagram with text, each before those that belong to it."""
        if root is None or self._names(root) != "dgm:dataModel":
            return []
        points = {attribute(point, "modelId"): point for point in self._parts.inside(root, "dgm:ptLst", "dgm:pt")}
        below: dict[str, list[tuple[int, str]]] = {}
        for link in self._parts.inside(root, "dgm:cxnLst", "dgm:cxn"):
            if attribute(link, "type", "parOf") == "parOf":
                below.setdefault(attribute(link, "srcId"), []).append((number(attribute(link, "srcOrd")), attribute(link, "destId")))
        tops = [id for id, point in points.items() if attribute(point, "type") == "doc"]
        waiting, ordered = [*tops, *points][::-1], dict[str, None]()
        while waiting:
            id = waiting.pop()
            if id not in ordered:
                ordered[id] = None
                waiting += [to for _, to in sorted(below.get(id, ()), reverse=True)]
        texts = (one for id in ordered if id in points for one in self._parts.inside(points[id], "dgm:t", "a:p"))
        return [block_of("li", self.text(paragraph)) for paragraph in texts]

    def _all(self, element: Element, *names: str) -> Iterator[Element]:
        return (one for one in element.iter() if self._names(one) in names)
