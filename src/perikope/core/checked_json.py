"""JSON objects in files that may be damaged, with a checksum of their own or without.

A manifest or a table has its checksum under the key `checksum`: the CRC-32 of all other keys and values.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from typing import Any

CHECKSUM = "checksum"


def parse_json(data: bytes) -> Any:
    """Parse a JSON value; raises a `ValueError` if the data is anything else, or is nested too deeply."""
    try:
        return json.loads(data)
    except RecursionError:
        raise ValueError("is nested too deeply") from None


def parse_object(data: bytes) -> dict[str, Any]:
    """Parse a JSON object; raises a `ValueError` if the data is anything else, or is nested too deeply."""
    content = parse_json(data)
    if not isinstance(content, dict):
        raise ValueError("is not a JSON object")  # noqa: TRY004 - all damage is a `ValueError`
    return content


def with_checksum(content: Mapping[str, Any]) -> dict[str, Any]:
    """The same object with its checksum as the last key."""
    return {**content, CHECKSUM: checksum_of(content)}


def has_right_checksum(content: Mapping[str, Any]) -> bool:
    """Whether an object has the checksum of its other keys and values."""
    found = content.get(CHECKSUM)
    return type(found) is int and found == checksum_of({name: value for name, value in content.items() if name != CHECKSUM})


def checksum_of(content: Mapping[str, Any]) -> int:
    """The CRC-32 of an object, written with sorted keys. White space and the order of keys do not matter."""
    return zlib.crc32(json.dumps(content, ensure_ascii=False, sort_keys=True).encode("utf-8", "surrogatepass"))
