"""A store of vectors: the vectors of all passages of an index, computed once, packed, and mapped into memory.

A store is a folder `neural/NAME` of the index. It holds a copy of the encoder, folders of vectors (`update` adds one,
`merging` joins some), and a manifest that is replaced atomically. The key of a document is a hash of everything that
its vectors depend on. So a document is encoded only once, even if segments are merged. The location of a document's
vectors is the number of a file and the number of the document in this file. Each update saves the locations of all
documents by segment, so that a search does not compute keys.

The kind of a store says which vectors it has: one per token (`tokens`); one per token in the context of the document,
by graph attention (`context`), with late fusion also those of the passage alone; one per passage (`pooled`); or one per
passage that the user supplied (`own`).
"""

from __future__ import annotations

import errno
import hashlib
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from perikope.core import files
from perikope.core.array_files import Shape, StoredArray, hash_of
from perikope.core.arrays import Bytes, Integers
from perikope.core.errors import InputError, UsageError
from perikope.index.reader import Snapshot
from perikope.index.saved_tables import check_name
from perikope.index.segments import Segment
from perikope.index.vector_stores import FOLDER, MANIFEST, store_names
from perikope.neural.stores import manifest as manifests
from perikope.neural.stores.batch import Batch
from perikope.neural.stores.cluster_options import ClusterOptions
from perikope.neural.stores.clusters import Clusters, has_faiss
from perikope.neural.stores.codebook import LEVELS, MAKE_AGAIN, Codebook, CodedDocument, PackedVectors, damaged
from perikope.neural.stores.manifest import VECTORS, Kind, StoreManifest
from perikope.neural.triples import passages_of, with_path

_OPTIONS: Mapping[Kind, str] = {"tokens": "", "context": " --encoder FOLDER", "pooled": " --pooled", "own": " --pooled"}
"""Options of `perikope encode` that make a store of each kind."""
KEY = 16
"""Length of a document's key, in bytes."""


class VectorStore:
    """An open store of vectors.

    The files are read or mapped when the store is opened, except those of the encoder. So an update by another process
    changes nothing for an open store.
    """

    def __init__(self, folder: Path) -> None:
        """Open the store in a folder, and check its manifest and small files."""
        self.folder = folder
        while True:
            data = _read_manifest(folder)
            try:
                self._open(manifests.parse(data, folder))
                return
            except (OSError, KeyError, ValueError) as error:
                # An update by another process may have removed files that the manifest named.
                if _read_manifest(folder) == data:
                    if isinstance(error, OSError) and error.errno in _NOT_DAMAGE:
                        raise _unreadable(folder, error) from None
                    message = f"is not a store of vectors, or is damaged ({_short(error)}): {MAKE_AGAIN}"
                    raise InputError(message, path=folder) from None

    def _open(self, manifest: StoreManifest) -> None:
        """Read or map all arrays."""
        self.manifest = manifest
        self._encoder_is_right = False
        self.codebooks = {name: self._codebook(*pair) for name, pair in manifest.codebook_files.items()}
        widths = {name: book.bytes_per_vector for name, book in self.codebooks.items()}
        self._files = [Batch(self, entry, widths) for entry in manifest.files]
        self._keys: Bytes = self.checked(manifest.keys, np.uint8, (None, KEY))
        self._rows_of_key: Integers = self.checked(manifest.rows, np.int64, (self._keys.shape[0], 2))
        self._check_rows(self._rows_of_key)
        self._saved = {
            segment: StoredArray(self.folder / entry["rows"], np.int64, (None, 3), mapped=True)
            for segment, entry in manifest.segments.items()
        }
        self._rows_of_segment: WeakKeyDictionary[Segment, Integers] = WeakKeyDictionary()
        self._missing_in: WeakKeyDictionary[Snapshot, int] = WeakKeyDictionary()
        self.places: WeakKeyDictionary[Snapshot, Any] = WeakKeyDictionary()

    def checked(self, name: str, kind: Any, shape: Shape) -> Any:
        """Read an array of the store and compare the hash of its file; see `StoredArray`."""
        # These files are small, and all vectors depend on them.
        array = StoredArray(self.folder / name, kind, shape)
        if array.hash() != self.manifest.hashes[name]:
            raise ValueError(name)
        return array.values

    @classmethod
    def open(cls, index: Path, name: str, kind: Kind = "tokens") -> VectorStore:
        """Open a store of an index by its name; if there is none, the error names the command that makes one."""
        check_name(name)
        folder = index / FOLDER / name
        if not (folder / MANIFEST).is_file():
            known, make = ", ".join(store_names(index)) or "none", f"perikope encode {index}{_OPTIONS[kind]} --name {name}"
            raise UsageError(f"there is no store of vectors {name!r} in {index} (there are: {known}); make it with `{make}`")
        return cls(folder)

    @property
    def name(self) -> str:
        """The name that models use in `store=NAME`."""
        return self.folder.name

    @property
    def kind(self) -> Kind:
        """Which vectors the store has: `tokens`, `context`, `pooled` or `own`."""
        return self.manifest.kind

    @property
    def facts(self) -> dict[str, Any]:
        """How the vectors were made: encoder, hash of its weights, runtime, and for `context` the variant and α."""
        return dict(self.manifest.facts)

    @property
    def codebook(self) -> Codebook:
        """The codebook of the vectors that passages are ranked by."""
        return self.codebooks[VECTORS]

    @property
    def bytes_per_token(self) -> int:
        """Bytes of the packed vectors of one token, in all matrices."""
        return sum(book.bytes_per_vector for book in self.codebooks.values())

    @property
    def heading_path(self) -> bool:
        """Whether the heading path was prepended to the text of a passage before it was encoded."""
        return self.manifest.heading_path

    @property
    def encoder(self) -> Path | None:
        """The folder of the store's encoder; None if there is none, as for vectors that the user supplied."""
        folder = self.folder / self.manifest.encoder
        return folder if self.manifest.encoder and folder.is_dir() else None

    @property
    def encoder_hashes(self) -> tuple[tuple[str, str], ...]:
        """The name and the hash of each file of the encoder."""
        inside = f"{self.manifest.encoder}/"
        return tuple(sorted((name.removeprefix(inside), hash_) for name, hash_ in self.hashes.items() if name.startswith(inside)))

    @property
    def hashes(self) -> Mapping[str, str]:
        """The hash of every file by its name."""
        return self.manifest.hashes

    def check_encoder(self) -> None:
        """Compare the hashes of the encoder's files, once; raises `InputError` if one is damaged or missing.

        The files are given to other programs, which may allocate what a damaged file asks for.
        """
        if not self._encoder_is_right:
            if wrong := self.damaged_files(f"{self.manifest.encoder}/"):
                raise damaged(self.folder, ", ".join(wrong[:3]))
            self._encoder_is_right = True

    @property
    def tokens(self) -> int:
        """The number of vectors per matrix: one per token, or one per passage if the kind is `pooled` or `own`.

        Vectors of deleted documents count as long as their file holds vectors of other documents.
        """
        return sum(file.rows[VECTORS].shape[0] for file in self._files)

    @property
    def documents(self) -> int:
        """The number of documents with vectors, as of the last update."""
        return int(self._keys.shape[0])

    @cached_property
    def known(self) -> dict[bytes, tuple[int, int]]:
        """The file of each document and its number in that file, by the document's key."""
        return {
            key.tobytes(): (file, number) for key, (file, number) in zip(np.asarray(self._keys), self._rows_of_key.tolist(), strict=True)
        }

    def missing(self, snapshot: Snapshot) -> int:
        """The number of documents of an index that have no vectors in the store. It is counted once per snapshot."""
        missing = self._missing_in.get(snapshot)
        if missing is None:
            missing = sum(int((self.rows_of(snapshot, segment)[segment.alive, 0] < 0).sum()) for segment in snapshot.segments)
            self._missing_in[snapshot] = missing
        return missing

    def updated_by(self, index: Path) -> str:
        """What adds the missing vectors to the store: a command or, for vectors that the user supplied, a function."""
        return "perikope.neural.models.add_vectors" if self.kind == "own" else f"`perikope encode {index} --name {self.name}`"

    def find(self, snapshot: Snapshot, documents: Integers, matrix: str = VECTORS) -> PackedVectors:
        """The vectors of all passages of some documents, in the order of `documents`.

        `documents` (documents,) are numbers in the snapshot. `matrix` is the name of a matrix of the store.
        """
        coded = []
        for number in documents.tolist():
            segment, local = snapshot.locate(number)
            file, number_in_file = self.rows_of(snapshot, segment)[local].tolist()
            if file < 0:
                raise UsageError(
                    f"the store {self.name!r} has no vectors of document {segment.document_id(local)!r}, because the index has "
                    f"changed, or because encoding was stopped; update the store with {self.updated_by(snapshot.folder)}"
                )
            coded.append(self.packed(file, number_in_file, matrix))
        return PackedVectors.of(self.codebooks[matrix], coded)

    def packed(self, file: int, number: int, matrix: str) -> CodedDocument:
        """The packed vectors of a document, by the number of its file and its number in the file."""
        return self._files[file].document(number, matrix)

    @property
    def cluster_options(self) -> ClusterOptions:
        """When the store has clusters, and how a search uses them."""
        return ClusterOptions.of(self.manifest.cluster_options)

    @cached_property
    def clusters(self) -> Clusters | None:
        """The clusters of the vectors; None if there are none, or if faiss is not installed."""
        return Clusters(self) if self.manifest.clusters and has_faiss() else None

    @property
    def batches(self) -> Sequence[Batch]:
        """The vectors of each update, in the order of the manifest; locations of documents count in this order."""
        return self._files

    @property
    def documents_of_files(self) -> list[int]:
        """The number of documents in each file, including those that the index no longer has."""
        return [file.documents for file in self._files]

    def rows_of(self, snapshot: Snapshot, segment: Segment) -> Integers:
        """The location of each document of a segment: the number of its file, and its number in the file.

        The array is (documents, 2). Both numbers are -1 for a document without vectors.
        """
        rows = self._rows_of_segment.get(segment)
        if rows is None:
            rows = self._rows_of_segment[segment] = self._locate(snapshot, segment)
        return rows

    def _locate(self, snapshot: Snapshot, segment: Segment) -> Integers:
        """Compute `rows_of` from the saved locations of the segment, and by key for documents that may have changed."""
        saved = self._saved_rows(segment)
        rows = np.full((segment.documents, 2), -1, np.int64) if saved is None else saved[:, :2].copy()
        unsure = segment.alive.copy()
        if saved is not None:
            # A segment never changes, but documents cited by its documents may be in other segments.
            unsure &= (saved[:, 2] != 0) & (snapshot.manifest.fingerprint != self.manifest.index)
        for local in np.flatnonzero(unsure).tolist():
            rows[local] = self.known.get(document_key(snapshot, segment, local, self.kind, self.heading_path), (-1, -1))
        return rows

    def _saved_rows(self, segment: Segment) -> Integers | None:
        """The saved locations of a segment's documents; None if the store has none for this segment.

        The array is (documents, 3): file, number in the file, and 1 if the vectors depend on other documents, else 0.
        All three are -1 for a document that was deleted before the update.
        """
        entry = self.manifest.segments.get(segment.entry["file"])
        if entry is None or entry["checksum"] != segment.entry["checksum"]:
            return None
        saved = self._saved[segment.entry["file"]]
        rows: Integers = saved.values
        try:
            if rows.shape[0] != segment.documents or saved.hash() != self.hashes[entry["rows"]]:
                raise ValueError("rows")
            self._check_rows(rows[rows[:, 0] >= 0])
        except (KeyError, ValueError):
            raise damaged(self.folder, "locations of a segment's documents") from None
        return rows

    def _check_rows(self, rows: Integers) -> None:
        """Raise an error if a location, the first two values of a row, has a file or document that does not exist."""
        counts = np.array([file.documents for file in self._files], np.int64)
        file, number = rows[:, 0], rows[:, 1]
        if rows.size and (int(file.min()) < 0 or int(file.max()) >= counts.size or int(number.min()) < 0 or np.any(number >= counts[file])):
            raise ValueError("rows")

    def _codebook(self, centroids_file: str, levels_file: str) -> Codebook:
        """Read a codebook."""
        centroids = self.checked(centroids_file, np.float32, (None, self.manifest.dimension))
        levels = self.checked(levels_file, np.float32, (LEVELS,))
        if not (np.isfinite(centroids).all() and np.isfinite(levels).all()):
            raise ValueError("centroids")
        return Codebook(self.manifest.code, self.manifest.dimension, centroids, levels)

    def damaged_files(self, inside: str = "") -> list[str]:
        """Names of the files that are missing or have another hash than when they were written; reads all files.

        `inside` limits the files to those whose names begin with it.
        """
        return [name for name, known in self.hashes.items() if name.startswith(inside) and _hash_or_none(self.folder / name) != known]


def _read_manifest(folder: Path) -> bytes:
    try:
        return files.read(folder / MANIFEST)
    except OSError as error:
        if error.errno in _NOT_DAMAGE:
            raise _unreadable(folder, error) from None
        raise InputError(f"is not a store of vectors, or cannot be read ({error.strerror}): {MAKE_AGAIN}", path=folder) from None


_NOT_DAMAGE = (errno.EMFILE, errno.ENFILE, errno.EACCES, errno.EPERM, errno.ENOMEM, errno.EIO, errno.ESTALE)
"""Errors of the operating system that say nothing about the content of a store."""


def _unreadable(folder: Path, error: OSError) -> InputError:
    """The error for a store that may be sound, but cannot be read now."""
    if error.errno in (errno.EMFILE, errno.ENFILE):
        advice = "raise the limit of open files (ulimit -n)"
    else:
        advice = "check its permissions and the disk"
    return InputError(f"cannot be read ({error.strerror}): {advice}", path=folder)


def _hash_or_none(path: Path) -> str | None:
    try:
        return hash_of(path)
    except OSError:
        return None


def _short(error: Exception) -> str:
    """What a message repeats of an error: its type, and the name of the file if there is one."""
    name = Path(error.filename).name if isinstance(error, OSError) and error.filename else ""
    return f"{type(error).__name__} {name}".strip()


def document_key(snapshot: Snapshot, segment: Segment, local: int, kind: Kind, heading_path: bool) -> bytes:
    """The key of a document: a hash of its id, names and encoded texts of its passages, and for `context` its graph.

    `local` is the number of the document in the segment.
    """
    digest = hashlib.blake2b(digest_size=KEY)
    document = segment.document_id(local)
    pieces: list[str] = [document]
    for name, text, path in passages_of(segment, local, document):
        pieces += [name, with_path(path if heading_path else (), text)]
    for piece in pieces:
        _add(digest, piece.encode("utf-8", "surrogatepass"))
    if kind == "context":
        from perikope.neural.graph import FORWARD, read_graph

        graph = read_graph(snapshot, int(snapshot.first_document[snapshot.segments.index(segment)]) + local)
        for text in graph.texts:
            _add(digest, text.encode("utf-8", "surrogatepass"))
        _add(digest, graph.is_passage.tobytes())
        for relation in FORWARD:
            _add(digest, np.ascontiguousarray(graph.edges[relation], "<i8").tobytes())
    return digest.digest()


def _add(digest: Any, data: bytes) -> None:
    digest.update(len(data).to_bytes(8, "little") + data)


def heading_paths(snapshot: Snapshot, document: int) -> list[tuple[str, ...]]:
    """The heading paths of a document's passages."""
    segment, local = snapshot.locate(document)
    return [tuple(path) for _, _, path in passages_of(segment, local, segment.document_id(local))]


def written_passages(snapshot: Snapshot, document: int, heading_path: bool) -> list[str]:
    """The texts of a document's passages as they are encoded, after their heading paths if `heading_path` is true."""
    segment, local = snapshot.locate(document)
    return [with_path(path if heading_path else (), text) for _, text, path in passages_of(segment, local, segment.document_id(local))]
