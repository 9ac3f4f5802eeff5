"""The manifest of a store of vectors: the small file that names all other files of the store.

An update writes files under names that were never used before, and then replaces the manifest atomically. So a reader
sees either the old store or the new one. The names of a store's folder:

store.json            the manifest
write.lock            the lock of the process that updates the store
encoder-STAMP         the encoder
codebooks-STAMP       the codebook of each matrix
batch-STAMP           the vectors of the documents that one update has encoded, or of several merged batches
locations-STAMP       where the vectors of each document are, as of the last update
clusters-STAMP        clusters of the vectors of some batches, by which a search finds the nearest without reading all

Version 4 had no clusters. Version 3 also had no checksum. Its encoder and codebooks had fixed names, and its locations
were single files.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal, get_args

from perikope.core import files
from perikope.core.checked_json import CHECKSUM, has_right_checksum, parse_object, with_checksum
from perikope.core.errors import InputError, UsageError
from perikope.core.locks import LOCK_FILE
from perikope.core.versions import advice_about_version
from perikope.index.vector_stores import MANIFEST
from perikope.neural.stores.cluster_options import CLUSTER_FILES, ClusterOptions
from perikope.neural.stores.codebook import CODES, MAKE_AGAIN, Code

VERSION = 5
_WITHOUT_CLUSTERS, _WITHOUT_CHECKSUM = 4, 3
"""Earlier versions, which are still read. The next update writes the current version."""
Kind = Literal["tokens", "context", "pooled", "own"]
KINDS: tuple[Kind, ...] = get_args(Kind)
ENCODER, CODEBOOKS, BATCH, LOCATIONS, CLUSTERS = "encoder", "codebooks", "batch", "locations", "clusters"
"""What the names of the folders of a store begin with."""
VECTORS, CONTENT = "vectors", "content"
"""Names of a passage's matrices: the vectors that models rank by and, with late fusion, those of the passage alone."""
MAX_DIMENSION = 1 << 16
"""The maximum number of values per vector."""
_STAMP = "[0-9a-f]{16}"
_FOLDER = re.compile(rf"({ENCODER}|{CODEBOOKS}|{BATCH}|{LOCATIONS}|{CLUSTERS})-{_STAMP}")
_EARLIER = re.compile(rf"encoder|(vectors|content)-(centroids|levels)\.npy|(keys|rows)-{_STAMP}\.npy|segment-{_STAMP}-[0-9]+\.npy")
"""Names in version 3 that the current version does not use."""
_FILE = re.compile(r"(?:([^/\\\0]+)/)?([^/\\\0]+)")
"""A file in the folder of a store, or in one of its folders."""


@dataclass(frozen=True, slots=True)
class StoreManifest:
    """The state of a store after one update. Names of files are relative to the folder of the store."""

    kind: Kind
    code: Code
    heading_path: bool
    """Whether the heading path was prepended to the text of a passage before it was encoded."""
    dimension: int
    """Values per vector."""
    matrices: tuple[str, ...]
    facts: Mapping[str, Any]
    """How the vectors were made: encoder, hash of its weights, runtime, and for `context` the variant and α."""
    encoder: str
    """The folder of the encoder; empty for vectors that the user supplied."""
    codebooks: str
    """The folder of the codebooks; empty for the folder of the store, as in version 3."""
    files: tuple[str, ...]
    """The folders of vectors."""
    keys: str
    rows: str
    segments: Mapping[str, Mapping[str, Any]]
    """For each segment file of the index: its checksum, and the file with the locations of its documents (`rows`)."""
    index: str
    """The fingerprint of the index that the store was updated for."""
    hashes: Mapping[str, str]
    """The hash of every file."""
    clusters: str = ""
    """The folder of the clusters; empty if there are none."""
    clustered: Mapping[str, int] = field(default_factory=dict)
    """The batches whose vectors are in the clusters, in order, with their numbers of vectors. A batch may be gone."""
    cluster_options: Mapping[str, Any] = field(default_factory=dict)
    """The values of `ClusterOptions` that differ from their defaults."""

    @property
    def settings(self) -> dict[str, Any]:
        """The values that an update must have in common with the store."""
        return {name: getattr(self, name) for name in ("kind", "code", "heading_path", "dimension", "matrices", "facts")}

    @property
    def codebook_files(self) -> dict[str, tuple[str, str]]:
        """The files with centroids and levels of each matrix."""
        prefix = f"{self.codebooks}/" if self.codebooks else ""
        return {name: (f"{prefix}{name}-centroids.npy", f"{prefix}{name}-levels.npy") for name in self.matrices}

    @property
    def location_files(self) -> list[str]:
        """The files with the locations of documents."""
        return [self.keys, self.rows, *(entry["rows"] for entry in self.segments.values())]

    @property
    def cluster_files(self) -> list[str]:
        """The files of the clusters."""
        return [f"{self.clusters}/{name}" for name in CLUSTER_FILES] if self.clusters else []

    @property
    def names(self) -> set[str]:
        """The names in the folder of the store that the manifest refers to."""
        single = [name for pair in self.codebook_files.values() for name in pair] + self.location_files
        return {self.encoder, self.clusters, *self.files, *(name.split("/")[0] for name in single)} - {""}


def leftovers(folder: Path, *manifests: StoreManifest) -> list[Path]:
    """What an interrupted update left in the folder of a store, and what a later update replaced.

    Everything that the manifests name is kept, and so are names that no store uses.
    """
    named = {name for manifest in manifests for name in manifest.names}
    paths = folder.iterdir() if folder.is_dir() else ()
    return sorted(path for path in paths if files.is_temporary(path.name) or (_is_own(path.name) and path.name not in named))


def unknown_files(folder: Path, manifest: StoreManifest) -> list[Path]:
    """The files and folders that are not part of a store."""
    known = {LOCK_FILE, MANIFEST, *manifest.names}
    return sorted(path for path in folder.iterdir() if path.name not in known)


def _is_own(name: str) -> bool:
    return _FOLDER.fullmatch(name) is not None or _EARLIER.fullmatch(name) is not None


def parse(data: bytes, folder: Path) -> StoreManifest:
    """The manifest with this content. `folder` is for the error if the version is another.

    Raises a `ValueError` if the content is damaged.
    """
    content = parse_object(data)
    version = content.get("version")
    # A manifest with a checksum is never taken for an earlier version: its version would be the damage.
    if CHECKSUM in content and not has_right_checksum(content):
        raise ValueError("checksum")
    if version not in (VERSION, _WITHOUT_CLUSTERS, _WITHOUT_CHECKSUM) or isinstance(version, bool | float):
        advice = advice_about_version(version, VERSION, MAKE_AGAIN)
        raise InputError(f"has version {str(version)[:20]}, this program reads {VERSION}: {advice}", path=folder)
    if (CHECKSUM in content) != (version != _WITHOUT_CHECKSUM):
        raise ValueError("checksum")
    if version == _WITHOUT_CHECKSUM:
        content |= {"encoder": "" if content.get("kind") == "own" else "encoder", "codebooks": ""}
    if version != VERSION:
        content |= {"clusters": "", "clustered": {}, "cluster_options": {}}
    try:
        values = {name: content[name] for name in StoreManifest.__slots__}
        manifest = StoreManifest(**{**values, "matrices": tuple(values["matrices"]), "files": tuple(values["files"])})
        if content.get("perikope") != "vectors" or not _sound(manifest):
            raise ValueError("values")
    except (AttributeError, KeyError, TypeError, IndexError, UsageError) as error:
        raise ValueError(type(error).__name__) from None
    return manifest


def replace(folder: Path, manifest: StoreManifest) -> None:
    """Replace the manifest of a store, atomically and durably. The files that it names must be durable already."""
    content = {"perikope": "vectors", "version": VERSION, **asdict(manifest)}
    data = json.dumps(with_checksum(json.loads(json.dumps(content)))).encode()
    with files.replacing_binary(folder / MANIFEST) as file:
        file.write(data)


def _sound(manifest: StoreManifest) -> bool:
    """Whether all values have the expected types, and all names are distinct and well formed."""
    files_ = [name for pair in manifest.codebook_files.values() for name in pair] + manifest.location_files
    return (
        manifest.kind in KINDS
        and manifest.code in CODES
        and isinstance(manifest.heading_path, bool)
        and type(manifest.dimension) is int
        and 0 < manifest.dimension <= MAX_DIMENSION
        and (manifest.code != "residual" or manifest.dimension % 4 == 0)
        and manifest.matrices in ((VECTORS,), (VECTORS, CONTENT))
        and _sound_facts(manifest)
        and all(_is_own(name) for name in manifest.names)
        and manifest.encoder[:7] in ("", "encoder")
        and manifest.codebooks[:10] in ("", "codebooks-")
        and all(name.startswith("batch-") for name in manifest.files)
        and len({*manifest.files, *files_}) == len(manifest.files) + len(files_)
        and isinstance(manifest.index, str)
        and manifest.clusters[:9] in ("", f"{CLUSTERS}-")
        and all(type(count) is int and count >= 0 for count in manifest.clustered.values())
        and ClusterOptions.of(manifest.cluster_options).plain() == manifest.cluster_options
        and all(type(entry["checksum"]) is int for entry in manifest.segments.values())
        and all(isinstance(hash_, str) for hash_ in manifest.hashes.values())
        and all(_names_file(name, manifest.names) for name in manifest.hashes)
        and all(name in manifest.hashes for name in (*files_, *manifest.cluster_files))
    )


def _sound_facts(manifest: StoreManifest) -> bool:
    facts = manifest.facts
    if not isinstance(facts, dict):
        return False
    alpha = facts.get("alpha")
    return manifest.kind != "context" or (
        isinstance(facts.get("variant"), str) and (alpha is None or (type(alpha) in (int, float) and 0 <= alpha <= 1))
    )


def _names_file(path: str, names: set[str]) -> bool:
    """Whether `path` is one of `names`, or a file in a folder that is one of them."""
    match = _FILE.fullmatch(path)
    return match is not None and ".." not in match.groups() and (match[1] or match[2]) in names
