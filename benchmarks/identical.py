"""Whether two installations of perikope write the same runs: `python -m benchmarks identical --before PYTHON`.

PYTHON is the interpreter of the other installation, such as ../before/.venv/bin/python. Each installation indexes the
collections and runs `perikope run` with every model that needs no store of vectors and with many options; run files are
compared byte by byte. Some runs are repeated after the change over the index made before it. A pair fails where the
files differ, where one installation refuses the options, or where there is nothing to compare. The program ends with 1
where a pair fails.

Collections are folders of $PERIKOPE_SHARED_DATA or ../shared/data with documents.jsonl or documents.jsonl.gz and TSV
topics.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any

from benchmarks.common import SCRATCH, Table, publish, shared_data
from benchmarks.installations import Installation
from benchmarks.programs import documents
from benchmarks.synthetic import STOP_WORDS

SETTINGS = (
    "bm25(k1=0.9,b=0.4,statistics=candidates)",
    "lm(mu=500,statistics=candidates)",
    "pl2(c=5)",
    "plm(kernel=trapezoid,unit=char,lam=0.5)",
    "position_prior(base=bm25,weights=[1,0.9,0.8,0.7,0.6,0.5,0.6,0.7,0.8,0.9])",
    "prox(k=50,shape=gauss,titles=true)",
    "prox_h(weights=tags(it=1.4,title=1.5,b=2))",
    "psg_doc(content=bm25,normalize=minmax,lam=0.3)",
    "psg_neighbor(neighbors=3,left=0.5,right=0.25,normalize=document)",
    "qsf_v(content=bm25,statistics=passages,alpha=0.4)",
    "qsf_v_title(content=psg,mu=2000)",
    "qsf_section(aggregate=maximum,alpha=0.3)",
    "qsf_section_propagate(aggregate=weighted,weight=exponential,sigma=2)",
    "qsf_passage_propagate(aggregate=maximum,weight=inverse,sigma=1)",
    "fuse(models=[bm25,plm],weights=[0.3,0.7],normalize=zscore)",
    "rrf(models=[lm,qsf_section],k=10)",
)
"""Models with parameters that are not their defaults."""
FETCHERS = ("bm25(k1=0.6,b=0.2,idf=robertson)", "pl2", "dph", "lm", "sim(mu=500)")
RECIPES = ("albarede2021", "beigbeder2015", "carmel2013", "gobeill2012")
CROSSED = ("bm25", "qsf_v_title", "qsf_section_propagate", "prox_h", "plm")
"""Models that are also run over the index of the other installation."""
BOOLEAN: tuple[Callable[[str, str, str], str], ...] = (
    lambda a, b, c: f"{a} AND ({b} OR {c})",
    lambda a, b, c: f"{a} NEAR/5 {b} OR {c}",
    lambda a, b, c: f'"{a} {b}" OR {b} SAME {c}',
    lambda a, b, c: f"{a[:4]}* AND NOT {c}",
    lambda a, b, c: f"+{a} {b} ADJ/2 {c} OR {a}",
)
"""Boolean queries of three words, taken by turns."""


@dataclass(frozen=True, slots=True)
class Case:
    """A run: options of `perikope run` and the topics it takes."""

    options: tuple[str, ...]
    topics: str = "words"
    """words: as they are; short: their first two words; boolean: three words joined by operators."""
    may_be_refused: bool = False
    """A model may need a store that the index lacks; in all other cases at least one installation must write a run."""
    crossed: bool = False
    """Whether the installation after the change runs it over the index of the other one too."""

    def __str__(self) -> str:
        shown = (f"{option[:59]}…" if len(option) > 60 else option for option in self.options if not Path(option).is_absolute())
        return " ".join(shown) + (f" ({self.topics} topics)" if self.topics != "words" else "")


@dataclass(frozen=True, slots=True)
class Collection:
    """A collection as it is indexed, and what its documents offer to options."""

    name: str
    source: Path
    topics: dict[str, Path]
    ids: Path
    """Every second document."""
    field: str
    condition: str
    """A field of the metadata, and a filter on it that keeps some of the documents."""
    tags: tuple[str, ...]
    """The tags of passages, the most frequent first."""


def cases_of(collection: Collection, models: Sequence[str]) -> list[Case]:
    ids, tags = str(collection.ids), collection.tags
    found = [Case(("--model", name), may_be_refused=True, crossed=name in CROSSED) for name in models]
    found += [Case(("--model", setting)) for setting in SETTINGS]
    found += [Case(("--fetch", name, "--documents", "20")) for name in FETCHERS]
    found += [Case(("--document-ranking", name)) for name in ("maxp", "sump", "firstp", "meanp(n=3)")]
    found += [Case(("--recipe", name), crossed=name == "carmel2013") for name in RECIPES]
    found += [
        Case(("--recipe", "carmel2013", "--model", "psg", "-k", "50")),
        Case(("--documents", "all", "--model", "lm")),
        Case(("-k", "10")),
        Case(("-k", "10", "--model", "bm25")),
        Case(("--expand", "bo1")),
        Case(("--expand", "rm3(documents=5,terms=20,original=0.7)", "--browse-expand", "bo1")),
        Case(("--fetch-parts", "title,abstract=2")),
        Case(("--part", "abstract", "--model", "psg_neighbor")),
        Case(("--rescore", "lm", "--rescore-weight", "0.3", "--documents", "50")),
        Case(("--rescore", "prox(titles=true)", "--model", "prox(titles=true)", "--documents", "50")),
        Case(("--browse-query", "treatment of children", "--model", "psg_doc")),
        Case(("--syntax", "boolean"), "boolean", crossed=True),
        Case(("--syntax", "boolean", "--must-match", "--model", "bm25"), "boolean"),
        Case(("--syntax", "boolean", "--across", "--model", "prox"), "boolean"),
        Case(("--syntax", "automatic", "--model", "prox_hw"), "short"),
        Case(("--must-match", "--model", "qsf_v"), "short"),
        Case(("--model", "bm25", "--elements"), crossed=True),
        Case(("--model", "prox_h", f"--elements={','.join(tags[:2])}", "--no-overlap")),
        Case(("--model", "lm", "--no-overlap", "--group-by-document", "fetch", "--elements")),
        Case(
            ("--model", "prox", "--no-overlap", "--group-by-document", "score", "--documents", "50", "--elements"),
            "short",
        ),
        Case(("--group-by-document", "score", "-k", "100")),
        Case(("--tag", tags[-1], "--model", "qsf_section_propagate")),
        Case(("--filter", collection.condition, "--model", "psg_neighbor"), crossed=True),
        Case(("--filter", collection.condition, "--ids", ids)),
        Case(("--ids", ids, "--language", "en", "--model", "plm")),
        Case(("--one-per", collection.field)),
        Case(("--threads", "2", "--model", "bm25")),
        Case(("--threads", "2")),
    ]
    return found


def prepare(name: str, folder: Path, most: int) -> Collection:
    """Copy a collection with a part for every section, and metadata, so that options have something to find."""
    data = shared_data() / name
    source = next((path for path in (data / "documents.jsonl", data / "documents.jsonl.gz") if path.exists()), None)
    topics = min(data.glob("*topics.tsv"), key=lambda path: path.stat().st_size, default=None)
    if source is None or topics is None:
        raise SystemExit(f"{data} must hold documents.jsonl or documents.jsonl.gz, and topics in a file that ends with topics.tsv")
    own = folder / name
    own.mkdir()
    found = list(documents(str(source)))
    for place, document in enumerate(found):
        document["metadata"] = document.get("metadata") or {"year": str(2000 + place % 20)}
        for number, section in enumerate(document.get("sections", ())):
            section["part"] = "description" if number else "abstract"
    target, ids = own / "documents.jsonl", own / "ids.txt"
    target.write_text("".join(json.dumps(document) + "\n" for document in found), encoding="utf-8")
    ids.write_text("".join(f"{document['id']}\n" for document in found[::2]), encoding="utf-8")
    field, condition = _condition([document.get("metadata", {}) for document in found])
    tags = [tag for tag, _ in Counter(tag for document in found for tag in _passage_tags(document)).most_common()]
    return Collection(name, target, _write_topics(topics, own, most), ids, field, condition, tuple(tags))


def _condition(metadata: Sequence[dict[str, Any]]) -> tuple[str, str]:
    """A field that every document has, and a filter on it: from the median on, or by the most frequent beginning."""
    for field in metadata[0]:
        values = sorted(value for document in metadata if isinstance(value := document.get(field), str) and value)
        if len(values) == len(metadata) and len(set(values)) > 1:
            if all(value.isdigit() for value in values):
                return field, f"{field}>={values[len(values) // 2]}"
            shared = next(length for length in range(len(values[0]) + 1) if values[0][: length + 1] != values[-1][: length + 1])
            return field, f"{field}={Counter(value[: shared + 1] for value in values).most_common(1)[0][0]}*"
    raise SystemExit("no field of the metadata is there in every document: the filters cannot be checked")


def _passage_tags(element: dict[str, Any]) -> Iterator[str]:
    for key in ("content", "passages", "sections"):
        for child in element.get(key) or ():
            if isinstance(child, dict) and "text" in child:
                yield child.get("tag") or "p"
            elif isinstance(child, dict):
                yield from _passage_tags(child)


def _write_topics(source: Path, folder: Path, most: int) -> dict[str, Path]:
    lines = source.read_text(encoding="utf-8").splitlines()
    topics = [line.split("\t", 1) for line in lines[:: max(1, len(lines) // most)][:most]]
    written: dict[str, list[str]] = {"words": [], "short": [], "boolean": []}
    for number, (qid, text) in enumerate(topics):
        words = [word for word in dict.fromkeys(re.findall("[a-z]{4,}", text.lower())) if word not in STOP_WORDS]
        written["words"].append(f"{qid}\t{text}")
        if len(words) >= 3:
            written["short"].append(f"{qid}\t{words[0]} {words[-1]}")
            written["boolean"].append(f"{qid}\t{BOOLEAN[number % len(BOOLEAN)](*words[:3])}")
    paths = {}
    for kind, queries in written.items():
        paths[kind] = folder / f"{kind}.tsv"
        paths[kind].write_text("".join(f"{query}\n" for query in queries), encoding="utf-8")
    return paths


@dataclass(frozen=True, slots=True)
class Outcome:
    """The run that an installation wrote, or why it wrote none."""

    content: bytes | None
    message: str

    @classmethod
    def of(cls, answer: dict[str, Any], run: Path) -> Outcome:
        content = run.read_bytes() if run.exists() else None
        run.unlink(missing_ok=True)
        said = answer.get("problem") or answer["errors"]
        return cls(content, next(iter(line for line in said.splitlines()[::-1] if line.strip()), "no message")[:160])


def difference(case: Case, before: Outcome, after: Outcome) -> str:
    """What differs, or why nothing could be compared, or an empty text."""
    if before.content is None and after.content is None:
        return "" if case.may_be_refused else f"both refuse it, so nothing was compared: {before.message}"
    if before.content is None or after.content is None:
        refused = "before" if before.content is None else "after"
        return f"refused {refused} only: {(before if before.content is None else after).message}"
    if before.content == after.content:
        return "" if before.content else "both runs are empty, so nothing was compared"
    lines = zip_longest(before.content.decode().splitlines(), after.content.decode().splitlines(), fillvalue="(no line)")
    number, (one, other) = next((number, pair) for number, pair in enumerate(lines, 1) if pair[0] != pair[1])
    return f"line {number}: before `{one}`, after `{other}`"


def run_arguments(case: Case, collection: Collection, index: Path, run: Path) -> list[str]:
    # The case's options come last: --elements without tags must.
    return ["run", str(index), str(collection.topics[case.topics]), "--out", str(run), "--threads", "1", *case.options]


@dataclass(slots=True)
class Report:
    """The cells of the table, and every difference in words."""

    cells: dict[str, dict[str, str]]
    differences: list[str]
    same_index: dict[str, bool]


def check(collection: Collection, before: Installation, after: Installation, folder: Path, report: Report) -> None:
    """Index a collection with both installations, write all runs and compare them."""
    both = (before, after)
    index = {installation.label: folder / f"{collection.name}-{installation.label}" for installation in both}
    for installation in both:
        command = ("index", str(collection.source), "--to", str(index[installation.label]), "--workers", "1")
        installation.run(installation.command(*command))
    one, other = ([path.read_bytes() for path in sorted(index[made.label].glob("*.columns"))] for made in both)
    report.same_index[collection.name] = bool(one) and one == other

    def record(row: str, found: str, cell: str) -> None:
        report.cells.setdefault(row, {})[collection.name] = "FAILS" if found else cell
        if found:
            report.differences.append(f"{collection.name}, {row}: {found}")

    def outcomes(case: Case, runs: Sequence[tuple[Installation, Path]]) -> list[Outcome]:
        paths = [folder / f"{number}.run" for number in range(len(runs))]
        for (installation, made), path in zip(runs, paths, strict=True):
            installation.send(action="command", arguments=run_arguments(case, collection, made, path))
        return [Outcome.of(installation.receive(), path) for (installation, _), path in zip(runs, paths, strict=True)]

    for case in cases_of(collection, before.models()):
        print(f"… {collection.name}: {case}", file=sys.stderr, flush=True)
        old, new = outcomes(case, [(before, index["before"]), (after, index["after"])])
        lines = old.content.count(b"\n") if old.content else 0
        record(str(case), difference(case, old, new), f"identical, {lines:,} lines" if lines else "refused by both")
        if case.crossed:
            (crossed,) = outcomes(case, [(after, index["before"])])
            record(f"{case}, index made before", difference(case, old, crossed), f"identical, {lines:,} lines")


def table_of(report: Report, names: Sequence[str]) -> Table:
    table = Table("Runs before and after", ("perikope run", *names))
    table.rows += [[row, *(cells.get(name, "") for name in names)] for row, cells in report.cells.items()]
    for name in names:
        table.notes.append(
            f"{name}: the files of the two indexes are {'identical' if report.same_index[name] else 'not identical, which is no failure'}."
        )
    table.notes.append("refused by both: the model needs a store of vectors, or a package that is not installed.")
    return table


def main(arguments: Sequence[str] = ()) -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks identical", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--before", required=True, metavar="PYTHON", help="interpreter of the installation to compare with")
    parser.add_argument("--after", default=sys.executable, metavar="PYTHON", help="interpreter of the other one; default: this one")
    parser.add_argument("--collections", default="conditionalqa,evidence-inference", metavar="NAME,…",
                        help="default: conditionalqa,evidence-inference")  # fmt: skip
    parser.add_argument("--topics", type=int, default=30, metavar="N", help="topics per collection, spread over its file; default: 30")
    parser.add_argument("--markdown", metavar="FILE", help="also add the table to this file")
    options = parser.parse_args(arguments)
    if options.topics < 1:
        parser.error("--topics must be at least 1")
    started, names = time.perf_counter(), options.collections.split(",")
    report = Report({}, [], {})
    before, after = Installation("before", options.before), Installation("after", options.after)
    print(f"{before}\n{after}", file=sys.stderr)
    SCRATCH.mkdir(exist_ok=True)
    try:
        with tempfile.TemporaryDirectory(dir=SCRATCH, prefix="identical-") as folder:
            for name in names:
                check(prepare(name, Path(folder), options.topics), before, after, Path(folder), report)
    finally:
        before.close()
        after.close()
    publish([table_of(report, names)], options.markdown)
    count = sum(len(cells) for cells in report.cells.values())
    print(f"\n{count} pairs of runs, {len(report.differences)} fail", *report.differences, sep="\n  ", flush=True)
    print(f"{time.perf_counter() - started:.0f} s in all", file=sys.stderr)
    if report.differences:
        raise SystemExit(1)


if __name__ == "__main__":
    main(sys.argv[1:])
