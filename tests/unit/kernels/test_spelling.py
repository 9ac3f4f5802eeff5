"""Names near a word: the kernel against plain Python, and the properties of an edit distance."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from perikope.kernels.spelling import near_names


def near(word: str, names: list[str], limit: int, tail: int = 0) -> dict[int, tuple[int, int]]:
    encoded = [f"en:{name}".encode() for name in names]
    ends = np.cumsum([len(name) for name in encoded], dtype=np.uint64)
    code_points = np.array([ord(character) for character in word], np.uint32)
    numbers = np.arange(len(names), dtype=np.uint32)
    found = near_names(code_points, limit, tail, numbers, 3, ends, np.frombuffer(b"".join(encoded), np.uint8))
    return {index: (edits, left_out) for index, edits, left_out in zip(*(column.tolist() for column in found), strict=True)}


def edits(one: str, other: str) -> int:
    """The number of edits, straight from the definition."""
    if not one or not other:
        return len(one) + len(other)
    least = min(edits(one[1:], other) + 1, edits(one, other[1:]) + 1, edits(one[1:], other[1:]) + (one[0] != other[0]))
    if one[:2] == other[1::-1] and len(one) > 1 and len(other) > 1:
        least = min(least, edits(one[2:], other[2:]) + 1)
    return least


short = st.text("abß", max_size=5)


@given(st.text("abß", min_size=1, max_size=5), st.lists(short, max_size=8), st.integers(0, 3), st.integers(0, 3))
def test_kernel_finds_what_plain_python_finds(word, names, limit, tail):
    expected = {}
    for number, name in enumerate(names):
        parts = {left_out: edits(name, word[: len(word) - left_out]) for left_out in range(min(tail, len(word)) + 1)}
        least = min(parts.values())
        if least <= limit:
            expected[number] = least, min(left_out for left_out, value in parts.items() if value == least)
    assert near(word, names, limit, tail) == expected


@given(st.text("abc", min_size=1, max_size=6), st.text("abc", min_size=1, max_size=6))
def test_distance_is_symmetric_and_bounded_by_lengths(one, other):
    there, back = near(one, [other], 9)[0][0], near(other, [one], 9)[0][0]
    assert there == back
    assert abs(len(one) - len(other)) <= there <= max(len(one), len(other))
    assert (there == 0) == (one == other)


def test_edits_of_typing():
    names = ["pump", "pumps", "pmup", "pum", "lamp", "élève", "水", "pumpe"]
    assert near("pump", names, 1) == {0: (0, 0), 1: (1, 0), 2: (1, 0), 3: (1, 0), 7: (1, 0)}
    assert near("éleve", names, 1) == {5: (1, 0)}
    assert near("水", names, 0) == {6: (0, 0)}


def test_last_characters_may_be_left_out():
    assert near("magneticc", ["magnet", "magnat", "magma"], 1, 3) == {0: (0, 3), 1: (1, 3)}
