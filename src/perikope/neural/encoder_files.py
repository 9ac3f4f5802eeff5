"""The settings files of encoders and rankers, checked before another program allocates what they ask for.

The files may be damaged, or come from anywhere. The transformers library makes layers and matrices of the sizes that
`config.json` names, whatever they are.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from perikope.core.checked_json import parse_object
from perikope.core.errors import InputError

CONFIGURATION = "config.json"
AGAIN = "save or download the encoder again"
"""What to do about the damaged file of an encoder."""
_MAX_BYTES = 1 << 24
"""Maximum bytes of a settings file."""
_MAX_SIZE = 1 << 24
"""Maximum of every whole number in a settings file: more than any vocabulary, width or number of positions."""
_MAX_REPEATED = 1 << 10
"""Maximum number of layers, or of other modules that are made one by one."""
_REPEATED = re.compile(r"(.*_)?(layers|experts|blocks|stages)")


def read_settings(path: Path, advice: str) -> dict[str, Any]:
    """Read a JSON object with settings, and check its sizes; `advice` says what to do if the file is damaged."""
    content = read_small(path, advice)
    _check_sizes(content, path, advice)
    return content


def read_small(path: Path, advice: str) -> dict[str, Any]:
    """Read a JSON object of limited size; `advice` says what to do if the file is damaged."""
    try:
        with path.open("rb") as file:
            data = file.read(_MAX_BYTES + 1)
        return parse_object(data if len(data) <= _MAX_BYTES else b"")
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", path=path) from None
    except ValueError:
        raise InputError(f"is not a settings file, or is damaged: {advice}", path=path) from None


def _check_sizes(content: Mapping[str, Any], path: Path, advice: str) -> None:
    """Raise `InputError` if a number of settings is too large, also in objects inside."""
    for name, value in content.items():
        if isinstance(value, dict):
            _check_sizes(value, path, advice)
        elif isinstance(value, int) and abs(value) > (_MAX_REPEATED if _REPEATED.fullmatch(name) else _MAX_SIZE):
            raise InputError(f"has an impossible value of {name[:40]!r}: {advice}", path=path)
