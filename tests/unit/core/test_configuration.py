"""One reader of configuration files: what is wrong is named with file, table and key."""

from dataclasses import dataclass
from typing import Any

import pytest

from perikope.core.composed_values import TEXTS, AnyTable, Either, FilledText, ListOf
from perikope.core.configuration import MAX_BYTES, Location, Table, free_table, named_tables, options_table, read_text, table, tables
from perikope.core.errors import InputError, UsageError
from perikope.core.options import Options, option
from perikope.core.parameters import Range
from perikope.core.values import OneOf, Switch, Text, Whole


@dataclass(frozen=True, kw_only=True)
class Colours(Options):
    ink: str = option("black", OneOf(("black", "blue")), "Colour of the ink.")
    paper: str = option("white", Text(), "Colour of the paper.")


@dataclass(frozen=True, kw_only=True)
class PageKeys(Table):
    width: int = option(80, Whole(Range(1, 200)), "Characters per line.")
    margins: tuple[int, ...] = option((), ListOf(Whole(Range(0)), "whole numbers"), "Margins, in characters.")


@dataclass(frozen=True, kw_only=True)
class PartKeys(Table):
    name: str = option("", Text(), "Name.")
    of: tuple[str, ...] = option((), TEXTS, "Parts that it is made of.")
    kept: Any = option(False, Either((Switch(), TEXTS, AnyTable()), "true, a list of names, or a table"), "What is kept.")


@dataclass(frozen=True, kw_only=True)
class BookKeys(Table):
    title: str = option("", FilledText(), "Title.")
    page: PageKeys = table(PageKeys, "The page.")
    parts: tuple[PartKeys, ...] = tables(PartKeys, "The parts.")
    editions: dict[str, PageKeys] = named_tables(PageKeys, "Pages of editions, by their names.")
    notes: dict[str, str] = free_table(Text(), "Notes, by name.")
    colours: dict[str, Any] = options_table(Colours, lambda: ["ink"], "Colours.")


def read(text: str) -> BookKeys:
    return BookKeys.parse(text, "book.toml", "a book")


def test_a_file_becomes_declared_tables():
    book = read(
        'title = "T"\n[page]\nmargins = [1, 2]\n[[parts]]\nname = "one"\nof = "zero"\n[[parts]]\nkept = {a = 1}\n'
        '[editions.small]\nwidth = 20\n[notes]\nx = "y"\n[colours]\nink = "blue"\n'
    )
    assert (book.title, book.page.width, book.page.margins) == ("T", 80, (1, 2))
    assert book.page.given == {"margins"}
    assert [(part.name, part.of, part.kept) for part in book.parts] == [("one", ("zero",), False), ("", (), {"a": 1})]
    assert book.editions["small"].width == 20
    assert (book.notes, book.colours) == ({"x": "y"}, {"ink": "blue"})


def test_absent_keys_have_their_defaults():
    book = read("")
    assert (book.title, book.page.width, book.parts, book.editions, book.notes, book.colours) == ("", 80, (), {}, {}, {})
    assert book.given == book.page.given == frozenset()
    assert book.page.location.table == "page"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("titel = 1", "book.toml: unknown key of a book 'titel'; did you mean 'title'? valid: title, page"),
        ("title = 1", "book.toml: title must be text, not a whole number"),
        ('title = " "', "book.toml: title is empty"),
        ("title = ", "book.toml: is not TOML"),
        ("page = 1", "book.toml: page must be a table: write [page]"),
        ("[page]\nwidht = 1", "book.toml: unknown key in [page] 'widht'; did you mean 'width'?"),
        ("[page]\nwidth = 0", "book.toml: [page] width must be a whole number in [1, 200], not 0"),
        ("[page]\nwidth = true", "book.toml: [page] width must be a whole number, not true or false"),
        ("[page]\nmargins = [1, 'a']", "book.toml: [page] margins number 2 must be a whole number, not text"),
        ("[page]\nmargins = 'a'", "book.toml: [page] margins must be a list of whole numbers, not text"),
        ("[page]\nmargins = {a = 1}", "book.toml: [page] margins must be a list of whole numbers, not a table"),
        ("parts = 1", "book.toml: parts must be tables: write [[parts]]"),
        ("[parts]", "book.toml: parts must be tables: write [[parts]]"),
        ("[[parts]]\nnmae = 'a'", "book.toml: unknown key in [part 1] 'nmae'; did you mean 'name'?"),
        ("[[parts]]\nname = 'a'\nof = ['']", "book.toml: [part a] of number 1 is empty"),
        ("[[parts]]\nname = 'a'\nkept = 3", "book.toml: [part a] kept must be true, a list of names, or a table, not a whole number"),
        ("[editions]\nsmall = 1", "book.toml: [editions] small must be a table: write [editions.small]"),
        ("[editions.small]\nwidth = 0", "book.toml: [editions.small] width must be"),
        ("[notes]\nx = 1", "book.toml: [notes] x must be text, not a whole number"),
        ("[colours]\npaper = 'a'", "book.toml: unknown key in [colours] 'paper'; valid: ink"),
        ("[colours]\nink = 'bleu'", "book.toml: [colours] ink is wrong: unknown ink 'bleu'; did you mean 'blue'? valid: black, blue"),
    ],
)
def test_what_is_wrong_is_named(text, message):
    with pytest.raises(InputError) as error:
        read(text)
    assert str(error.value).startswith(message)


def test_a_check_of_the_caller_names_file_table_and_key():
    page = read("").page

    def fail() -> None:
        raise UsageError("no such page")

    with pytest.raises(InputError, match=r"^book\.toml: \[page\] width is wrong: no such page$"):
        page.check("width", fail)
    assert page.check("width", lambda: 3) == 3


def test_an_error_that_has_the_location_keeps_it():
    location = Location("book.toml", "a book")
    with pytest.raises(InputError, match=r"^book\.toml: inner is odd$"), location.checking("outer"):
        raise location.wrong("inner", "is odd")


def test_files_that_cannot_be_read(tmp_path):
    with pytest.raises(InputError, match="cannot read the book: No such file"):
        read_text(tmp_path / "none.toml", "a book")
    (tmp_path / "bytes.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InputError, match="is not UTF-8"):
        read_text(tmp_path / "bytes.toml", "a book")
    (tmp_path / "large.toml").write_bytes(b"#" * (MAX_BYTES + 1))
    with pytest.raises(InputError, match="too large for a book"):
        read_text(tmp_path / "large.toml", "a book")
    (tmp_path / "mark.toml").write_bytes(b"\xef\xbb\xbftitle = 'T'")
    assert read(read_text(tmp_path / "mark.toml", "a book")).title == "T"
