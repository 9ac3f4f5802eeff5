"""The graph of a document as lines of text, for Graphviz, or as an SVG picture."""

from __future__ import annotations

import re
from html import escape

from perikope.neural.graph import FORWARD, INVERSE, DocumentGraph

COLOURS = {"order": "#7f7f7f", "structural": "#1f77b4", "internal": "#d62728", "external": "#2ca02c"}
"""Colour of the lines of each relation. An edge and its inverse are drawn as one line."""

_NOT_IN_XML = re.compile(r"[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_HALO = 'stroke="#ffffff" stroke-width="4" paint-order="stroke"'
"""SVG attributes of text: a white outline, so that words stay legible on top of lines."""
_ROW, _INDENT, _RADIUS, _MARGIN = 26, 28, 7, 34
_TEXT, _LEGEND = 560, 34


def render_lines(graph: DocumentGraph, width: int = 100) -> str:
    """The graph as text: an indented list of nodes, then the number of edges of each relation.

    Each node has its name, the names of the nodes that it refers to, and its text. Lines of nodes are cut to `width`
    characters.
    """
    lines = []
    for node in range(graph.nodes):
        mark = "▪" if graph.is_passage[node] else "○"
        text = " ".join(graph.texts[node].split())
        head = f"{'  ' * _depth(graph, node)}{mark} {graph.names[node]}"
        refers = [f" →{graph.names[target]}" for target in _targets(graph, "internal", node) + _targets(graph, "external", node)]
        line = f"{head}{''.join(refers)}  {text}"
        lines.append(line if len(line) <= width else f"{line[: width - 2]} …")
    sections = graph.nodes - graph.passage_node.size
    lines += ["", f"{graph.passage_node.size} passages, {sections} sections (cited documents among them)"]
    lines += [f"{graph.edges[name].shape[1]:>6} {name}, and as many {INVERSE[name]}" for name in FORWARD]
    return "\n".join(lines)


def render_dot(graph: DocumentGraph) -> str:
    """The graph in the DOT language of Graphviz. Inverse relations are left out: they are the same lines reversed."""
    lines = ["digraph document {", "  rankdir=LR;", "  node [fontsize=10];"]
    for node in range(graph.nodes):
        shape = "box" if graph.is_passage[node] else "ellipse"
        lines.append(f"  n{node} [shape={shape}, label={_quoted(_label(graph, node, 40))}];")
    for name in FORWARD:
        for source, target in graph.edges[name].T.tolist():
            lines.append(f'  n{source} -> n{target} [color="{COLOURS[name]}", tooltip="{name}"];')
    return "\n".join([*lines, "}", ""])


def render_svg(graph: DocumentGraph) -> str:
    """The graph as an SVG picture, one node per line in reading order, indented by depth.

    Passages are squares and sections are circles. Arrows of references run at the left.
    """
    depths = [_depth(graph, node) for node in range(graph.nodes)]
    arcs = [(name, source, target) for name in ("internal", "external") for source, target in graph.edges[name].T.tolist()]
    room = min(12 + 10 * max((abs(source - target) for _, source, target in arcs), default=0), 240)
    left = _MARGIN + (room if arcs else 0)
    width = left + _INDENT * max(depths, default=0) + _TEXT
    height = _LEGEND + _ROW * graph.nodes + _MARGIN // 2
    centre = [(left + _INDENT * depth, _LEGEND + _ROW * (node + 0.5)) for node, depth in enumerate(depths)]
    title = escape(", ".join(graph.documents))
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" '
        f'font-family="sans-serif" font-size="12">',
        f"<title>{_clean(title)}</title>",
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
        *(_arrow_head(name) for name in ("internal", "external")),
        *_legend(),
    ]
    for source, target in graph.edges["structural"].T.tolist():
        (x0, y0), (x1, y1) = centre[source], centre[target]
        lines.append(f'<path d="M{x0} {y0} V{y1} H{x1}" fill="none" stroke="{COLOURS["structural"]}"/>')
    for source, target in graph.edges["order"].T.tolist():
        (x0, y0), (x1, y1) = centre[source], centre[target]
        side = max(x0, x1) + 14
        lines.append(
            f'<path d="M{x0 + _RADIUS} {y0} Q{side} {y0} {side} {(y0 + y1) / 2} T{x1 + _RADIUS} {y1}" '
            f'fill="none" stroke="{COLOURS["order"]}"/>'
        )
    for name, source, target in arcs:
        (x0, y0), (x1, y1) = centre[source], centre[target]
        bend = min(x0, x1) - min(12 + 10 * abs(source - target), room)
        lines.append(
            f'<path d="M{x0 - _RADIUS} {y0} C{bend} {y0} {bend} {y1} {x1 - _RADIUS} {y1}" fill="none" '
            f'stroke="{COLOURS[name]}" marker-end="url(#{name})">'
            f"<title>{_clean(escape(f'{graph.names[source]} → {graph.names[target]} ({name})'))}</title></path>"
        )
    for node, (x, y) in enumerate(centre):
        lines.append(_shape(graph, node, x, y))
    return "\n".join([*lines, "</svg>", ""])


def _shape(graph: DocumentGraph, node: int, x: float, y: float) -> str:
    """The SVG elements of a node at a point: square or circle, label, and the whole text as a tooltip."""
    whole = f"<title>{_clean(escape(f'{graph.names[node]}: {graph.texts[node]}'))}</title>"
    fill = 'fill="#ffffff" stroke="#000000"'
    if graph.is_passage[node]:
        shape = f'<rect x="{x - _RADIUS}" y="{y - _RADIUS}" width="{2 * _RADIUS}" height="{2 * _RADIUS}" {fill}>{whole}</rect>'
    else:
        shape = f'<circle cx="{x}" cy="{y}" r="{_RADIUS}" {fill}>{whole}</circle>'
    weight = "" if graph.is_passage[node] else ' font-weight="bold"'
    return f'{shape}<text x="{x + 3 * _RADIUS}" y="{y + 4}"{weight} {_HALO}>{_clean(escape(_label(graph, node, 72)))}</text>'


def _arrow_head(relation: str) -> str:
    """The SVG definition of the arrow head in the colour of a relation."""
    return (
        f'<defs><marker id="{relation}" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
        f'<path d="M0 0 L8 4 L0 8 z" fill="{COLOURS[relation]}"/></marker></defs>'
    )


def _legend() -> list[str]:
    """The SVG elements of the legend: a line and the name of each relation."""
    lines, x = [], _MARGIN
    for name in FORWARD:
        lines.append(f'<path d="M{x} 16 h18" stroke="{COLOURS[name]}" stroke-width="2"/><text x="{x + 24}" y="20">{name}</text>')
        x += 110
    return lines


def _depth(graph: DocumentGraph, node: int) -> int:
    """The number of sections that contain a node."""
    depth, above = 0, int(graph.parent[node])
    while above >= 0:
        depth, above = depth + 1, int(graph.parent[above])
    return depth


def _targets(graph: DocumentGraph, relation: str, node: int) -> list[int]:
    """The targets of the edges of a relation that start at a node."""
    sources, targets = graph.edges[relation]
    nodes: list[int] = targets[sources == node].tolist()
    return nodes


def _label(graph: DocumentGraph, node: int, width: int) -> str:
    """The text of a node, for a passage after its name, cut to `width` characters."""
    text = " ".join(graph.texts[node].split()) or graph.names[node]
    text = f"{graph.names[node]}  {text}" if graph.is_passage[node] else text
    return text if len(text) <= width else f"{text[: width - 2]} …"


def _quoted(text: str) -> str:
    """A text as a quoted string of the DOT language."""
    escaped = _clean(text).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _clean(text: str) -> str:
    """The text with a space in place of each character that XML does not allow."""
    return _NOT_IN_XML.sub(" ", text)
