"""Ids of documents have no control characters, whatever they come from."""

import json

import pytest

import perikope
from perikope import Index
from perikope.core.errors import InputError
from perikope.document.tree import TreeBuilder, check_id
from tests.server.support import WriterHere
from tests.support.collections import plain_document

CONTROL = ["\0", "\t", "\n", "\r", "\x1b", "\x7f", "\x85", "\x9b"]


@pytest.mark.parametrize("character", CONTROL)
def test_every_way_to_a_document_refuses_the_same_ids(tmp_path, character):
    id = f"a{character}b"
    message = rf"control character U\+{ord(character):04X} in its id"
    record = {"id": id, "passages": ["A magnet."]}
    builder = TreeBuilder(id)
    builder.passage("A magnet.")
    with pytest.raises(InputError, match=message):
        builder.build()
    (tmp_path / "x.jsonl").write_text(json.dumps(record))
    with pytest.raises(InputError, match=rf"x\.jsonl:1: .*{message}"):
        list(perikope.read(tmp_path / "x.jsonl"))
    index = Index.create(tmp_path / "index")
    made = plain_document("d", "", "magnet")
    object.__setattr__(made, "id", id)
    for given in (record, made):
        with pytest.raises(InputError, match=message):
            index.add(given)
    index.rollback()


def test_a_file_with_such_a_name_is_listed_and_the_others_are_read(tmp_path):
    folder = tmp_path / "docs"
    folder.mkdir()
    for name in ("good.md", "line\nbreak.md"):
        (folder / name).write_text("# A\n\nA magnet.\n")
    index = Index.create(tmp_path / "index")
    with pytest.warns(UserWarning, match=r"control character U\+000A in its id"):
        index.sync(folder)
    assert [document.id for document in index.documents()] == ["good.md"]


def test_a_server_answers_with_the_same_message(tmp_path):
    import asyncio

    Index.create(tmp_path / "index").close()
    body = json.dumps({"documents": [{"id": "a\0b", "passages": ["A magnet."]}]}).encode()

    async def add():
        return await WriterHere({"small": str(tmp_path / "index")}).ask(
            "small", {"operation": "documents", "method": "POST", "query": ""}, body
        )

    facts, content = asyncio.run(add())
    assert facts["status"] == 400
    assert "control character U+0000 in its id" in json.loads(content)["detail"]


@pytest.mark.parametrize("id", ["EP 1 000 000 A1", "a b", "ü/日本.md", "a#b%c", "a\u200db", "\ud800", "x" * 1000])
def test_other_characters_are_accepted(id):
    check_id(id)


def test_a_long_id_is_shown_in_part():
    with pytest.raises(InputError) as raised:
        check_id("x" * 100_000 + "\0")
    assert len(str(raised.value)) < 300
