"""JSON Lines: whatever tree goes in, every passage comes out with its text, in order, inside its parents."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from perikope.formats import Source, documents
from tests.support.trees import check_tree, passages

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)


@st.composite
def passage(draw: st.DrawFn) -> Any:
    text = draw(texts)
    if draw(st.booleans()):
        return text
    borders = st.integers(0, len(text))
    spans = draw(st.lists(st.tuples(st.sampled_from(["b", "it"]), borders, borders), max_size=3))
    return {"text": text, "marks": [list(mark) for mark in spans if mark[1] < mark[2]], "tag": draw(st.sampled_from(["p", "li"]))}


def element(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    part = st.sampled_from(["", "claims", "abstract"])
    mixed = st.fixed_dictionaries({"content": st.lists(passage() | inner, max_size=3), "title": texts, "part": part})
    apart = st.fixed_dictionaries({"passages": st.lists(passage(), max_size=3), "sections": st.lists(inner, max_size=3), "title": texts})
    return mixed | apart


trees = st.recursive(st.fixed_dictionaries({"passages": st.lists(passage(), max_size=3)}), element, max_leaves=12)


def texts_of(node: Any) -> list[str]:
    if isinstance(node, str):
        return [node]
    if "text" in node:
        return [node["text"]]
    children = [*node.get("passages", []), *node.get("sections", []), *node.get("content", [])]
    return [text for child in children for text in texts_of(child)]


@given(tree=trees)
def test_every_passage_keeps_its_text(tree: Any, tmp_path_factory: Any) -> None:
    path: Path = tmp_path_factory.getbasetemp() / "property.jsonl"
    # The title makes sure that the document is not an empty one.
    path.write_text(json.dumps({"id": "d", "content": [tree, {"title": "x", "content": []}]}, ensure_ascii=False) + "\n", encoding="utf-8")
    [document] = documents(Source(str(path), "d", format="jsonl"))
    check_tree(document)
    assert passages(document) == texts_of(tree)
