"""Making a store of vectors, and bringing it up to date: what is new is encoded, packed and written before the manifest names it."""

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
from perikope.neural.stores.codebook import Code, Codebook, damaged
from perikope.neural.stores.store import (
    ENCODER,
    FOLDER,
    KEY,
    MANIFEST,
    VECTORS,
    VERSION,
    Kind,
    VectorStore,
    document_key,
    hash_of,
    written_passages,
)

_SAMPLE = 1 << 17
_SAMPLED_PASSAGES = 32
"""Of a document."""
_DOCUMENTS_AT_ONCE = 64

Encode = Callable[[Sequence[str]], Iterator[tuple[int, Floats32, Integers]]]
"""Of texts: the number of each, its vectors, and which tokens they are of; in any order."""


@dataclass(frozen=True, slots=True)
class Encoded:
    """The vectors of a passage: one matrix or several of the same tokens, and which tokens of its text they are of."""

    matrices: tuple[Floats32, ...]
    position: Integers


class DocumentEncoder(Protocol):
    """What makes vectors of documents."""

    @property
    def kind(self) -> Kind:
        """What is kept of a passage."""

    @property
    def dimension(self) -> int:
        """How many values a vector has."""

    @property
    def heading_path(self) -> bool:
        """Whether passages are encoded behind the titles above them."""

    @property
    def matrices(self) -> tuple[str, ...]:
        """The names of the matrices of a passage."""

    def encode(self, snapshot: Snapshot, documents: Sequence[int]) -> Iterable[list[Encoded]]:
        """Of documents, by their numbers, in order: the vectors of each passage."""

    def sample(self, snapshot: Snapshot, document: int, passages: Sequence[int]) -> list[Encoded]:
        """The vectors of some passages of a document."""


@dataclass(frozen=True)
class TextSource:
    """Passages that are encoded one by one, by their texts."""

    texts: Encode
    dimension: int
    heading_path: bool = True
    kind: Kind = "tokens"
    matrices: tuple[str, ...] = (VECTORS,)

    def encode(self, snapshot: Snapshot, documents: Sequence[int]) -> Iterable[list[Encoded]]:
        """See `DocumentEncoder`."""
        texts = [self._written(snapshot, document) for document in documents]
        found = self._encoded([text for own in texts for text in own])
        first = np.cumsum([0, *map(len, texts)]).tolist()
        return [found[start:end] for start, end in pairwise(first)]

    def sample(self, snapshot: Snapshot, document: int, passages: Sequence[int]) -> list[Encoded]:
        """See `DocumentEncoder`."""
        texts = self._written(snapshot, document)
        return self._encoded([texts[passage] for passage in passages])

    def _written(self, snapshot: Snapshot, document: int) -> list[str]:
        return written_passages(snapshot, document, self.heading_path)

    def _encoded(self, texts: Sequence[str]) -> list[Encoded]:
        found = [Encoded((np.zeros((0, self.dimension), np.float32),), np.zeros(0, np.int64))] * len(texts)
        for number, vectors, position in self.texts(texts):
            found[number] = Encoded((vectors,), position)
        return found


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
    """As `update_store_from`, of what encodes texts one by one."""
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
    """Make a store, or bring it up to date: documents that it does not know are encoded, those that are gone are forgotten.

    A store keeps the code, the path and the encoder that it was made with; `facts` say which those are, and others are refused. The code is
    fitted to a sample of the vectors of the first time.
    """
    check_name(name)
    folder = snapshot.folder / FOLDER / name
    files.make_folder(folder)
    with take_lock(folder, advice=""):
        return _update(snapshot, folder, source, code, save_encoder, dict(facts or {}), on_document, seed)


def _update(
    snapshot: Snapshot,
    folder: Path,
    source: DocumentEncoder,
    code: Code,
    save_encoder: Callable[[Path], None] | None,
    facts: dict[str, Any],
    on_document: Callable[[int], None],
    seed: int,
) -> VectorStore:
    wanted = {
        "kind": source.kind,
        "code": code,
        "heading_path": source.heading_path,
        "dimension": source.dimension,
        "matrices": list(source.matrices),
        "facts": facts,
    }
    old = VectorStore(folder) if (folder / MANIFEST).is_file() else None
    # A code cannot be fitted to nothing: what was made of an index without passages is made anew.
    is_fitted = old is not None and old.tokens > 0
    if old is not None and (wrong := [name for name in old.damaged_files() if not name.startswith(f"{ENCODER}/")]):
        raise damaged(folder, ", ".join(wrong[:3]))
    differing = [key for key, value in wanted.items() if old is not None and old.content.get(key) != value]
    if old is not None and differing:
        own = ", ".join(f"{key} {old.content.get(key)!r}" for key in differing)
        raise UsageError(f"the store {folder.name!r} was made differently ({own}); give it another name, or remove {folder}")
    if save_encoder is not None and not (folder / ENCODER).is_dir():
        with files.replacing_path(folder / ENCODER) as temporary:
            save_encoder(temporary)
    kept, new, documents_of_segment = _compare(snapshot, source, old)
    entries = list(old.content["files"]) if old is not None else []
    ready: dict[int, list[Encoded]] = {}
    if old is not None and is_fitted:
        codebooks = old.codebooks
    else:
        codebooks, ready = _fit(snapshot, new, source, code, seed)
        for matrix, book in codebooks.items():
            for part, values in (("centroids", book.centroids), ("levels", book.levels)):
                with files.replacing_binary(folder / f"{matrix}-{part}.npy") as file:
                    np.save(file, values)
    if new:
        entry = f"batch-{secrets.token_hex(8)}"
        _write(folder / entry, snapshot, list(new.values()), source, codebooks, ready, on_document)
        kept |= {key: (len(entries), number) for number, key in enumerate(new)}
        entries.append(entry)
    # A file that no document uses any more goes; the others keep their order.
    used = sorted({file for file, _ in kept.values()})
    place = {file: number for number, file in enumerate(used)}
    kept = {key: (place[file], number) for key, (file, number) in sorted(kept.items())}
    content = {
        "perikope": "vectors",
        "version": VERSION,
        **wanted,
        "files": [entries[file] for file in used],
        **_write_rows(folder, snapshot, kept, documents_of_segment),
        "index": snapshot.manifest.fingerprint,
    }
    content["hashes"] = _hashes(folder, content, old if is_fitted else None)
    with files.replacing_binary(folder / MANIFEST) as file:
        file.write(json.dumps(content).encode())
    _tidy(folder, content)
    return VectorStore(folder)


def _write_rows(
    folder: Path, snapshot: Snapshot, kept: Mapping[bytes, tuple[int, int]], documents_of_segment: Sequence[Located]
) -> dict[str, Any]:
    """Write where the vectors of every document lie, by what it is known by and by segment; returns the names for the manifest."""
    stamp = secrets.token_hex(8)
    _save(folder / f"keys-{stamp}.npy", np.frombuffer(b"".join(kept), np.uint8).reshape(-1, KEY))
    _save(folder / f"rows-{stamp}.npy", np.array(list(kept.values()), np.int64).reshape(-1, 2))
    segments = {}
    for number, (segment, documents) in enumerate(zip(snapshot.segments, documents_of_segment, strict=True)):
        rows = np.full((segment.documents, 3), -1, np.int64)
        for local, (key, alone) in documents.items():
            rows[local] = *kept[key], not alone
        _save(folder / f"segment-{stamp}-{number}.npy", rows)
        segments[segment.entry["file"]] = {"checksum": segment.entry["checksum"], "rows": f"segment-{stamp}-{number}.npy"}
    return {"keys": f"keys-{stamp}.npy", "rows": f"rows-{stamp}.npy", "segments": segments}


def _hashes(folder: Path, content: Mapping[str, Any], old: VectorStore | None) -> dict[str, str]:
    """Of every file that a store is made of; those that were there before have not changed since."""
    names = [content["keys"], content["rows"], *(own["rows"] for own in content["segments"].values())]
    names += [f"{matrix}-{part}.npy" for matrix in content["matrices"] for part in ("centroids", "levels")]
    for inside in (*content["files"], ENCODER):
        names += sorted(f"{inside}/{path.name}" for path in (folder / inside).glob("*") if path.is_file())
    known = {} if old is None else old.hashes
    return {name: known.get(name) or hash_of(folder / name) for name in names}


Located = dict[int, tuple[bytes, bool]]
"""Of the living documents of a segment: what each is known by, and whether it depends on no other document."""


def _compare(
    snapshot: Snapshot, source: DocumentEncoder, old: VectorStore | None
) -> tuple[dict[bytes, tuple[int, int]], dict[bytes, int], list[Located]]:
    """What a store knows already, the numbers of the documents that are new, and the documents of every segment."""
    kept: dict[bytes, tuple[int, int]] = {}
    new: dict[bytes, int] = {}
    of_segment: list[Located] = []
    for base, segment in zip(snapshot.first_document.tolist(), snapshot.segments, strict=False):
        own: Located = {}
        for local in np.flatnonzero(segment.alive).tolist():
            key = document_key(snapshot, segment, local, source.kind, source.heading_path)
            own[local] = key, source.kind != "context" or not segment.record(local).get("cites")
            if old is not None and key in old.known:
                kept[key] = old.known[key]
            else:
                new[key] = base + local
        of_segment.append(own)
    return kept, new, of_segment


def _save(path: Path, values: Array) -> None:
    """Write an array so that it is on disk before anything names it."""
    file = files.NewFile(path)
    try:
        np.lib.format.write_array(file, np.ascontiguousarray(values), allow_pickle=False)
        file.finish()
    except BaseException:
        file.discard()
        raise


def _tidy(folder: Path, content: Mapping[str, Any]) -> None:
    """Remove what the manifest does not name any more, and what a stopped program was writing; what a reader holds goes the next time."""
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
    """Codes for vectors like those of some documents, drawn by chance; and what was encoded whole on the way."""
    whole: dict[int, list[Encoded]] = {}
    empty = np.zeros((0, source.dimension), np.float32)
    if code != "residual":
        return {name: Codebook.fit(code, source.dimension, empty) for name in source.matrices}, whole
    generator = np.random.default_rng(seed)
    sample: list[list[Floats32]] = [[empty] for _ in source.matrices]
    count = 0
    # In the order of hashes: how the index came to be must not decide.
    ordered = [documents[key] for key in sorted(documents)]
    for place in generator.permutation(len(ordered)).tolist():
        segment, local = snapshot.locate(ordered[place])
        passages = len(segment.passages_of(local))
        chosen = np.sort(generator.permutation(passages)[:_SAMPLED_PASSAGES]).tolist()
        found = source.sample(snapshot, ordered[place], chosen)
        if len(chosen) == passages:
            whole[ordered[place]] = found
        for own, matrices in zip(sample, zip(*(one.matrices for one in found), strict=True), strict=False):
            own += matrices
        count += sum(one.position.size for one in found)
        if count >= _SAMPLE:
            break
    books = [Codebook.fit(code, source.dimension, np.concatenate(own)[:_SAMPLE], seed=seed) for own in sample]
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
    """Encode documents, by their numbers, into a new folder; what is ready is not encoded again."""
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
            _with_header(folder / f"{name}.bin", folder / f"{name}.npy", (sum(counts), book.bytes_a_token))
        _save(folder / "positions.npy", np.concatenate([np.zeros(0, np.int64), *positions]).astype(np.uint16))
        _save(folder / "counts.npy", np.array(counts, np.uint16))
        _save(folder / "documents.npy", np.array(first_passage, np.int64))
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def _with_header(data: Path, path: Path, shape: tuple[int, int]) -> None:
    """Bytes as a file that numpy maps."""
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
