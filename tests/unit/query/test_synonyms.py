"""Files of synonyms in the format of Solr."""

from itertools import count

import pytest

from perikope.core.errors import InputError, UsageError
from perikope.query import synonyms
from perikope.query.synonyms import SynonymRule, Synonyms, check_synonyms, parse_rule, read_synonyms
from perikope.text.analysis import Analyzer
from tests.support.growth import is_linear


@pytest.mark.parametrize(
    ("line", "left", "right"),
    [
        ("plane, aeroplane", ["plane", "aeroplane"], ["plane", "aeroplane"]),
        ("colour => color", ["colour"], ["color"]),
        ("a,b=>c,d", ["a", "b"], ["c", "d"]),
        ("  i-pod ,i pod => ipod, i-pod,ipod ", ["i pod", "i pod"], ["ipod", "i pod", "ipod"]),
        ("nyc, New  York City", ["nyc", "New York City"], ["nyc", "New York City"]),
        (r"a\,b, c", ["a b", "c"], ["a b", "c"]),
        (r"a\=>b => c\\d", ["a b"], ["c d"]),
        ("a, b,", ["a", "b"], ["a", "b"]),
        ("a = b > c, d", ["a b c", "d"], ["a b c", "d"]),
        ("größe, ÉTAT", ["größe", "ÉTAT"], ["größe", "ÉTAT"]),
        ("a, b \\", ["a", "b"], ["a", "b"]),
    ],
)
def test_rules_are_read_as_solr_reads_them(line, left, right):
    assert parse_rule(line) == SynonymRule(*(tuple(tuple(entry.split()) for entry in side) for side in (left, right)))


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("a => b => c", "more than one =>"),
        ("a =>", "a side without words"),
        ("=> b", "a side without words"),
        ("plane", "only one entry"),
        ("plane, ---", "'---' contains no word"),
        ("plane, " + "a " * 21, "has 21 words, more than 20"),
    ],
)
def test_a_wrong_rule_names_file_and_line(line, complaint, tmp_path):
    file = tmp_path / "synonyms.txt"
    file.write_text(f"# comment\n\ncar, auto\n{line}\n")
    with pytest.raises(InputError, match=f"synonyms.txt:4: .*{complaint}"):
        read_synonyms(str(file))
    with pytest.raises(UsageError, match=complaint):
        check_synonyms([line])


def test_comments_and_empty_lines_are_left_out(tmp_path):
    file = tmp_path / "synonyms.txt"
    file.write_bytes(b"\xef\xbb\xbf# plane, jet\r\n  # car, auto\r\n\r\n  car, auto  \r\na => b # c\n")
    assert read_synonyms(str(file)) == ("car, auto", "a => b # c")


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (b"", "contains no synonyms"),
        (b"a, b\n\xff\xfe", ":2: is not UTF-8"),
        (b"a, b\n" * 9, "is too large for a file of synonyms: the limit is 40 bytes"),
    ],
)
def test_a_file_that_cannot_be_used_is_refused(content, complaint, tmp_path, monkeypatch):
    monkeypatch.setattr(synonyms, "MAX_BYTES", 40)
    file = tmp_path / "synonyms.txt"
    file.write_bytes(content)
    with pytest.raises(InputError, match=complaint):
        read_synonyms(str(file))
    with pytest.raises(InputError, match="cannot read the file of synonyms"):
        read_synonyms(str(tmp_path / "missing.txt"))


def found(rules, text, languages=("en",)):
    return [(match.first, match.end, match.entries, match.keeps) for match in Synonyms(rules, Analyzer(), languages).matches(text.split())]


def test_rules_apply_to_words_with_the_same_stems():
    rules = ["plane, aeroplane"]
    assert found(rules, "two Planes") == [(1, 2, (("aeroplane",),), True)]
    assert found(rules, "plain plane aeroplanes") == [(1, 2, (("aeroplane",),), True), (2, 3, (("plane",),), True)]


def test_rules_for_the_same_words_add_up():
    assert found(["tv => television", "tv => telly, tv"], "tv") == [(0, 1, (("television",), ("telly",)), True)]
    assert found(["tv => television"], "tv television") == [(0, 1, (("television",),), False)]


def test_the_longest_entry_wins_and_matches_do_not_overlap():
    rules = ["new york, nyc", "new york pizza => pie", "york, jorvik", "bill of materials, bom"]
    assert found(rules, "new york pizza in york") == [(0, 3, (("pie",),), False), (4, 5, (("jorvik",),), True)]
    assert found(rules, "old new york") == [(1, 3, (("nyc",),), True)]
    assert found(rules, "bills of material") == [(0, 3, (("bom",),), True)]
    assert found(rules, "bill and materials") == []


def test_rules_apply_in_any_searched_language():
    assert found(["Pumpe, Förderer"], "pumpen", ["en"]) == []
    assert found(["Pumpe, Förderer"], "pumpen", ["en", "de"]) == [(0, 1, (("Förderer",),), True)]


def test_equal_entries_take_linear_time():
    numbers = count()  # rules that were read are remembered

    def read(size):
        Synonyms(["a, " * size + f"b{next(numbers)}"], Analyzer(), ["en"]).of(["a"])

    assert is_linear(read, 1000, 16)
    assert Synonyms(["a, a, b"], Analyzer(), ["en"]).of(["a"]).entries == (("b",),)
