"""What every registered format promises."""

from __future__ import annotations

import gzip
import random
from pathlib import Path

import pytest

from perikope.core.errors import InputError
from perikope.formats import FORMATS, Format, read
from tests.support.trees import GOLDEN, check_tree, describe

SOURCES = sorted((GOLDEN / "sources").iterdir())
every_format = pytest.mark.parametrize("format", [format for _, format in FORMATS.items()], ids=lambda format: format.name)


def sources_of(format: Format) -> list[Path]:
    # A format that no suffix leads to has its name at the beginning of its files': jats.article.nxml.
    return [
        source
        for source in SOURCES
        if (source.name.endswith(format.suffixes) if format.suffixes else source.name.startswith(f"{format.name}."))
    ]


def suffix_of(format: Format) -> str:
    return (format.suffixes or format.takes)[0]


@every_format
def test_is_described_and_has_a_golden_source(format: Format) -> None:
    assert format.summary
    assert format.suffixes or format.takes
    assert sources_of(format)


def test_no_two_formats_share_a_suffix() -> None:
    suffixes = [suffix for _, format in FORMATS.items() for suffix in format.suffixes]
    assert len(suffixes) == len(set(suffixes))
    assert all(suffix.startswith(".") and suffix == suffix.lower() for suffix in suffixes)


@every_format
@pytest.mark.parametrize("content", [b"", b"\n", b" \r\n\t\n", b"\xef\xbb\xbf"], ids=["nothing", "line", "blank", "mark"])
def test_empty_file_is_an_input_error(format: Format, content: bytes, tmp_path: Path) -> None:
    path = tmp_path / f"empty{suffix_of(format)}"
    path.write_bytes(content)
    with pytest.raises(InputError, match="empty") as caught:
        list(read(path))
    assert len(str(caught.value).splitlines()) == 1
    assert str(path) in str(caught.value)


@every_format
@pytest.mark.filterwarnings("ignore::perikope.core.errors.InputWarning")
def test_garbage_is_an_input_error_or_a_document(format: Format, tmp_path: Path) -> None:
    chance = random.Random(7)
    path = tmp_path / f"garbage{suffix_of(format)}"
    good = sources_of(format)[0].read_bytes()
    for turn in range(60):
        damaged = bytearray(good)
        for _ in range(turn):
            damaged[chance.randrange(len(damaged))] = chance.randrange(256)
        path.write_bytes(chance.randbytes(300) if turn % 3 == 0 else bytes(damaged[: chance.randrange(1, len(damaged))]))
        try:
            found = list(read(path))
        except InputError as error:
            assert len(str(error).splitlines()) == 1  # noqa: PT017
        else:
            for document in found:
                check_tree(document)


@every_format
def test_trees_hold_their_promises(format: Format) -> None:
    for source in sources_of(format):
        for document in read(source):
            check_tree(document)


@every_format
def test_is_deterministic_and_reads_compressed_files_alike(format: Format, tmp_path: Path) -> None:
    source = sources_of(format)[0]
    expected = [describe(document) for document in read(source)]
    assert [describe(document) for document in read(source)] == expected
    packed = tmp_path / f"{source.name}.gz"
    packed.write_bytes(gzip.compress(source.read_bytes()))
    found = [describe(document) for document in read(packed)]
    assert [text.replace(packed.name, source.name) for text in found] == expected


@every_format
def test_damaged_archive_is_an_input_error(format: Format, tmp_path: Path) -> None:
    packed = tmp_path / f"damaged{suffix_of(format)}.gz"
    whole = gzip.compress(sources_of(format)[0].read_bytes())
    for content in (b"no archive", whole[:-20], whole[:40] + b"\0\1\2" + whole[43:]):
        packed.write_bytes(content)
        with pytest.raises(InputError):
            list(read(packed))
