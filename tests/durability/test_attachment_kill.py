"""A process that is killed while it writes a store of vectors or a learned table leaves the old or the new one."""

from __future__ import annotations

import random
import signal
import sys

import pytest

from perikope.search.facade import Index
from tests.durability.attachments import make_attachments, problems, store_is_at, table_commit, unknown_files
from tests.durability.history import commit_of, make_commit
from tests.durability.test_kill import KILLS, LONGEST_LIFE, SEED, allowed, kill_writer, start


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")
def test_a_killed_writer_leaves_the_old_or_the_new_store_and_table(tmp_path):
    folder, log = tmp_path / "index", tmp_path / "log"
    index = Index.create(folder)
    make_commit(index, 1)
    make_attachments(index, 1)
    log.write_text("end 1\n")
    chance = random.Random(SEED)
    reader, writer = start("read-attachments", folder), start("write-attachments", folder, log)
    left = 0
    try:
        assert reader.stdout.readline() == "ready\n"
        for kill in range(KILLS):
            where = f"kill {kill} of seed {SEED}"
            assert kill_writer(writer, chance.uniform(0, 2 * LONGEST_LIFE)) == -signal.SIGKILL, where
            # The first update after a kill repeats one that may not have begun in the log.
            assert any(store_is_at(folder, commit) for commit in allowed(log)), where
            assert table_commit(folder) in allowed(log), where
            assert problems(folder) == [], where
            left += bool(unknown_files(folder))
            assert reader.poll() is None, where
        index = Index.open(folder)
        make_attachments(index, commit_of(index))
        assert store_is_at(folder, commit_of(index))
        index.compact()
        assert unknown_files(folder) == ()
        rounds, tables = map(int, reader.communicate()[0].split())
        assert reader.returncode == 0
        # On a busy machine, the first writers may be killed before they finish anything.
        assert rounds >= KILLS or KILLS < 100
        assert tables > 1 or KILLS < 100, "the reader has seen only one table"
        assert left or KILLS < 100, "no kill has left anything to clear up"
    finally:
        for process in (reader, writer):
            process.kill()
            process.communicate()
