"""What is not collected: modules of an extra that is not installed, whose examples would fail on import."""

from importlib.util import find_spec

collect_ignore_glob = [] if find_spec("torch") else ["src/perikope/neural/*", "src/perikope/cli/train_guard.py"]
