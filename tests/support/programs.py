"""Programs of the folder scripts/, which is no package, as modules."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

SCRIPTS = Path(__file__).parents[2] / "scripts"


def program(path: str) -> ModuleType:
    """Import a program by its path in scripts/, such as `make_keys.py`."""
    name = Path(path).stem
    specification = importlib.util.spec_from_file_location(name, SCRIPTS / path)
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    # Dataclasses look up the module that declares them.
    sys.modules[name] = module
    specification.loader.exec_module(module)
    return module
