"""The manifest: the small file that names the segments of an index.

A commit replaces the manifest atomically, so that a reader sees either the old index or the new one.
"""

from __future__ import annotations

import dataclasses
import json
import re
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from perikope.core import files
from perikope.core.checked_json import has_right_checksum, parse_object, with_checksum
from perikope.core.errors import IndexFormatError
from perikope.core.versions import advice_about_version

FILE = files.MANIFEST_FILE
FORMAT = 3
FORMAT_OF_CLUSTER = 4
"""The format of the manifest of a cluster, which earlier programs refuse."""
_FILE_NAME = r"segment-[0-9A-Za-z-]+\.columns"
_FILE_OF_SHARD = r"shard-[0-9]{3}/" + _FILE_NAME


@dataclass(frozen=True, slots=True)
class Manifest:
    """The state of an index at one commit."""

    analysis: dict[str, Any]
    language: str
    segments: tuple[dict[str, Any], ...] = ()
    generation: int = 0
    left_out: Mapping[str, list[str]] = field(default_factory=dict)
    """The files with a document that was left out, because a document of another file has the same id.

    Each is listed with these other files. If one of them changes, the file must be read again. A file that was not read
    completely is listed with itself: the next sync always reads it again.
    """

    shards: tuple[dict[str, Any], ...] = ()
    """For a cluster, the `generation` and `left_out` of each shard, see `perikope.index.shards`. Empty for an index."""

    @property
    def documents(self) -> int:
        """The number of documents that are not deleted."""
        return sum(segment["documents"] - segment.get("deleted", {}).get("documents", 0) for segment in self.segments)

    @property
    def fingerprint(self) -> str:
        """A checksum of the content of the index, as eight hexadecimal digits."""
        content = json.dumps([self.analysis, self.language, [[s["checksum"], s.get("deleted", {}).get("checksum")] for s in self.segments]])
        return f"{zlib.crc32(content.encode()):08x}"


def load(folder: Path) -> Manifest:
    """Read and check the manifest of an index.

    Raises an `IndexFormatError` if it is missing, damaged or of another version.
    """
    path = folder / FILE
    try:
        content = parse_object(files.read(path))
    except (FileNotFoundError, NotADirectoryError):
        hint = "it is not a folder" if folder.exists() and not folder.is_dir() else "make one with `perikope index FILES --to FOLDER`"
        raise IndexFormatError(f"{folder} is not an index: {hint}") from None
    except OSError as error:
        raise IndexFormatError(f"cannot read {path}: {error.strerror}") from None
    except ValueError:
        raise IndexFormatError(f"{path} is damaged: restore it from a copy or build the index again") from None
    return decoded(content, path)


def decoded(content: dict[str, Any], path: Path) -> Manifest:
    """The manifest with this content, which was read from a file. Raises an `IndexFormatError` as `load` does."""
    if (version := content.get("format")) not in (FORMAT, FORMAT_OF_CLUSTER):
        advice = advice_about_version(version, max(FORMAT, FORMAT_OF_CLUSTER), "build the index again")
        raise IndexFormatError(f"{path.parent} has index format {str(version)[:20]}, this program reads {FORMAT}: {advice}")
    try:
        left_out = content.get("left_out", {})
        manifest = Manifest(content["analysis"], content["language"], tuple(content["segments"]), content["generation"], left_out)
        if version == FORMAT_OF_CLUSTER:
            manifest = dataclasses.replace(manifest, shards=tuple(content["shards"]))
        if not has_right_checksum(content) or not _sound(manifest) or (version == FORMAT_OF_CLUSTER) != bool(manifest.shards):
            raise ValueError("damaged")
        return manifest
    except (AttributeError, KeyError, TypeError, ValueError):
        raise IndexFormatError(f"{path} is damaged: restore it from a copy or build the index again") from None


def has_file_of(manifest: Manifest, stamp: str) -> bool:
    """Whether a manifest names a file of the writer with this stamp, so that a commit of this writer was made."""
    entries = (entry for segment in manifest.segments for entry in (segment, segment.get("deleted")) if entry is not None)
    return any(stamp in entry["file"].split("-") for entry in entries)


def replace(folder: Path, manifest: Manifest) -> None:
    """Replace the manifest of an index, atomically and durably."""
    with files.replacing_binary(folder / FILE) as file:
        file.write(encoded(manifest))


def encoded(manifest: Manifest) -> bytes:
    """The content of the file of a manifest."""
    content: dict[str, Any] = {
        "format": FORMAT_OF_CLUSTER if manifest.shards else FORMAT,
        "generation": manifest.generation,
        "analysis": manifest.analysis,
        "language": manifest.language,
        "segments": list(manifest.segments),
    }
    if manifest.left_out:
        content["left_out"] = dict(manifest.left_out)
    if manifest.shards:
        content["shards"] = list(manifest.shards)
    # One line per value. With an indent, the encoder of Python leaves cycles of functions to the garbage collector.
    lines = (f"{json.dumps(name)}: {json.dumps(value, ensure_ascii=False)}" for name, value in with_checksum(content).items())
    return ("{\n " + ",\n ".join(lines) + "\n}").encode("utf-8", "surrogatepass")


def _sound(manifest: Manifest) -> bool:
    """Whether all values have the expected types, and all file names are distinct and well formed."""
    entries = [entry for segment in manifest.segments for entry in (segment, segment.get("deleted")) if entry is not None]
    numbers = [manifest.generation, *(entry[name] for entry in entries for name in ("size", "checksum", "documents"))]
    numbers += [segment["tokens"] for segment in manifest.segments] + [shard["generation"] for shard in manifest.shards]
    return (
        isinstance(manifest.analysis, dict)
        and isinstance(manifest.language, str)
        and isinstance(manifest.left_out, dict)
        and all(
            isinstance(source, str)
            for left_out in (manifest.left_out, *(shard["left_out"] for shard in manifest.shards))
            for sources in left_out.values()
            for source in sources
        )
        and all(type(number) is int and number >= 0 for number in numbers)
        and all(re.fullmatch(_FILE_OF_SHARD if manifest.shards else _FILE_NAME, entry["file"]) for entry in entries)
        and len({entry["file"] for entry in entries}) == len(entries)
    )
