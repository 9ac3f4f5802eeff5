"""Write explanations of scores as text or as dictionaries for JSON.

An explanation is a tree. The value of each inner node is computed from the values of its children by the operation that
the node names.
"""

from __future__ import annotations

from perikope.browse.signals import Curve, Node
from perikope.core.numbers import number_in_print


def render(node: Node, indent: str = "") -> str:
    """The explanation as text: one line per node, indented by depth, with the value first.

    >>> print(render(Node("score", 3.0, "sum", (Node("a", 1.0), Node("b", 2.0)))))
    3.0000  score  [sum of]
      1.0000  a
      2.0000  b
    """
    lines = [f"{indent}{number_in_print(node.value)}  {node.label}{_operation(node)}"]
    lines += [render(child, indent + "  ") for child in node.children]
    return "\n".join(lines)


def as_dict(node: Node) -> dict[str, object]:
    """The explanation as nested dictionaries, for JSON.

    Each has `label`, `value` and `operation`. Inner nodes also have `children`, and affine nodes `slope` and
    `intercept`.
    """
    result: dict[str, object] = {"label": node.label, "value": node.value, "operation": node.operation}
    if node.operation == "affine":
        result |= {"slope": node.slope, "intercept": node.intercept}
    if node.children:
        result["children"] = [as_dict(child) for child in node.children]
    return result


def curves_of(node: Node) -> tuple[Curve, ...]:
    """The curves of the first node that has any, from the root down; empty if no node has any."""
    if node.curves is not None:
        return node.curves()
    return next((curves for child in node.children if (curves := curves_of(child))), ())


def _operation(node: Node) -> str:
    if node.operation == "affine":
        offset = f" {'-' if node.intercept < 0 else '+'} {number_in_print(abs(node.intercept))}" if node.intercept else ""
        return f"  [{number_in_print(node.slope)} × …{offset}]"
    return "" if node.operation == "fact" else f"  [{node.operation} of]" if node.children else "  [no query term]"
