from __future__ import annotations

import hashlib
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from perikope.core.user_cache import user_caches
from tests.server.support import TOKEN, LiveServer, ServerProcess, make_index

collect_ignore = ["preload.py", "program.py"]
"""Modules that are imported in test servers only: they declare an operation."""


@pytest.fixture(scope="session")
def index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small index, which no test changes."""
    return make_index(tmp_path_factory.mktemp("served") / "index")


@pytest.fixture(scope="module")
def live(index: Path) -> Iterator[LiveServer]:
    """A server in this process. Nobody can write."""
    with LiveServer({"small": index}) as server:
        yield server


@pytest.fixture(scope="session")
def tokens(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file of tokens with one that may write."""
    path = tmp_path_factory.mktemp("tokens") / "tokens.toml"
    path.write_text(f'[tokens.ingest]\nsha256 = "{hashlib.sha256(TOKEN.encode()).hexdigest()}"\nread = ["*"]\nwrite = ["*"]\n')
    return path


@pytest.fixture(scope="session")
def cache_with_kernels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache which has the compiled kernels of the user."""
    cache = tmp_path_factory.mktemp("cache") / "perikope"
    cache.mkdir(mode=0o700, parents=True)
    for kernels in user_caches()[0].glob("kernels*"):
        shutil.copytree(kernels, cache / kernels.name)
    return cache.parent


@pytest.fixture
def own_cache(cache_with_kernels: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The cache of servers that a test starts, for the indexes of folders."""
    monkeypatch.setenv("PERIKOPE_CACHE", str(cache_with_kernels))
    return cache_with_kernels


@pytest.fixture(scope="session")
def process(tmp_path_factory: pytest.TempPathFactory, tokens: Path) -> Iterator[ServerProcess]:
    """A server as a process of its own, with two readers and short limits of time."""
    index = make_index(tmp_path_factory.mktemp("process") / "index")
    with ServerProcess(f"small={index}", "--workers", "2", "--tokens", str(tokens)) as server:
        yield server
