"""The reading process: reads requests from its standard input and writes blocks to its standard output.

A request is one line of JSON, followed by the bytes of the file. An answer is the length of a JSON text in one line,
followed by the text. The process never gets the path of a file. It limits its own memory and cannot write files,
where the system has such limits. Its proxy settings lead nowhere, so that libraries that use them fetch nothing.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import re
import sys
from typing import Any, cast

from perikope.formats._extraction.blocks import Extracted, Unreadable, to_plain

DEEPEST = 5000
"""The deepest recursion of Python functions in this process."""

NOT_LOADED = {"failed": "loading"}
"""The answer if the library that reads a file does not fit into the memory."""
_NO_MEMORY = re.compile("failed to map segment|cannot allocate memory", re.IGNORECASE)
"""What the loader of the system says about a library that does not fit into the memory."""


def main() -> None:
    """Answer requests until the input ends."""
    requests, answers = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    # Libraries that print something must not disturb the answers.
    os.dup2(2, 1)
    sys.setrecursionlimit(DEEPEST)
    while line := requests.readline():
        request = json.loads(line)
        data = requests.read(request["size"])
        if len(data) < request["size"]:
            return
        _limit_memory(request["memory"])
        answer = _answer(request, data)
        content = json.dumps(answer).encode()
        answers.write(b"%d\n" % len(content) + content)
        answers.flush()
        if answer == NOT_LOADED:
            return  # A library that is loaded in part cannot be loaded again in the same process.


def _answer(request: dict[str, Any], data: bytes) -> dict[str, Any]:
    try:
        if request["kind"] == "documents":
            from perikope.formats._extraction.documents import read_documents

            return read_documents(request, data)
        return to_plain(_extract(request["kind"], data))
    except Unreadable as error:
        return {"unreadable": str(error)}
    except MemoryError:
        return {"failed": "memory"}
    except RecursionError:
        return {"unreadable": "is nested too deeply to be read; flatten it"}
    except ModuleNotFoundError as error:
        return {"missing": (error.name or str(error)).partition(".")[0]}
    except Exception as error:
        if isinstance(error, (ImportError, OSError)) and _NO_MEMORY.search(str(error)):
            return NOT_LOADED
        # A library may raise anything for a damaged file. The answer names the file, and the next file is read.
        return {"unreadable": f"cannot be read ({type(error).__name__}: {' '.join(str(error).split())[:120]}); check the file"}


def _extract(kind: str, data: bytes) -> Extracted:
    # Every kind has a module of its name with a function that reads it. Only this module is loaded.
    module = importlib.import_module(f"perikope.formats._extraction.{kind}")
    return cast("Extracted", getattr(module, f"read_{kind}")(data))


def _limit_memory(size: int) -> None:
    try:
        import resource
    except ImportError:
        return  # Windows has no such limits.
    for limit, wanted in ((resource.RLIMIT_AS, size), (resource.RLIMIT_FSIZE, 0), (resource.RLIMIT_CORE, 0)):
        # macOS refuses some limits.
        with contextlib.suppress(ValueError, OSError):
            _, most = resource.getrlimit(limit)
            resource.setrlimit(limit, (wanted if most == resource.RLIM_INFINITY else min(wanted, most), most))
