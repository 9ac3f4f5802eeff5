"""A request cannot name a file, an address or a program, and no answer says where things are on the machine."""

from __future__ import annotations

import builtins
import json
import os
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from perikope.core.values import Lines, Names, NamesOrAll, Notation, Numbers, Text
from perikope.search.options import OPTIONS
from perikope.service.operations import WRITE, Operation, load_operations
from tests.server.support import ROOT, LiveServer, WriterHere, check_problem, exchange, head, patent_of_index, wait_until, web

SECRET = "the-content-of-a-secret-file"
FILES_ON_A_COMMAND_LINE = ("patent", "recipe", "synonyms", "model", "rescore", "elements", "also_nearest")
"""Options that may name a file, a table or a store. All others get the name of one file."""
READING = [operation for operation in load_operations().values() if operation.permission != WRITE]


@pytest.fixture(scope="module")
def secrets(tmp_path_factory: pytest.TempPathFactory, index: Path) -> list[str]:
    """Names of files that a request must not read: of every kind that a command may read, absolute and relative."""
    folder = tmp_path_factory.mktemp("secrets")
    contents = {
        "secret": SECRET,
        "patent.xml": f"<patent-document ucid='{SECRET}'><abstract><p>{SECRET}</p></abstract></patent-document>",
        "recipe.toml": f'title = "{SECRET}"\n[search]\nmodel = "{SECRET}"\n',
        "table.json": json.dumps({"perikope": "table", "version": 1, "kind": "tags", "values": {"tags": {SECRET: 1.0}}}),
        "synonyms.txt": f"{SECRET}, pump\n",
    }
    for name, text in contents.items():
        (folder / name).write_text(text)
    paths = [str(folder / name) for name in contents]
    return [
        *paths,
        *(os.path.relpath(path, index / "tables") for path in paths),
        f"file://{paths[0]}",
        "/etc/passwd",
        "../../etc/passwd\x00.json",
    ]


def _texts(operation: Operation) -> Iterator[tuple[str, list[Any]]]:
    """For each option that takes text, ways to write a name into it. `*` stands for the name."""
    # All operations that search take the same options, so one of them is enough.
    names = operation.parameters if operation.name == "search" else operation.options.__dataclass_fields__
    for name in names:
        option = operation.parameters[name]
        if isinstance(option.kind, NamesOrAll | Names):
            yield name, ["*", ["*"], f"{name}=*"]
        elif isinstance(option.kind, Lines):
            yield name, ["*", ["*"], ["pump => *"]]
        elif isinstance(option.kind, Notation):
            models = ["*", "learned(*)", "learned(table=*)", "vectors(store=*)", "hybrid(store=*)"]
            yield name, models
        elif isinstance(option.kind, Numbers):
            yield name, [{"*": 1.0}, "*=1"]
        elif isinstance(option.kind, Text):
            yield name, ["*"]


def _filled(pattern: Any, name: str) -> Any:
    return json.loads(json.dumps(pattern).replace("*", json.dumps(name)[1:-1]))


@pytest.fixture
def touched(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The files, addresses and programs that the code of the tested process touches."""
    seen: list[str] = []

    def watch(owner: Any, name: str) -> None:
        original = getattr(owner, name)

        def watched(*given: Any, **more: Any) -> Any:
            seen.append(f"{name} {given[0] if given else ''!s}")
            return original(*given, **more)

        monkeypatch.setattr(owner, name, watched)

    for owner, names in (
        (builtins, ["open"]), (os, ["open", "stat", "lstat", "listdir", "scandir", "access", "system"]),
        (Path, ["open", "is_file", "stat"]),
        (subprocess, ["Popen"]), (socket, ["create_connection", "getaddrinfo"]),
    ):  # fmt: skip
        for name in names:
            watch(owner, name)
    return seen


@pytest.mark.parametrize("operation", READING, ids=lambda operation: operation.name or "index")
def test_no_text_of_a_request_is_used_as_a_path(
    operation: Operation, live: LiveServer, secrets: list[str], touched: list[str], index: Path
) -> None:
    """Every option that takes text is given names of files. Neither are they opened, nor does an answer show them."""
    with live.client() as client:
        for option, patterns in _texts(operation):
            needed = (
                {}
                if option in ("query", "patent", "claims") or operation.name in ("", "models", "count", "document")
                else {"query": "pump"}
            )
            for pattern in patterns:
                for name in secrets if option in FILES_ON_A_COMMAND_LINE else secrets[:1]:
                    del touched[:]
                    body = {**needed, **({"passage": "pumps#@1"} if operation.name == "explain" else {}), option: _filled(pattern, name)}
                    answer = _ask(client, operation, body)
                    assert answer.status_code in (200, 400, 404), (body, answer.text)
                    own = (str(index.parent), str(ROOT / "src"), os.fspath(Path(os.__file__).parent))
                    foreign = [
                        call for call in touched if any(part in call for part in (*secrets, SECRET)) and not any(o in call for o in own)
                    ]
                    assert not foreign, (body, foreign)
                    _check_hidden(answer.text, body, index)


def _ask(client: Any, operation: Operation, body: dict[str, Any]) -> Any:
    path = f"/indexes/small/{operation.name}".rstrip("/")
    return client.post(path, json=body) if "POST" in operation.methods else client.get(path, params=body)


def _check_hidden(text: str, body: Any, index: Path) -> None:
    """Check that an answer tells nothing about the machine, except what the request told."""
    told = json.dumps(body)
    for secret in (SECRET, str(index), str(index.parent), str(ROOT), "Traceback", 'File "', "site-packages", "root:x:"):
        assert secret not in text or secret in told, (secret, body, text[:500])


@pytest.mark.parametrize("patent", ["/etc/passwd", ".", "..", "patent.xml", "EP-1/../../x", "~/.ssh/id_rsa", "http://localhost/a", "-"])
def test_a_patent_is_one_of_the_index(live: LiveServer, patent: str, index: Path) -> None:
    answer = web.get(f"{live.url}/indexes/small/search", params={"patent": patent})
    assert answer.status_code in (400, 404)
    _check_hidden(answer.text, patent, index)
    assert web.get(f"{live.url}/indexes/small/search", params={"patent": patent_of_index(), "code_filter": "false"}).status_code == 200


def test_translators_cannot_be_chosen(live: LiveServer) -> None:
    """A request cannot make the server send text to an address."""
    for name in (name for name, option in OPTIONS.items() if option.local):
        check_problem(web.post(f"{live.url}/indexes/small/search", json={"query": "pump", name: "http://127.0.0.1:1"}), 400)
        check_problem(web.get(f"{live.url}/indexes/small/search", params={"query": "pump", name: "http://127.0.0.1:1"}), 400)


@pytest.mark.parametrize(
    "name",
    [
        "..",
        ".",
        "%2e%2e",
        "%2e%2e%2f%2e%2e%2fetc",
        "..%2f..%2fetc%2fpasswd",
        "%252e%252e",
        "small%00",
        "small%2f..",
        "/etc",
        "SMALL",
        "%ff",
    ],
)
def test_an_index_is_known_by_its_name_only(live: LiveServer, name: str, touched: list[str], index: Path) -> None:
    for rest in ("", "/search?query=pump", "/document?document=pumps"):
        answer = exchange(live.port, head("GET", f"/indexes/{name}{rest}", live.port)).decode()
        assert answer[9:12] in ("400", "404"), answer
        _check_hidden(answer, name, index)
    assert not [call for call in touched if "etc" in call and "/etc/ssl" not in call]


@pytest.mark.parametrize("id", ["../../etc/passwd", "/etc/passwd", "index.json", "\x00", "a" * 3000, "..\\..\\x"])
def test_a_document_is_known_by_its_id_only(live: LiveServer, id: str, index: Path) -> None:
    answer = web.get(f"{live.url}/indexes/small/document", params={"document": id})
    check_problem(answer, 404)
    _check_hidden(answer.text, id, index)


def test_documents_are_texts_not_files(index: Path, secrets: list[str], tmp_path: Path, touched: list[str]) -> None:
    """Whatever keys a document has, none of them reads a file."""
    import asyncio
    import shutil

    folder = shutil.copytree(index, tmp_path / "copy")
    writer = WriterHere({"small": str(folder)})
    for key in ("path", "file", "source", "url", "href", "include", "format", "language", "text", "contents", "id", "metadata", "passages"):
        for value in (secrets[0], {"path": secrets[0]}, [secrets[0]], [{"file": secrets[0], "text": "x"}]):
            del touched[:]
            body = json.dumps({"documents": [{"id": "new", "passages": ["a"], key: value}]}).encode()
            facts, content = asyncio.run(writer.ask("small", {"operation": "documents", "method": "POST", "query": ""}, body))
            assert facts["status"] in (200, 400), content
            assert not [call for call in touched if secrets[0] in call]
            _check_hidden(content.decode(), body.decode(), folder)


def test_damaged_indexes_are_reported_without_their_path(tmp_path: Path, index: Path) -> None:
    import shutil

    folder = shutil.copytree(index, tmp_path / "damaged")
    for segment in folder.glob("segment-*"):
        segment.write_bytes(segment.read_bytes()[: segment.stat().st_size // 2])
    with LiveServer({"damaged": folder}) as server:
        answer = web.get(f"{server.url}/indexes/damaged/search?query=pump")
        detail = check_problem(answer, 500)
        _check_hidden(answer.text, "", folder)
        wait_until(lambda: any(line["event"] == "request" for line in server.lines()))
        (incident,) = [line for line in server.lines() if line["event"] == "error"]
        assert incident["incident"] in detail
        assert str(folder) in incident["message"], "the operator must know which file is damaged"
        shutil.rmtree(folder)
        check_problem(web.get(f"{server.url}/ready"), 503)


def test_pages_of_the_server_name_no_path(live: LiveServer, index: Path) -> None:
    for path in ("/openapi.json", "/metrics", "/indexes", "/indexes/small", "/indexes/small/models", "/health", "/ready"):
        _check_hidden(web.get(f"{live.url}{path}").text, "", index)
