"""Sections, titles and passages equal those found by walking up the tree."""

import numpy as np
from hypothesis import given, settings

from perikope.document.tree import Kind
from perikope.kernels.structure import derive_structure
from tests.support.collections import collections


@settings(deadline=None)
@given(collections())
def test_derive_structure(documents):
    kind = np.array([k for d in documents for k in d.spans.kind], np.uint8)
    parent = np.array([p for d in documents for p in d.spans.parent], np.int32)
    first_span = np.cumsum([0, *(len(d.spans) for d in documents)]).astype(np.int64)
    section_of_span, parent_of_section, span_of_section, title_of_section, span_of_passage, ends = derive_structure(
        kind, parent, first_span
    )
    section_number = 0
    for number, document in enumerate(documents):
        base = first_span[number]
        sections = list(document.of_kind(Kind.SECTION))
        for i in range(len(document.spans)):
            at = i
            while document.spans.kind[at] != Kind.SECTION:
                at = document.spans.parent[at]
            assert sections[section_of_span[base + i]] == at
        for section in sections:
            above = document.spans.parent[section]
            assert parent_of_section[section_number] == (sections.index(above) if above >= 0 else -1)
            assert span_of_section[section_number] == base + section
            titles = [i for i in document.of_kind(Kind.TITLE) if document.spans.parent[i] == section]
            assert title_of_section[section_number] == (base + titles[0] if titles else -1)
            section_number += 1
        assert ends[2 * number] == section_number
    expected = [first_span[n] + p for n, d in enumerate(documents) for p in d.of_kind(Kind.PASSAGE)]
    assert span_of_passage.tolist() == expected
    assert ends[1::2].tolist() == np.cumsum([len(list(d.of_kind(Kind.PASSAGE))) for d in documents]).tolist()
