"""Make or update a store of vectors: encode and pack new documents, then replace the manifest."""

from __future__ import annotations

import contextlib
import dataclasses
import secrets
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from perikope.core import files
from perikope.core.array_files import hash_of
from perikope.core.arrays import Floats32, Integers
from perikope.core.errors import UsageError
from perikope.core.files import writing
from perikope.core.locks import take_lock
from perikope.index.reader import Snapshot
from perikope.index.saved_tables import check_name
from perikope.index.vector_stores import FOLDER, MANIFEST
from perikope.neural.stores import manifest as manifests
from perikope.neural.stores.clusters import can_have_clusters, has_faiss, is_stale, write_clusters
from perikope.neural.stores.codebook import Code, Codebook, damaged
from perikope.neural.stores.manifest import BATCH, CLUSTERS, CODEBOOKS, ENCODER, LOCATIONS, VECTORS, Kind, StoreManifest
from perikope.neural.stores.merging import batches_to_merge, copied
from perikope.neural.stores.store import VectorStore, document_key, written_passages
from perikope.neural.stores.writing import (
    KEYS_FILE,
    ROWS_FILE,
    Encoded,
    packed,
    segment_file,
    write_batch,
    write_codebooks,
    write_locations,
)

_SAMPLE = 1 << 17
"""Maximum number of vectors that codebooks are fitted to."""
_SAMPLED_PASSAGES = 32
"""Maximum passages per document in the sample that codebooks are fitted to."""
_PASSAGES_AT_ONCE = 1024
"""Passages that are encoded together; a document is not divided."""
SECONDS = 60.0
"""Seconds of encoding after which the vectors so far are made durable."""

Encode = Callable[[Sequence[str]], Iterator[tuple[int, Floats32, Integers]]]
"""Takes texts and yields, in any order, the number of each text, its vectors (vectors, dimension), and their token
positions (vectors,)."""


class DocumentEncoder(Protocol):
    """Encodes the passages of documents for a store."""

    @property
    def kind(self) -> Kind:
        """The kind of store that the vectors are for."""

    @property
    def dimension(self) -> int:
        """Values per vector."""

    @property
    def heading_path(self) -> bool:
        """Whether the heading path is prepended to the text of a passage before it is encoded."""

    @property
    def matrices(self) -> tuple[str, ...]:
        """The names of the matrices that each passage has."""

    def encode(self, snapshot: Snapshot, documents: Sequence[int]) -> Iterable[list[Encoded]]:
        """One list per document, in order, with the vectors of each of its passages; `documents` are numbers."""

    def sample(self, snapshot: Snapshot, document: int, passages: Sequence[int]) -> list[Encoded]:
        """The vectors of some passages; `passages` are their numbers in the document."""


@dataclass(frozen=True)
class TextSource:
    """A `DocumentEncoder` that encodes each passage alone, by its text."""

    texts: Encode
    """Encodes texts."""
    dimension: int
    heading_path: bool = True
    kind: Kind = "tokens"
    matrices: tuple[str, ...] = (VECTORS,)

    def encode(self, snapshot: Snapshot, documents: Sequence[int]) -> Iterable[list[Encoded]]:
        """One list per document with the vectors of its passages; see `DocumentEncoder.encode`."""
        texts = [self._written(snapshot, document) for document in documents]
        encoded = self._encoded([text for texts_of_document in texts for text in texts_of_document])
        first = np.cumsum([0, *map(len, texts)]).tolist()
        return [encoded[start:end] for start, end in pairwise(first)]

    def sample(self, snapshot: Snapshot, document: int, passages: Sequence[int]) -> list[Encoded]:
        """The vectors of some passages of a document; see `DocumentEncoder.sample`."""
        texts = self._written(snapshot, document)
        return self._encoded([texts[passage] for passage in passages])

    def _written(self, snapshot: Snapshot, document: int) -> list[str]:
        return written_passages(snapshot, document, self.heading_path)

    def _encoded(self, texts: Sequence[str]) -> list[Encoded]:
        encoded = [Encoded((np.zeros((0, self.dimension), np.float32),), np.zeros(0, np.int64))] * len(texts)
        for number, vectors, position in self.texts(texts):
            encoded[number] = Encoded((vectors,), position)
        return encoded


def update_store(
    snapshot: Snapshot,
    name: str,
    encode: Encode,
    dimension: int,
    *,
    heading_path: bool = True,
    kind: Kind = "tokens",
    **options: Any,
) -> VectorStore:
    """Make or update a store with a function that encodes texts; `options` are those of `update_store_from`.

    `dimension` is the number of values per vector.
    """
    return update_store_from(snapshot, name, TextSource(encode, dimension, heading_path, kind), **options)


def update_store_from(
    snapshot: Snapshot,
    name: str,
    source: DocumentEncoder,
    *,
    code: Code = "residual",
    save_encoder: Callable[[Path], None] | None = None,
    facts: Mapping[str, Any] | None = None,
    on_document: Callable[[int], None] = lambda passages: None,
    on_pending: Callable[[Sequence[int]], None] = lambda passages: None,
    seconds: float = SECONDS,
    seed: int = 1,
    clusters: Mapping[str, Any] | None = None,
    threads: int = 1,
) -> VectorStore:
    """Make a store, or update it: encode documents that it does not know, and drop those that were deleted.

    - `source`: encodes documents.
    - `code`: how vectors are packed. The codebook is fitted to a sample of the vectors of the first update.
    - `save_encoder`: writes the encoder to a folder; None for vectors that the user supplies.
    - `facts`: how the vectors are made, kept in the manifest. An update with other facts, another code, or vectors of
      another kind or dimension is refused.
    - `on_document`: called with the number of passages of each document that is encoded.
    - `on_pending`: called once, with the number of passages of every document that will be encoded.
    - `seconds`: after so much encoding, vectors are made durable. A stopped update continues from there.
    - `seed`: decides the sample and the centroids.
    - `clusters`: options of `ClusterOptions`. Options that are not given keep the values of the store.
    - `threads`: the number of threads that compute clusters.
    """
    check_name(name)
    folder = snapshot.folder / FOLDER / name
    with writing(folder):
        files.make_folder(folder)
    with writing(folder), take_lock(folder, advice=""):
        job = _Update(snapshot, folder, source, code, dict(facts or {}), on_document, on_pending, seconds, seed, clusters or {}, threads)
        return job.run(save_encoder)


@dataclass(frozen=True, slots=True)
class _Update:
    """One update of a store, under its lock; see `update_store_from`."""

    snapshot: Snapshot
    folder: Path
    source: DocumentEncoder
    code: Code
    facts: dict[str, Any]
    on_document: Callable[[int], None]
    on_pending: Callable[[Sequence[int]], None]
    seconds: float
    seed: int
    clusters: Mapping[str, Any]
    threads: int

    def run(self, save_encoder: Callable[[Path], None] | None) -> VectorStore:
        """Encode new documents, and replace the manifest now and then; everything that it names is durable before."""
        settings: dict[str, Any] = {
            "kind": self.source.kind,
            "code": self.code,
            "heading_path": self.source.heading_path,
            "dimension": self.source.dimension,
            "matrices": tuple(self.source.matrices),
            "facts": self.facts,
        }
        old = self._open_old(settings)
        self._clear(old)
        encoder = self._encoder(old, save_encoder)
        # A codebook cannot be fitted without vectors: that of a store without vectors is fitted again.
        fitted = old if old is not None and old.tokens > 0 else None
        location_of_key, new, documents_of_segment = _compare(self.snapshot, self.source, old)
        self.on_pending([len(self._passages_of(document)) for document in new.values()])
        codebooks, ready = self._codebooks(fitted, new)
        books_in = fitted.manifest.codebooks if fitted is not None else self._write(CODEBOOKS, partial(write_codebooks, codebooks))
        while True:
            entries = list(old.manifest.files) if old is not None else []
            if old is not None:
                self._merge(old, location_of_key, entries, 1 if new else 0)
            if new:
                taken: list[bytes] = []
                encoded = self._encoded(new, ready, taken)
                entries.append(self._write(BATCH, partial(write_batch, codebooks, packed(codebooks, encoded))))
                location_of_key |= {key: (len(entries) - 1, number) for number, key in enumerate(taken)}
                new = {key: document for key, document in new.items() if key not in location_of_key}
            # Files without documents are dropped; the others keep their order.
            used = sorted({file for file, _ in location_of_key.values()})
            new_number = {file: number for number, file in enumerate(used)}
            location_of_key = {key: (new_number[file], number) for key, (file, number) in sorted(location_of_key.items())}
            names = {"encoder": encoder, "codebooks": books_in, "files": tuple(entries[file] for file in used)}
            old = self._replace_manifest({**settings, **names}, location_of_key, documents_of_segment, old)
            if not new:
                return self._with_clusters(old)

    def _replace_manifest(
        self,
        known: Mapping[str, Any],
        location_of_key: Mapping[bytes, tuple[int, int]],
        documents_of_segment: Sequence[Located],
        old: VectorStore | None,
    ) -> VectorStore:
        """Make the vectors that are written so far a store, from which a stopped update continues."""
        rows_of_segment = _rows_of_segments(self.snapshot, location_of_key, documents_of_segment)
        locations = self._write(LOCATIONS, partial(write_locations, location_of_key, rows_of_segment))
        manifest = StoreManifest(
            **known,
            keys=f"{locations}/{KEYS_FILE}",
            rows=f"{locations}/{ROWS_FILE}",
            segments={
                segment.entry["file"]: {"checksum": segment.entry["checksum"], "rows": f"{locations}/{segment_file(number)}"}
                for number, segment in enumerate(self.snapshot.segments)
            },
            index=self.snapshot.manifest.fingerprint,
            hashes={},
            **({name: getattr(old.manifest, name) for name in ("clusters", "clustered", "cluster_options")} if old is not None else {}),
        )
        return self._replaced(manifest, old)

    def _with_clusters(self, store: VectorStore) -> VectorStore:
        """Make clusters of the vectors, or keep or drop them, as the options say."""
        known = store.manifest
        options = store.cluster_options.updated(self.clusters)
        manifest = dataclasses.replace(known, cluster_options=options.plain())
        if not can_have_clusters(store, options):
            manifest = dataclasses.replace(manifest, clusters="", clustered={})
        elif has_faiss() and (options.clusters != store.cluster_options.clusters or is_stale(known.clustered, store)):
            rows = [batch.whole() for batch in store.batches]
            name = self._write(CLUSTERS, partial(write_clusters, store.codebook, rows, options, self.threads))
            clustered = {batch.name: batch.rows[VECTORS].shape[0] for batch in store.batches}
            manifest = dataclasses.replace(manifest, clusters=name, clustered=clustered)
        return store if manifest == known else self._replaced(manifest, store)

    def _replaced(self, manifest: StoreManifest, old: VectorStore | None) -> VectorStore:
        """Replace the manifest by one whose hashes are still to be completed, and remove what it does not name."""
        manifests.replace(self.folder, dataclasses.replace(manifest, hashes=_hashes(self.folder, manifest, old)))
        store = VectorStore(self.folder)
        # This part of the update is finished. The next one removes what cannot be removed now.
        with contextlib.suppress(OSError):
            self._clear(store)
        return store

    def _passages_of(self, document: int) -> range:
        segment, local = self.snapshot.locate(document)
        return segment.passages_of(local)

    def _open_old(self, settings: Mapping[str, Any]) -> VectorStore | None:
        """The existing store, if any; raises an error if it is damaged or was made with other settings."""
        if not (self.folder / MANIFEST).is_file():
            return None
        old = VectorStore(self.folder)
        inside = f"{old.manifest.encoder}/"
        if wrong := [name for name in old.damaged_files() if not (old.manifest.encoder and name.startswith(inside))]:
            raise damaged(self.folder, ", ".join(wrong[:3]))
        known = old.manifest.settings
        if differing := [key for key, value in settings.items() if known[key] != value]:
            values = ", ".join(f"{key} {known[key]!r}" for key in differing)
            raise UsageError(
                f"the store {self.folder.name!r} was made differently ({values}); give it another name, or remove {self.folder}"
            )
        return old

    def _clear(self, current: VectorStore | None) -> None:
        """Remove what the manifest does not name: files of a stopped update, and files that were replaced."""
        found = manifests.leftovers(self.folder, *([current.manifest] if current is not None else []))
        if found:
            # An update may have been stopped after it replaced the manifest and before this change was durable.
            files.sync_folder(self.folder)
        for path in found:
            files.remove_any_unless_held(path)

    def _merge(self, old: VectorStore, location_of_key: dict[bytes, tuple[int, int]], entries: list[str], new: int) -> None:
        """Merge batches of the old store if there are too many, or if most of their documents are gone.

        The merged batch is added to `entries`, and `location_of_key` gets the new locations. `new` is the number of
        batches that the update adds.
        """
        held = old.documents_of_files
        live = np.bincount(np.array([file for file, _ in location_of_key.values()], np.int64), minlength=len(held)).tolist()
        merged = set(batches_to_merge(held, live, new))
        moved = sorted((location, key) for key, location in location_of_key.items() if location[0] in merged)
        if moved:
            documents = copied(old, [location for location, _ in moved])
            entries.append(self._write(BATCH, partial(write_batch, old.codebooks, documents)))
            location_of_key |= {key: (len(entries) - 1, number) for number, (_, key) in enumerate(moved)}

    def _encoder(self, old: VectorStore | None, save: Callable[[Path], None] | None) -> str:
        """The name of the folder of the encoder, which is written if the store has none."""
        if old is not None and (save is None or old.encoder is not None):
            return old.manifest.encoder
        return self._write(ENCODER, save) if save is not None else ""

    def _write(self, kind: str, write: Callable[[Path], None]) -> str:
        """Let `write` make a folder, give it a new name that begins with `kind`, and return the name."""
        name = f"{kind}-{secrets.token_hex(8)}"
        with files.replacing_path(self.folder / name) as temporary:
            write(temporary)
        return name

    def _encoded(self, new: Mapping[bytes, int], ready: dict[int, list[Encoded]], taken: list[bytes]) -> Iterator[list[Encoded]]:
        """Encode documents, given by key with their numbers, until it is time to make them durable; at least one.

        `ready` has those that are encoded already, by number. The keys of encoded documents are added to `taken`.
        """
        ends = time.monotonic() + self.seconds
        for batch in self._batches(new):
            missing = [document for document in batch.values() if document not in ready]
            fresh = iter(self.source.encode(self.snapshot, missing) if missing else ())
            for key, document in batch.items():
                encoded = ready.pop(document) if document in ready else next(fresh)
                taken.append(key)
                yield encoded
                self.on_document(len(encoded))
            if time.monotonic() > ends:
                return

    def _batches(self, new: Mapping[bytes, int]) -> Iterator[dict[bytes, int]]:
        """Documents that are encoded together: those of some passages."""
        batch: dict[bytes, int] = {}
        passages = 0
        for key, document in new.items():
            batch[key] = document
            passages += len(self._passages_of(document))
            if passages >= _PASSAGES_AT_ONCE:
                yield batch
                batch, passages = {}, 0
        if batch:
            yield batch

    def _codebooks(self, fitted: VectorStore | None, new: Mapping[bytes, int]) -> tuple[dict[str, Codebook], dict[int, list[Encoded]]]:
        """The codebooks by matrix, and the vectors of documents that were encoded to fit them, by number."""
        return (fitted.codebooks, {}) if fitted is not None else _fit(self.snapshot, new, self.source, self.code, self.seed)


def _rows_of_segments(
    snapshot: Snapshot, location_of_key: Mapping[bytes, tuple[int, int]], documents_of_segment: Sequence[Located]
) -> list[Integers]:
    """The locations of the documents of each segment, (documents, 3); see `VectorStore.rows_of`."""
    rows_of_segment = []
    for segment, documents in zip(snapshot.segments, documents_of_segment, strict=True):
        rows = np.full((segment.documents, 3), -1, np.int64)
        for local, (key, alone) in documents.items():
            if key in location_of_key:
                rows[local] = *location_of_key[key], not alone
        rows_of_segment.append(rows)
    return rows_of_segment


def _hashes(folder: Path, manifest: StoreManifest, old: VectorStore | None) -> dict[str, str]:
    """The hash of every file of a store by name.

    Hashes of files of the old store are reused, because files never change.
    """
    known = {} if old is None else old.hashes
    names = [name for pair in manifest.codebook_files.values() for name in pair] + manifest.location_files
    for inside in (*manifest.files, *filter(None, (manifest.encoder, manifest.clusters))):
        recorded = [name for name in known if name.startswith(f"{inside}/")]
        names += recorded or sorted(f"{inside}/{path.name}" for path in (folder / inside).iterdir() if path.is_file())
    return {name: known.get(name) or hash_of(folder / name) for name in names}


Located = dict[int, tuple[bytes, bool]]
"""For each document of a segment that is not deleted: its key, and whether its vectors depend on no other document."""


def _compare(
    snapshot: Snapshot, source: DocumentEncoder, old: VectorStore | None
) -> tuple[dict[bytes, tuple[int, int]], dict[bytes, int], list[Located]]:
    """Compare an index with a store by the keys of documents.

    Returns the file and number in the file of documents that the store has, by key; the numbers of new documents in the
    snapshot, by key; and the documents of every segment.
    """
    location_of_key: dict[bytes, tuple[int, int]] = {}
    new: dict[bytes, int] = {}
    documents_of_segment: list[Located] = []
    for base, segment in zip(snapshot.first_document.tolist(), snapshot.segments, strict=False):
        documents: Located = {}
        for local in np.flatnonzero(segment.alive).tolist():
            key = document_key(snapshot, segment, local, source.kind, source.heading_path)
            documents[local] = key, source.kind != "context" or not segment.record(local).get("cites")
            if old is not None and key in old.known:
                location_of_key[key] = old.known[key]
            else:
                new[key] = base + local
        documents_of_segment.append(documents)
    return location_of_key, new, documents_of_segment


def _fit(
    snapshot: Snapshot, documents: Mapping[bytes, int], source: DocumentEncoder, code: Code, seed: int
) -> tuple[dict[str, Codebook], dict[int, list[Encoded]]]:
    """Codebooks by matrix, fitted to a random sample of the vectors of `documents`, which has their numbers by key.

    Also returns the vectors of documents that were encoded completely for the sample, by number. Only the code
    `residual` needs a sample.
    """
    whole: dict[int, list[Encoded]] = {}
    empty = np.zeros((0, source.dimension), np.float32)
    if code != "residual":
        return {name: Codebook.fit(code, source.dimension, empty) for name in source.matrices}, whole
    generator = np.random.default_rng(seed)
    sample: list[list[Floats32]] = [[empty] for _ in source.matrices]
    count = 0
    # Sorted by key, so that the sample does not depend on how the index was built.
    ordered = [documents[key] for key in sorted(documents)]
    for index in generator.permutation(len(ordered)).tolist():
        document = ordered[index]
        segment, local = snapshot.locate(document)
        passages = len(segment.passages_of(local))
        chosen = np.sort(generator.permutation(passages)[:_SAMPLED_PASSAGES]).tolist()
        encoded = source.sample(snapshot, document, chosen)
        if len(chosen) == passages:
            whole[document] = encoded
        for vectors, matrices in zip(sample, zip(*(passage.matrices for passage in encoded), strict=True), strict=False):
            vectors += matrices
        count += sum(passage.position.size for passage in encoded)
        if count >= _SAMPLE:
            break
    books = [Codebook.fit(code, source.dimension, np.concatenate(vectors)[:_SAMPLE], seed=seed) for vectors in sample]
    return dict(zip(source.matrices, books, strict=True)), whole
