"""The one small file that says what an index is: replaced as a whole, so a reader sees either the old or the new index."""

from __future__ import annotations

import json
import os
import zlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from perikope.errors import IndexFormatError

FILE = "manifest.json"
FORMAT = 1


@dataclass(frozen=True, slots=True)
class Manifest:
    """The state of an index at one commit."""

    analysis: dict[str, Any]
    language: str
    segments: tuple[dict[str, Any], ...] = ()
    generation: int = 0
    next_segment: int = 1
    extra: dict[str, Any] = field(default_factory=dict)

    @property
    def fingerprint(self) -> str:
        """A short text that differs wherever the content differs."""
        content = json.dumps([self.analysis, self.language, [[s["file"], s["checksum"]] for s in self.segments]], sort_keys=True)
        return f"{zlib.crc32(content.encode()):08x}"


def load(folder: Path) -> Manifest:
    """Read the manifest of an index."""
    path = folder / FILE
    try:
        content = json.loads(path.read_bytes())
    except FileNotFoundError:
        hint = "it is not a folder" if folder.exists() and not folder.is_dir() else "make one with `perikope index FILES --to FOLDER`"
        raise IndexFormatError(f"{folder} is not an index: {hint}") from None
    except OSError as error:
        raise IndexFormatError(f"cannot read {path}: {error.strerror}") from None
    except ValueError:
        raise IndexFormatError(f"{path} is damaged: restore it from a copy or build the index again") from None
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        found = content.get("format") if isinstance(content, dict) else None
        raise IndexFormatError(f"{folder} has index format {found}, this program reads {FORMAT}: build the index again")
    try:
        return Manifest(
            content["analysis"],
            content["language"],
            tuple(content["segments"]),
            content["generation"],
            content["next_segment"],
            content["extra"],
        )
    except (KeyError, TypeError):
        raise IndexFormatError(f"{path} is damaged: restore it from a copy or build the index again") from None


def replace(folder: Path, manifest: Manifest) -> None:
    """Make a manifest the current one, atomically and durably."""
    content = {
        "format": FORMAT,
        "generation": manifest.generation,
        "analysis": manifest.analysis,
        "language": manifest.language,
        "next_segment": manifest.next_segment,
        "segments": list(manifest.segments),
        "extra": manifest.extra,
    }
    temporary = folder / f"{FILE}.new"
    with open(temporary, "wb") as file:
        file.write(json.dumps(content, ensure_ascii=False, indent=1).encode())
        file.flush()
        os.fsync(file.fileno())
    os.replace(temporary, folder / FILE)
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
