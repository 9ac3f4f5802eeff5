"""Make or update a store of vectors: encode and pack new documents, then replace the manifest."""

from __future__ import annotations

import json
import secrets
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from perikope.core import files
from perikope.core.arrays import Array, Floats32, Integers
from perikope.core.errors import UsageError
from perikope.core.locks import take_lock
from perikope.index.reader import Snapshot
from perikope.index.saved_tables import check_name
from perikope.index.vector_stores import FOLDER, MANIFEST
from perikope.neural.stores.codebook import Code, Codebook, damaged
from perikope.neural.stores.store import (
    ENCODER,
    KEY,
    VECTORS,
    VERSION,
    Kind,
    VectorStore,
    document_key,
    hash_of,
    written_passages,
)

_SAMPLE = 1 << 17
"""Maximum number of vectors that codebooks are fitted to."""
_SAMPLED_PASSAGES = 32
"""Maximum passages per document in the sample that codebooks are fitted to."""
_DOCUMENTS_AT_ONCE = 64
"""Documents that are encoded together."""

Encode = Callable[[Sequence[str]], Iterator[tuple[int, Floats32, Integers]]]
"""Takes texts and yields, in any order, the number of each text, its vectors (vectors, dimension), and their token
positions (vectors,)."""


@dataclass(frozen=True, slots=True)
class Encoded:
    """The vectors of a passage."""

    matrices: tuple[Floats32, ...]
    """One or more matrices (vectors, dimension) for the same tokens."""
    position: Integers
    """(vectors,) The position of each vector's token in the text."""


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
    seed: int = 1,
) -> VectorStore:
    """Make a store, or update it: encode documents that it does not know, and drop those that were deleted.

    - `source`: encodes documents.
    - `code`: how vectors are packed. The codebook is fitted to a sample of the vectors of the first update.
    - `save_encoder`: writes the encoder to a folder; None for vectors that the user supplies.
    - `facts`: how the vectors are made, kept in the manifest. An update with other facts, another code, or vectors of
      another kind or dimension is refused.
    - `on_document`: called with the number of passages of each document that is encoded.
    - `seed`: decides the sample and the centroids.
    """
    check_name(name)
    folder = snapshot.folder / FOLDER / name
    files.make_folder(folder)
    with take_lock(folder, advice=""):
        return _Update(snapshot, folder, source, code, dict(facts or {}), on_document, seed).run(save_encoder)


@dataclass(frozen=True, slots=True)
class _Update:
    """One update of a store, under its lock; see `update_store_from`."""

    snapshot: Snapshot
    folder: Path
    source: DocumentEncoder
    code: Code
    facts: dict[str, Any]
    on_document: Callable[[int], None]
    seed: int

    def run(self, save_encoder: Callable[[Path], None] | None) -> VectorStore:
        """Encode new documents and replace the manifest."""
        settings = {
            "kind": self.source.kind,
            "code": self.code,
            "heading_path": self.source.heading_path,
            "dimension": self.source.dimension,
            "matrices": list(self.source.matrices),
            "facts": self.facts,
        }
        old = self._open_old(settings)
        # A codebook cannot be fitted without vectors: a store of an index without passages is made again.
        fitted = old if old is not None and old.tokens > 0 else None
        if save_encoder is not None and not (self.folder / ENCODER).is_dir():
            with files.replacing_path(self.folder / ENCODER) as temporary:
                save_encoder(temporary)
        location_of_key, new, documents_of_segment = _compare(self.snapshot, self.source, old)
        entries = list(old.content["files"]) if old is not None else []
        codebooks, ready = self._codebooks(fitted, new)
        if new:
            entry = f"batch-{secrets.token_hex(8)}"
            _write(self.folder / entry, self.snapshot, list(new.values()), self.source, codebooks, ready, self.on_document)
            location_of_key |= {key: (len(entries), number) for number, key in enumerate(new)}
            entries.append(entry)
        # Files without documents are dropped; the others keep their order.
        used = sorted({file for file, _ in location_of_key.values()})
        new_number = {file: number for number, file in enumerate(used)}
        location_of_key = {key: (new_number[file], number) for key, (file, number) in sorted(location_of_key.items())}
        content = {
            "perikope": "vectors",
            "version": VERSION,
            **settings,
            "files": [entries[file] for file in used],
            **_write_rows(self.folder, self.snapshot, location_of_key, documents_of_segment),
            "index": self.snapshot.manifest.fingerprint,
        }
        content["hashes"] = _hashes(self.folder, content, fitted)
        with files.replacing_binary(self.folder / MANIFEST) as file:
            file.write(json.dumps(content).encode())
        _tidy(self.folder, content)
        return VectorStore(self.folder)

    def _open_old(self, settings: Mapping[str, Any]) -> VectorStore | None:
        """The existing store, if any; raises an error if it is damaged or was made with other settings."""
        if not (self.folder / MANIFEST).is_file():
            return None
        old = VectorStore(self.folder)
        if wrong := [name for name in old.damaged_files() if not name.startswith(f"{ENCODER}/")]:
            raise damaged(self.folder, ", ".join(wrong[:3]))
        if differing := [key for key, value in settings.items() if old.content.get(key) != value]:
            values = ", ".join(f"{key} {old.content.get(key)!r}" for key in differing)
            raise UsageError(
                f"the store {self.folder.name!r} was made differently ({values}); give it another name, or remove {self.folder}"
            )
        return old

    def _codebooks(self, fitted: VectorStore | None, new: Mapping[bytes, int]) -> tuple[dict[str, Codebook], dict[int, list[Encoded]]]:
        """The codebooks of the store by matrix, and the vectors of documents that were encoded to fit them, by number.

        Without `fitted`, new codebooks are fitted and written to the store.
        """
        if fitted is not None:
            return fitted.codebooks, {}
        codebooks, ready = _fit(self.snapshot, new, self.source, self.code, self.seed)
        for matrix, book in codebooks.items():
            for name, values in (("centroids", book.centroids), ("levels", book.levels)):
                with files.replacing_binary(self.folder / f"{matrix}-{name}.npy") as file:
                    np.save(file, values)
        return codebooks, ready


def _write_rows(
    folder: Path, snapshot: Snapshot, location_of_key: Mapping[bytes, tuple[int, int]], documents_of_segment: Sequence[Located]
) -> dict[str, Any]:
    """Write the location (file, number in the file) of every document, by key and by segment.

    Returns the file names for the manifest.
    """
    stamp = secrets.token_hex(8)
    _save(folder / f"keys-{stamp}.npy", np.frombuffer(b"".join(location_of_key), np.uint8).reshape(-1, KEY))
    _save(folder / f"rows-{stamp}.npy", np.array(list(location_of_key.values()), np.int64).reshape(-1, 2))
    segments = {}
    for number, (segment, documents) in enumerate(zip(snapshot.segments, documents_of_segment, strict=True)):
        rows = np.full((segment.documents, 3), -1, np.int64)
        for local, (key, alone) in documents.items():
            rows[local] = *location_of_key[key], not alone
        _save(folder / f"segment-{stamp}-{number}.npy", rows)
        segments[segment.entry["file"]] = {"checksum": segment.entry["checksum"], "rows": f"segment-{stamp}-{number}.npy"}
    return {"keys": f"keys-{stamp}.npy", "rows": f"rows-{stamp}.npy", "segments": segments}


def _hashes(folder: Path, content: Mapping[str, Any], old: VectorStore | None) -> dict[str, str]:
    """The hash of every file of a store by name.

    Hashes of files of the old store are reused, because files never change.
    """
    names = [content["keys"], content["rows"], *(entry["rows"] for entry in content["segments"].values())]
    names += [f"{matrix}-{part}.npy" for matrix in content["matrices"] for part in ("centroids", "levels")]
    for inside in (*content["files"], ENCODER):
        names += sorted(f"{inside}/{path.name}" for path in (folder / inside).glob("*") if path.is_file())
    known = {} if old is None else old.hashes
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


def _save(path: Path, values: Array) -> None:
    """Write an array to a new file and sync it, before the manifest names it."""
    file = files.NewFile(path)
    try:
        np.lib.format.write_array(file, np.ascontiguousarray(values), allow_pickle=False)
        file.finish()
    except BaseException:
        file.discard()
        raise


def _tidy(folder: Path, content: Mapping[str, Any]) -> None:
    """Remove files that the manifest no longer names, and those of an interrupted update.

    A file that a reader holds open is removed by a later update.
    """
    files.remove_temporaries(folder)
    named = {*content["files"], content["keys"], content["rows"], *(entry["rows"] for entry in content["segments"].values())}
    for path in folder.iterdir():
        if path.name not in named and path.name.startswith(("batch-", "keys-", "rows-", "segment-")):
            if path.is_dir():
                shutil.rmtree(path, ignore_errors=True)
            else:
                files.remove_unless_held(path)


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


def _write(
    folder: Path,
    snapshot: Snapshot,
    documents: Sequence[int],
    source: DocumentEncoder,
    codebooks: Mapping[str, Codebook],
    ready: dict[int, list[Encoded]],
    on_document: Callable[[int], None],
) -> None:
    """Encode documents, given by their numbers, and write their vectors to a new folder.

    `ready` has the vectors of documents that are encoded already, by number.
    """
    folder.mkdir()
    counts: list[int] = []
    positions: list[Integers] = []
    first_passage = [0]
    try:
        writers = {name: (folder / f"{name}.bin").open("wb") for name in codebooks}
        try:
            for start in range(0, len(documents), _DOCUMENTS_AT_ONCE):
                batch = documents[start : start + _DOCUMENTS_AT_ONCE]
                missing = [document for document in batch if document not in ready]
                fresh = iter(source.encode(snapshot, missing) if missing else ())
                for document in batch:
                    encoded = ready.pop(document) if document in ready else next(fresh)
                    for passage in encoded:
                        for (name, book), vectors in zip(codebooks.items(), passage.matrices, strict=True):
                            writers[name].write(book.pack(vectors).tobytes())
                        positions.append(passage.position)
                        counts.append(passage.position.size)
                    first_passage.append(first_passage[-1] + len(encoded))
                    on_document(len(encoded))
        finally:
            for writer in writers.values():
                writer.close()
        for name, book in codebooks.items():
            _with_header(folder / f"{name}.bin", folder / f"{name}.npy", (sum(counts), book.bytes_per_vector))
        _save(folder / "positions.npy", np.concatenate([np.zeros(0, np.int64), *positions]).astype(np.uint16))
        _save(folder / "counts.npy", np.array(counts, np.uint16))
        _save(folder / "documents.npy", np.array(first_passage, np.int64))
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def _with_header(data: Path, path: Path, shape: tuple[int, int]) -> None:
    """Turn a file of bytes into one that numpy can map: add a header with the shape, then remove the original."""
    file = files.NewFile(path)
    try:
        with data.open("rb") as source:
            np.lib.format.write_array_header_1_0(file, {"descr": "|u1", "fortran_order": False, "shape": shape})  # type: ignore[arg-type]
            while piece := source.read(1 << 22):
                file.write(piece)
        file.finish()
    except BaseException:
        file.discard()
        raise
    data.unlink()
