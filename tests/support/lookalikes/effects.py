"""Measures the planted effects of look-alike collections with plain searches, and prints them.

    python -m tests.support.lookalikes.effects FOLDER

FOLDER is where `python -m tests.support.lookalikes FOLDER` wrote the collections. Each line compares two systems with
the test of the paper: a collection has its effect when p is small and the first system is better.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from perikope.browse.models.prior import KIND as PRIOR
from perikope.browse.tags import KIND as TAGS
from perikope.browse.tags import Selection, learn_tags
from perikope.build.indexing import BuildOptions, build
from perikope.evaluation.io.fitting import fit_judgements
from perikope.evaluation.io.judgements import judgement_form
from perikope.evaluation.io.topics import read_topics
from perikope.evaluation.learning.examples import JudgedTopics
from perikope.evaluation.learning.prior import learn_prior_of_run
from perikope.evaluation.measures import parse_measures
from perikope.evaluation.measures.significance import compare
from perikope.evaluation.measuring import Measuring
from perikope.index.saved_tables import write_table
from perikope.query.topic import Topic
from perikope.search.batch import search_topics
from perikope.search.facade import Index
from perikope.search.options import SearchOptions

CARMEL: dict[str, Any] = {"fetch": "bm25(k1=0.6,b=0.2)", "documents": 1500, "k": 1000}
BEIGBEDER: dict[str, Any] = {
    "documents": 1500, "k": 1500, "syntax": "automatic", "elements": True, "no_overlap": True, "group_by_document": "fetch",
    "keep_unmatched": True,
}  # fmt: skip
QSF = {
    "qsf_v": "qsf_v(alpha=0.8)",
    "qsf_v_title": "qsf_v_title(alpha=0.9)",
    "qsf_section": "qsf_section(alpha=0.6,beta=0.1)",
    "qsf_section_propagate": "qsf_section_propagate(sigma=5,alpha=0.6,beta=0.3)",
    "qsf_passage_propagate": "qsf_passage_propagate(sigma=1,alpha=0.5,beta=0.2)",
}
"""The models of Albarede and others 2021 with the parameters of their Table 4, and σ from the grid."""


@dataclass(frozen=True)
class Figures:
    """The values of a measure by system, then by topic."""

    measure: str
    values: Mapping[str, Mapping[str, float]]

    def mean(self, system: str) -> float:
        """The mean over all topics."""
        return sum(self.values[system].values()) / len(self.values[system])

    def p(self, system: str, other: str, test: str) -> float:
        """The p-value of the difference between two systems, uncorrected."""
        return compare({name: self.values[name] for name in (system, other)}, test=test, correction="none").p[system, other]

    def finds(self, system: str, other: str, test: str) -> bool:
        """Whether a system is better than another; the level of 0.01 is stricter than that of the papers."""
        return self.mean(system) > self.mean(other) and self.p(system, other, test) <= 0.01

    def line(self, system: str, other: str, test: str) -> str:
        """What the comparison says, for a reader."""
        p = self.p(system, other, test)
        return f"  {self.measure:14} {system} {self.mean(system):.4f}, {other} {self.mean(other):.4f}, {test} p = {p:.2g}"


def index_of(folder: Path, to: Path, stemmer: str = "porter", stopwords: str = "default") -> Index:
    """Index the documents of a collection."""
    build(str(to), [str(folder / "documents")], BuildOptions(stemmer=stemmer, stopwords=stopwords))
    return Index.open(to)


def figures(
    index: Index, topics: Iterable[Topic], judgements: Path, measure: str, systems: Mapping[str, Mapping[str, Any]], **shared: Any
) -> Figures:
    """Search for topics with each system (its options; `shared` are those of all), and measure the rankings."""
    topics = list(topics)
    fitted = fit_judgements(judgements, index.snapshot)
    measuring = Measuring(fitted.names, (str(judgements), judgement_form(judgements)), index.folder)
    parsed = parse_measures(measure)[0]
    values = {}
    for name, options in systems.items():
        found = search_topics(index, topics, _fail, **(shared | dict(options)))
        values[name] = {qid: measuring.value(parsed, qid, ranking) for qid, ranking in found}
    return Figures(measure, values)


def _fail(problem: str) -> None:
    if "nothing" not in problem.lower():
        raise AssertionError(problem)


def topics_in(path: Path, languages: Mapping[str, str], language: str) -> list[Topic]:
    """The topics of a file in one language; `languages` has the language of each topic."""
    return [topic for topic in read_topics(path) if languages[topic.qid] == language]


def language_of_topics(path: Path) -> dict[str, str]:
    """The language of each topic's patent, from its file."""
    texts = {topic.qid: Path(topic.patent).read_text(encoding="utf-8") for topic in read_topics(path)}
    return {qid: text.partition(' lang="')[2][:2].lower() for qid, text in texts.items()}


def save_prior(index: Index, topics: Iterable[Topic], judgements: Path, name: str, **options: Any) -> list[float]:
    """Learn the prior of positions as Gobeill and Ruch do, and save it in the index; returns its ten weights."""
    fitted = fit_judgements(judgements, index.snapshot)
    source = JudgedTopics(index.snapshot, tuple(topics), fitted.names, SearchOptions(**options))
    values = learn_prior_of_run(source).values()
    write_table(index.folder, name, PRIOR, values)
    return list(values["weights"])


def save_tags(index: Index, judgements: Path, name: str, min_occurrences: int = 1000) -> dict[str, float]:
    """Learn the weights of tags as Beigbeder and others do, and save them in the index; returns them."""
    fitted = fit_judgements(judgements, index.snapshot)
    learned = learn_tags(index.snapshot, fitted.names, selection=Selection(min_occurrences))
    write_table(index.folder, name, TAGS, learned.table.values())
    return learned.table.weights


def section_figures(index: Index, folder: Path, measure: str = "MAP(D)") -> Figures:
    """The models of Albarede and others 2021, and BM25, on the English topics."""
    topics = topics_in(folder / "topics" / "topics.txt", language_of_topics(folder / "topics" / "topics.txt"), "en")
    systems = {"bm25": {"model": "bm25"}} | {name: {"model": model} for name, model in QSF.items()}
    return figures(index, topics, folder / "qrels.txt", measure, systems, fetch="sim(mu=1000)", k=1500)


def prior_figures(index: Index, folder: Path, documents: int = 10) -> Figures:
    """PL2 with and without the prior of positions, which is learned from the English training topics."""
    training, tests = folder / "topics" / "training-topics.txt", folder / "topics" / "topics.txt"
    model = "pl2(c=1,statistics=candidates)"
    shared: dict[str, Any] = {"fetch": "pl2(c=1)", "documents": documents, "k": 1000}
    save_prior(
        index, topics_in(training, language_of_topics(training), "en"), folder / "training-qrels.txt", "prior", model=model, **shared
    )
    systems = {"without": {"model": model}, "with": {"model": f"position_prior(base={model},weights=prior)"}}
    return figures(index, topics_in(tests, language_of_topics(tests), "en"), folder / "qrels.txt", "MRR", systems, **shared)


def document_figures(index: Index, folder: Path) -> Figures:
    """Documents by all of their text, by the parts of Gobeill and Ruch, and with documents that share a code only."""
    tests = folder / "topics" / "topics.txt"
    topics = topics_in(tests, language_of_topics(tests), "en")
    systems: dict[str, dict[str, Any]] = {
        "text": {"code_filter": False},
        "parts": {"code_filter": False, "fetch_parts": "title,abstract,claims"},
        "codes": {},
    }
    return figures(index, topics, folder / "qrels.txt", "PRES@10", systems, group_by_document="fetch", k=1500)


def position_figures(index: Index, folder: Path, sigmas: Iterable[int] = (500, 1000, 2000, 10000)) -> Figures:
    """The models of Carmel and others."""
    systems = {
        "psg": {"model": "psg"},
        "psg_doc": {"model": "psg_doc(lam=0.9)"},
        "psg_neighbor": {"model": "psg_neighbor(left=0.25,right=0.25,lam=0.9)"},
        **{f"plm {sigma}": {"model": f"plm(kernel=gauss,sigma={sigma},lam=0.9)"} for sigma in sigmas},
        "plm trapezoid 1e3": {"model": "plm(kernel=trapezoid,sigma=1e3,lam=0.9)"},
    }
    return figures(index, read_topics(folder / "topics-2010.xml"), folder / "qrels-2010.txt", "MAiP", systems, **CARMEL)


def tag_figures(index: Index, folder: Path, measure: str = "MAgP(t2i=300)") -> Figures:
    """Whole documents, and proximity with and without weights of tags, learned from the topics of 2009."""
    save_tags(index, folder / "qrels-2009.txt", "learned")
    systems = {
        "documents": {"model": "qsf_v(alpha=0)"},
        "prox": {"model": "prox(k=200)"},
        "prox_h": {"model": "prox_h(k=200,weights=learned)"},
        "prox_hw": {"model": "prox_hw(k=200,weights=learned)"},
    }
    return figures(index, read_topics(folder / "topics-2010.xml"), folder / "qrels-2010.txt", measure, systems, **BEIGBEDER)


def by_hand_figures(index: Index, folder: Path, measure: str = "MAgP(t2i=300)") -> Figures:
    """Proximity with queries from the titles of topics, and with the Boolean queries that somebody wrote."""
    model = {"model": "prox(k=200)"}
    automatic = figures(
        index, read_topics(folder / "topics-2010.xml"), folder / "qrels-2010.txt", measure, {"automatic": model}, **BEIGBEDER
    )
    hand = BEIGBEDER | {"syntax": "boolean"}
    topics = read_topics(folder / "topics-2010-by-hand.tsv")
    by_hand = figures(index, topics, folder / "qrels-2010.txt", measure, {"by hand": model}, **hand)
    return Figures(measure, {**automatic.values, **by_hand.values})


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")


def main(folder: Path) -> None:
    """Print what plain searches find in the collections of a folder."""
    with tempfile.TemporaryDirectory() as made:
        patents = index_of(folder / "clef-ip", Path(made, "clef-ip"))
        _say("clef-ip: relevance follows the section tree; the prior of positions; codes; parts of documents")
        found = section_figures(patents, folder / "clef-ip")
        for better, worse in (
            ("qsf_v_title", "qsf_v"), ("qsf_section", "bm25"), ("qsf_section", "qsf_v"),
            ("qsf_section_propagate", "qsf_v"), ("qsf_section_propagate", "qsf_section"), ("qsf_passage_propagate", "qsf_v"),
        ):  # fmt: skip
            _say(found.line(better, worse, "t"))
        _say(prior_figures(patents, folder / "clef-ip").line("with", "without", "t"))
        found = document_figures(patents, folder / "clef-ip")
        _say(found.line("parts", "text", "t"))
        _say(found.line("codes", "text", "t"))
        _say("inex-positions: the effect of positions")
        positions = index_of(folder / "inex-positions", Path(made, "positions"))
        found = position_figures(positions, folder / "inex-positions")
        for better, worse in (
            ("psg_doc", "psg"), ("psg_neighbor", "psg_doc"), ("plm 500", "psg_doc"), ("plm 500", "psg_neighbor"), ("plm 1000", "psg_doc"),
            ("plm 2000", "psg_doc"), ("plm 10000", "psg_doc"), ("plm trapezoid 1e3", "psg_doc"),
        ):  # fmt: skip
            _say(found.line(better, worse, "t"))
        _say("inex-tags: tags that mark relevant words")
        tags = index_of(folder / "inex-tags", Path(made, "tags"), "none", "none")
        found = tag_figures(tags, folder / "inex-tags")
        for better, worse in (("prox", "documents"), ("prox_h", "prox"), ("prox_hw", "prox")):
            _say(found.line(better, worse, "wilcoxon"))
        _say(by_hand_figures(tags, folder / "inex-tags").line("by hand", "automatic", "wilcoxon"))


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python -m tests.support.lookalikes.effects FOLDER")
    main(Path(sys.argv[1]))
