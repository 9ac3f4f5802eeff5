"""The one small file that says what an index is: replaced as a whole, so a reader sees either the old or the new index."""

from __future__ import annotations

import json
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from perikope.errors import IndexFormatError
from perikope.index import files

FILE = "manifest.json"
FORMAT = 2


@dataclass(frozen=True, slots=True)
class Manifest:
    """The state of an index at one commit."""

    analysis: dict[str, Any]
    language: str
    segments: tuple[dict[str, Any], ...] = ()
    generation: int = 0

    @property
    def fingerprint(self) -> str:
        """A short text that differs wherever the content differs."""
        content = json.dumps([self.analysis, self.language, [[s["checksum"], s.get("deleted", {}).get("checksum")] for s in self.segments]])
        return f"{zlib.crc32(content.encode()):08x}"


def load(folder: Path) -> Manifest:
    """Read the manifest of an index."""
    path = folder / FILE
    try:
        content = json.loads(path.read_bytes())
    except (FileNotFoundError, NotADirectoryError):
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
        checksum = content.pop("checksum")
        if checksum != _checksum(content):
            raise ValueError("checksum")
        return Manifest(content["analysis"], content["language"], tuple(content["segments"]), content["generation"])
    except (KeyError, TypeError, ValueError):
        raise IndexFormatError(f"{path} is damaged: restore it from a copy or build the index again") from None


def replace(folder: Path, manifest: Manifest) -> None:
    """Make a manifest the current one, atomically and durably."""
    content: dict[str, Any] = {
        "format": FORMAT,
        "generation": manifest.generation,
        "analysis": manifest.analysis,
        "language": manifest.language,
        "segments": list(manifest.segments),
    }
    content["checksum"] = _checksum(content)
    temporary = folder / f"{FILE}.new"
    files.remove(temporary)
    file = files.NewFile(temporary)
    try:
        file.write(json.dumps(content, ensure_ascii=False, indent=1).encode())
        file.finish()
    except BaseException:
        file.discard()
        raise
    files.rename(temporary, folder / FILE)
    files.sync_folder(folder)


def _checksum(content: dict[str, Any]) -> int:
    return zlib.crc32(json.dumps(content, ensure_ascii=False, sort_keys=True).encode())
