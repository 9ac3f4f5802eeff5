"""`perikope search` lets a running server of the same user search, with the same output; else it searches itself."""

import json
import os
import socket
import subprocess
import sys
import threading
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from perikope.core import command_socket
from perikope.search.facade import Index
from tests.support.serving import served

pytestmark = pytest.mark.skipif(not hasattr(socket, "AF_UNIX"), reason="needs Unix sockets")

DOCUMENTS = [
    {"id": f"d{number}", "title": f"Pump {number}", "metadata": {"year": 2000 + number % 3},
     "passages": [f"A magnetic pump with rotor {number}.", "Grüße: the coupling slips.", "Nothing else."]}
    for number in range(30)
]  # fmt: skip
QUERY = "magnetic coupling"
PROGRAM = """
import os, sys
from perikope.cli import main
try:
    main()
finally:
    os.write({pipe}, b"itself" if "numpy" in sys.modules else b"server")
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("commands")
    (folder / "run").mkdir(mode=0o700)
    with Index.create(folder / "index") as index:
        index.add(DOCUMENTS)
    return folder


@pytest.fixture(scope="module")
def runtime(folder):
    """The environment in which servers and commands of these tests find each other."""
    before = os.environ.get("XDG_RUNTIME_DIR")
    os.environ["XDG_RUNTIME_DIR"] = str(folder / "run")
    yield folder / "run" / "perikope"
    if before is None:
        del os.environ["XDG_RUNTIME_DIR"]
    else:
        os.environ["XDG_RUNTIME_DIR"] = before


@pytest.fixture(scope="module")
def serving(folder, runtime):
    with served(folder / "index"):
        yield folder / "index"


def search(*arguments, program=PROGRAM, **more):
    """What `perikope search` prints, its exit code, and who searched: `server` or the process `itself`."""
    reading, writing = os.pipe()
    code = program.format(pipe=writing)
    environment = os.environ | {"PYTHONIOENCODING": "utf-8"} | more
    done = subprocess.run(
        [sys.executable, "-c", code, "search", *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False,
        pass_fds=[writing], env=environment, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    os.close(writing)
    with os.fdopen(reading) as pipe:
        lines = [line for line in done.stdout.decode().splitlines(keepends=True) if "compiling kernels, once per computer" not in line]
        return "".join(lines), done.returncode, pipe.read()


@pytest.mark.parametrize(
    "arguments",
    [
        (QUERY,), (QUERY, "--json", "-k", "50"), (QUERY, "--model", "bm25", "--context"), (QUERY, "--full", "--csv"), (QUERY, "--ris"),
        (QUERY, "--document-ranking", "maxp"), (QUERY, "--facets", "year"), (QUERY, "--for-model", "100"), ("xyzzy",),
        (QUERY, "--filter", "year=2001", "--offset", "3"), ("magnetic AND slips", "--syntax", "boolean"), ("magnetik",),
        (QUERY, "--model", "qsf_v_title"), (QUERY, "--recipe", "albarede2021"), ("--", "-magnetic"), (QUERY, "--part", "claims"),
        (QUERY, "--model", "prox_hw(logical=\"nothing\")"),
    ],
    ids=lambda arguments: " ".join(arguments)[:40],
)  # fmt: skip
def test_the_output_of_a_server_is_that_of_the_command(serving, arguments):
    alone = search(serving, "--no-server", *arguments)
    assert alone[2] == "itself"
    assert alone[0]
    for _ in range(2):
        by_server = search(serving, *arguments)
        assert by_server[:2] == alone[:2]
        # A search that fails or is refused says so itself, with the files and words of the user.
        assert by_server[2] == ("server" if alone[1] == 0 else "itself")


def test_the_width_of_the_terminal_is_that_of_the_user(serving):
    narrow, wide = (search(serving, QUERY, "--full", COLUMNS=columns)[0] for columns in ("30", "100"))
    assert len(narrow.splitlines()) > len(wide.splitlines())
    assert narrow == search(serving, QUERY, "--full", "--no-server", COLUMNS="30")[0]


@pytest.mark.parametrize(
    "arguments",
    [("--model", "unknown"), ("-k", "0"), ("--claims", "-"), ("--recipe", "./nowhere.toml"), ("--unknown",)],
    ids=lambda arguments: " ".join(arguments),
)
def test_mistakes_are_reported_by_the_command_itself(serving, arguments):
    words = () if "--claims" in arguments else (QUERY,)
    output, code, who = search(serving, *words, *arguments)
    assert (code, who) != (0, "server")
    assert (output, code) == search(serving, *words, "--no-server", *arguments)[:2]


def test_a_file_is_written_by_the_command_itself(serving, tmp_path):
    assert search(serving, QUERY, "--out", tmp_path / "hits.csv")[1:] == (0, "itself")
    assert (tmp_path / "hits.csv").exists()


def test_a_new_commit_is_searched_at_once(serving):
    with Index.open(serving) as index:
        index.add([{"id": "new", "passages": ["A brand-new zeppelin."]}])
    output, code, who = search(serving, "zeppelin", "--json")
    assert (json.loads(output.splitlines()[0])["document"], code, who) == ("new", 0, "server")


def test_another_path_to_the_same_folder_finds_the_server(serving, tmp_path):
    (tmp_path / "link").symlink_to(serving)
    assert search(tmp_path / "link", QUERY)[2] == "server"


def test_folder_and_socket_are_private(serving, runtime):
    path = command_socket.socket_path(serving)
    assert path.parent == runtime
    assert runtime.stat().st_mode & 0o777 == 0o700
    assert path.stat().st_mode & 0o777 == 0o600


def test_no_http_request_can_run_a_command(folder, runtime):
    with served(folder / "index", "--no-commands") as address:
        for path in ("command%20line", "command", "command line"):
            assert httpx.post(f"{address}/indexes/index/{path}", json={"arguments": ["x", "y"]}).status_code == 404


def test_another_version_is_not_asked(serving):
    program = PROGRAM.replace("try:", "import perikope\nperikope.__version__ += '.1'\ntry:")
    assert search(serving, QUERY, program=program)[2] == "itself"


@pytest.mark.parametrize("harm", ["folder", "socket", "link"])
def test_what_others_could_have_made_is_not_trusted(serving, runtime, harm, tmp_path):
    path = command_socket.socket_path(serving)
    changed = runtime if harm == "folder" else path
    mode = changed.stat().st_mode
    try:
        if harm == "link":
            path.rename(tmp_path / "socket")
            path.symlink_to(tmp_path / "socket")
        else:
            changed.chmod(0o777)
        assert search(serving, QUERY)[1:] == (0, "itself")
    finally:
        if harm == "link":
            (tmp_path / "socket").replace(path)
        else:
            changed.chmod(mode)
    assert search(serving, QUERY)[1:] == (0, "server")


def test_a_second_server_leaves_the_socket_to_the_first(serving):
    inode = command_socket.socket_path(serving).stat().st_ino
    with served(serving):
        assert command_socket.socket_path(serving).stat().st_ino == inode
    assert search(serving, QUERY)[2] == "server"


@contextmanager
def pretending(path, answer):
    """A socket that sends some bytes to whoever connects."""
    path.parent.mkdir(mode=0o700, exist_ok=True)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listening:
        listening.bind(str(path))
        path.chmod(0o600)
        listening.listen()

        def serve():
            connection, _ = listening.accept()
            with connection:
                request = json.loads(connection.recv(1 << 16)[4:])
                connection.sendall(answer(request))

        thread = threading.Thread(target=serve)
        thread.start()
        yield
        thread.join()
    path.unlink()


def message(**changed):
    return lambda request: command_socket.packed({"code": 0, "generation": request["generation"], "written": [[1, "forged"]]} | changed)


@pytest.mark.parametrize(
    ("answer", "is_used"),
    [
        (message(), True), (message(generation=99), False), (message(code=2), False), (message(written=[[1, 5], [2]]), False),
        (lambda _: b"", False),
        (lambda _: b"\xff\xff\xff\xff", False), (lambda _: b"\x05\0\0\0{}", False), (lambda _: b"\x02\0\0\0[]", False),
    ],
)  # fmt: skip
def test_answers_that_are_not_as_expected_are_not_used(runtime, tmp_path, answer, is_used):
    with Index.create(tmp_path / "other") as index:
        index.add(DOCUMENTS)
    with pretending(command_socket.socket_path(tmp_path / "other"), answer):
        output, code, who = search(tmp_path / "other", QUERY)
    assert ("forged" in output, code, who) == (is_used, 0, "server" if is_used else "itself")


def test_a_server_that_has_ended_leaves_no_socket_and_a_killed_one_is_no_obstacle(folder, runtime, tmp_path):
    with Index.create(tmp_path / "third") as index:
        index.add(DOCUMENTS)
    path = command_socket.socket_path(tmp_path / "third")
    with served(tmp_path / "third"):
        assert path.exists()
    assert not path.exists()
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as left:
        left.bind(str(path))
    path.chmod(0o600)
    assert search(tmp_path / "third", QUERY)[1:] == (0, "itself")
    with served(tmp_path / "third"):
        assert search(tmp_path / "third", QUERY)[1:] == (0, "server")


def test_without_a_runtime_folder_a_private_one_is_made_among_temporary_files(monkeypatch, tmp_path):
    monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    assert command_socket.runtime_folder() == Path(tmp_path, f"perikope-run-{os.getuid()}")
