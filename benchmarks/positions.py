"""Positions stored with the documents, compared with positions stored with the terms: `python -m benchmarks positions`.

The program builds both over the same documents (5,000 of 4,000 words) and searches 1,000 of them for the query's terms,
with the files in memory and with the files dropped from it. Document-major is the token stream that perikope stores.
Term-major is what other engines store: the positions of each posting as variable-byte gaps, found through an
uncompressed offset (which favours it).
"""

import argparse
import mmap
import os
import resource
import tempfile
import time
from pathlib import Path

import numba
import numpy as np

from perikope.kernels.join import scan
from perikope.kernels.tokens import encode_tokens


@numba.njit
def invert_positions(tokens, first_token, first_posting, documents, offsets, data):
    """Fill term-major positions; returns the bytes used. Called once to count (empty `data`) and once to write."""
    used = 0
    terms = first_posting.size - 1
    order = np.empty(tokens.size, np.int64)
    start = np.zeros(terms + 1, np.int64)
    for token in tokens:
        start[token + 1] += 1
    for term in range(terms):
        start[term + 1] += start[term]
    place = start[:-1].copy()
    for at in range(tokens.size):
        order[place[tokens[at]]] = at
        place[tokens[at]] += 1
    posting = 0
    for term in range(terms):
        document, last = -1, 0
        first_posting[term] = posting
        for i in range(start[term], start[term + 1]):
            at = order[i]
            if document < 0 or at >= first_token[document + 1]:
                document = np.searchsorted(first_token, at, side="right") - 1
                documents[posting] = document
                offsets[posting] = used
                posting += 1
                last = first_token[document]
            gap = at - last
            last = at
            while gap >= 128:
                if data.size:
                    data[used] = (gap & 127) | 128
                used += 1
                gap >>= 7
            if data.size:
                data[used] = gap
            used += 1
    first_posting[terms] = posting
    offsets[posting] = used
    return used


@numba.njit
def look_up(terms, candidates, first_posting, documents, offsets, data):
    """The occurrences of terms in candidate documents (rising), through term-major positions."""
    count = 0
    checksum = 0
    for term in terms:
        low, end = first_posting[term], first_posting[term + 1]
        for document in candidates:
            high = end
            while low < high:
                middle = (low + high) // 2
                if documents[middle] < document:
                    low = middle + 1
                else:
                    high = middle
            if low < end and documents[low] == document:
                at = offsets[low]
                position = 0
                while at < offsets[low + 1]:
                    shift, gap = 0, 0
                    while data[at] >= 128:
                        gap |= (np.int64(data[at]) & 127) << shift
                        shift += 7
                        at += 1
                    gap |= np.int64(data[at]) << shift
                    at += 1
                    position += gap
                    count += 1
                    checksum += position
    return count, checksum


class Files:
    """Arrays in files, mapped, and dropped from memory on request."""

    def __init__(self, folder: str, arrays: dict[str, np.ndarray]) -> None:
        self.paths = {}
        for name, array in arrays.items():
            self.paths[name] = Path(folder, name), array.dtype
            with open(self.paths[name][0], "wb") as file:
                file.write(array.tobytes())
                file.flush()
                os.fsync(file.fileno())

    def open(self, cold: bool) -> dict[str, np.ndarray]:
        arrays = {}
        for name, (path, kind) in self.paths.items():
            with open(path, "rb") as file:
                if cold:
                    os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
                arrays[name] = np.frombuffer(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ), kind)
        return arrays


def timed(files: Files, action, cold: bool) -> tuple[float, int]:
    best, faults = float("inf"), 0
    for _ in range(1 if cold else 5):
        arrays = files.open(cold)
        before, started = resource.getrusage(resource.RUSAGE_SELF).ru_majflt, time.perf_counter()
        action(arrays)
        best, faults = min(best, time.perf_counter() - started), resource.getrusage(resource.RUSAGE_SELF).ru_majflt - before
        if not cold:
            action(arrays)
    return 1000 * best, faults


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--documents", type=int, default=5000)
    options = parser.parse_args(arguments)
    random = np.random.default_rng(7)
    length, vocabulary = 4000, 200_000
    share = 1 / (np.arange(vocabulary) + 2.7) ** 1.07
    tokens = random.choice(vocabulary, options.documents * length, p=share / share.sum()).astype(np.uint32)
    first_token = np.arange(options.documents + 1, dtype=np.int64) * length
    codes, first_code = encode_tokens(tokens, first_token)
    first_posting, postings = np.zeros(vocabulary + 1, np.int64), tokens.size
    documents, offsets = np.zeros(postings, np.uint32), np.zeros(postings + 1, np.int64)
    used = invert_positions(tokens, first_token, first_posting, documents, offsets, np.zeros(0, np.uint8))
    data = np.zeros(used, np.uint8)
    invert_positions(tokens, first_token, first_posting, documents, offsets, data)
    count = int(first_posting[-1])
    with tempfile.TemporaryDirectory(dir=".") as folder:
        by_document = Files(folder, {"codes": codes})
        by_term = Files(folder, {"documents": documents[:count], "offsets": offsets[: count + 1], "data": data})
        print(f"{tokens.size / 1e6:.0f} M tokens: document-major {codes.nbytes / tokens.size:.2f} bytes a token; "
              f"term-major positions {used / tokens.size:.2f}, and their offsets {8 * count / tokens.size:.2f}")  # fmt: skip
        print(f"{'1,000 documents, milliseconds':<32}{'warm':>18}{'cold (page faults)':>30}")
        chosen = np.sort(random.choice(options.documents, 1000, replace=False)).astype(np.int64)
        for terms in (4, 10, 100):
            query = np.unique(np.exp(random.uniform(np.log(50), np.log(20_000), terms)).astype(np.int64))
            scanned = lambda a, query=query: scan(a["codes"], first_code[chosen], first_code[chosen + 1], query)  # noqa: E731
            looked = lambda a, query=query: look_up(query, chosen, first_posting, a["documents"], a["offsets"], a["data"])  # noqa: E731
            assert scanned(by_document.open(False))[0].size == looked(by_term.open(False))[0]
            for name, files, action in (("document-major", by_document, scanned), ("term-major", by_term, looked)):
                warm, _ = timed(files, action, False)
                cold, faults = timed(files, action, True)
                print(f"  {terms:>3} terms, {name:<21}{warm:>16.2f}{cold:>18.1f} ({faults})")


if __name__ == "__main__":
    main()
