"""What the tests themselves are made of."""

import os
import subprocess
import sys
from pathlib import Path

PROGRAM = """
import os
from tests.support.collections import index_of, plain_document

index = index_of([plain_document("d1", "Pumps", "A rotor.")])
other = index_of([plain_document("d1", "Pumps", "A rotor.")], [1])
assert index.folder != other.folder
child = os.fork()
if not child:
    raise SystemExit  # its end must not be that of the folder
os.waitpid(child, 0)
print(len(list(index.search("rotor"))), index.folder.is_dir())
"""


def test_indexes_of_tests_leave_nothing_behind(tmp_path):
    root = Path(__file__).parents[1]
    environment = {**os.environ, "TMPDIR": str(tmp_path), "PYTHONPATH": os.pathsep.join([str(root), str(root / "src")])}
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, env=environment, check=True)
    assert done.stdout.strip() == "1 True"
    assert list(tmp_path.iterdir()) == []
