"""The programs that are measured, one process per program: `python -m benchmarks.programs SYSTEM SOURCE TARGET`.

The module imports only the standard library at the top, because the other engines run in an environment without
perikope. The last line of output is a JSON object with the seconds of the work itself, without imports and warm-up.
"""

from __future__ import annotations

import argparse
import gzip
import json
import resource
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path

THREADS = 2
TANTIVY_HEAP = 512_000_000


def documents(source: str) -> Iterator[dict]:
    opened = gzip.open(source, "rb") if source.endswith(".gz") else open(source, "rb")  # noqa: SIM115
    with opened as stream:
        yield from map(json.loads, stream)


def texts(element: dict) -> Iterator[str]:
    """The titles and passages of a document, in reading order."""
    if element.get("title"):
        yield element["title"]
    yield from passages(element, titles=True)


def passages(element: dict, *, titles: bool = False) -> Iterator[str]:
    for child in (child for key in ("content", "passages", "sections") for child in element.get(key) or ()):
        if isinstance(child, str):
            yield child
        elif "text" in child:
            yield child["text"]
        else:
            yield from texts(child) if titles else passages(child)


@contextmanager
def measured(**facts: float) -> Iterator[dict[str, float]]:
    """Times the block and prints the result with what the block adds."""
    cpu = _cpu()
    started = time.perf_counter()
    yield facts
    facts |= {"seconds": time.perf_counter() - started, "cpu": _cpu() - cpu}
    print("\n" + json.dumps(facts), flush=True)


def _cpu() -> float:
    usages = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def read(source: str, target: str, stop: list[str]) -> None:
    """Reading and parsing alone, in Python: what every peer does before it can begin."""
    with measured() as facts:
        facts |= {"documents": 0, "passages": 0, "text": 0}
        for document in documents(source):
            facts["documents"] += 1
            facts["passages"] += sum(1 for _ in passages(document))
            facts["text"] += sum(len(text.encode()) + 1 for text in texts(document))


def perikope(source: str, target: str, stop: list[str]) -> None:
    """perikope in a process that has built an index before: compiled code loaded, nothing else kept."""
    from perikope.build.indexing import build

    with tempfile.TemporaryDirectory() as folder:
        sample = Path(folder, "sample.jsonl")
        sample.write_text("".join(json.dumps(document) + "\n" for document in islice(documents(source), 200)), encoding="utf-8")
        build(str(Path(folder, "index")), [str(sample)])
    with measured():
        build(target, [source])


def tantivy(source: str, target: str, stop: list[str]) -> None:
    """tantivy, one document each."""
    _tantivy(target, stop, ((document["id"], "\n".join(texts(document))) for document in documents(source)))


def tantivy_passages(source: str, target: str, stop: list[str]) -> None:
    """tantivy, one passage each: what its users do to find passages. Titles are left out."""
    _tantivy(target, stop, ((f"{document['id']}#{i}", text) for document in documents(source) for i, text in enumerate(passages(document))))


def _tantivy(target: str, stop: list[str], units: Iterator[tuple[str, str]]) -> None:
    import tantivy

    Path(target).mkdir()
    words = tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.simple())
    words = words.filter(tantivy.Filter.lowercase()).filter(tantivy.Filter.custom_stopword(stop)).filter(tantivy.Filter.stemmer("english"))
    schema = tantivy.SchemaBuilder()
    schema.add_text_field("id", stored=True, tokenizer_name="raw", index_option="basic")
    schema.add_text_field("text", stored=True, tokenizer_name="words", index_option="position")
    index = tantivy.Index(schema.build(), path=target)
    index.register_tokenizer("words", words.build())
    with measured():
        writer = index.writer(heap_size=TANTIVY_HEAP, num_threads=THREADS)
        for name, text in units:
            writer.add_document(tantivy.Document(id=name, text=text))
        writer.commit()
        writer.wait_merging_threads()


def bm25s(source: str, target: str, stop: list[str]) -> None:
    """bm25s: tokens, scores, files; no positions, no text."""
    import bm25s
    import Stemmer

    with measured():
        collection = ["\n".join(texts(document)) for document in documents(source)]
        tokens = bm25s.tokenize(collection, stopwords=stop, stemmer=Stemmer.Stemmer("english"), show_progress=False)
        index = bm25s.BM25(method="lucene", k1=1.2, b=0.75)
        index.index(tokens, show_progress=False)
        index.save(target)


def pisa(source: str, target: str, stop: list[str]) -> None:
    """PISA without Java: inverted and forward files, then the compressed index, which it makes at the first query."""
    from pyterrier_pisa import PisaIndex

    with measured():
        index = PisaIndex(target, text_field="text", stemmer="porter2", threads=THREADS)
        index.index({"docno": document["id"], "text": "\n".join(texts(document))} for document in documents(source))
        index.bm25().search("pump")


SYSTEMS = {function.__name__: function for function in (read, perikope, tantivy, tantivy_passages, bm25s, pisa)}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.programs")
    parser.add_argument("system", choices=SYSTEMS)
    parser.add_argument("source")
    parser.add_argument("target")
    parser.add_argument("--stopwords", help="a file with the words, separated by blanks")
    arguments = parser.parse_args()
    stop = Path(arguments.stopwords).read_text(encoding="utf-8").split() if arguments.stopwords else []
    SYSTEMS[arguments.system](arguments.source, arguments.target, stop)


if __name__ == "__main__":
    main()
