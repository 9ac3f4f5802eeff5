"""The look-alike collections: their files are read as the real ones would be."""

import subprocess
import sys
from pathlib import Path

import pytest
from lxml import etree

from perikope.evaluation.io import inex
from perikope.evaluation.io.fitting import fit_judgements
from perikope.evaluation.io.judgements import judgement_form, read_judgements
from perikope.evaluation.io.topics import read_topics
from tests.support.lookalikes import effects
from tests.support.lookalikes.patents import make_patents
from tests.support.lookalikes.wikipedia import make_wikipedia

TOPICS = 6


@pytest.fixture(scope="module")
def patents(tmp_path_factory):
    return make_patents(tmp_path_factory.mktemp("clef-ip"), topics=TOPICS, background=5)


@pytest.fixture(scope="module")
def patent_index(patents, tmp_path_factory):
    return effects.index_of(patents.folder, tmp_path_factory.mktemp("indexes") / "patents")


@pytest.fixture(scope="module", params=["positions", "tags"])
def pages(request, tmp_path_factory):
    return make_wikipedia(tmp_path_factory.mktemp("inex"), request.param, topics=TOPICS, background=5)


@pytest.fixture(scope="module")
def page_index(pages, tmp_path_factory):
    return effects.index_of(pages.folder, tmp_path_factory.mktemp("indexes") / "pages", "none", "none")


def contents(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


@pytest.mark.parametrize(
    "make",
    [
        lambda folder, seed: make_patents(folder, seed, topics=2, background=2),
        lambda folder, seed: make_wikipedia(folder, "positions", seed, topics=2, background=2),
        lambda folder, seed: make_wikipedia(folder, "tags", seed, topics=2, background=2),
    ],
    ids=["patents", "positions", "tags"],
)
def test_a_seed_decides_every_byte(make, tmp_path):
    for name, seed in (("one", 5), ("same", 5), ("other", 6)):
        make(tmp_path / name, seed)
    assert contents(tmp_path / "one") == contents(tmp_path / "same")
    assert contents(tmp_path / "one") != contents(tmp_path / "other")


def test_patents_have_the_layout_of_clef_ip(patents):
    files = list(contents(patents.documents))
    # Four relevant documents, three decoys, and a family member of six topics in seven.
    assert len(files) == patents.document_count == 2 * TOPICS * 7 + sum(1 for file in files if file.startswith("WO")) + 5
    assert "EP/000000/20/00/01/EP-0200001-A1.xml" in files
    folder = patents.topics.parent
    assert len(list((folder / "tfiles").iterdir())) == 2 * TOPICS
    members = {path.name: path.read_bytes() for path in (folder / "tfam-docs").iterdir()}
    assert members
    for name, content in contents(patents.documents).items():
        assert Path(name).name not in members or members[Path(name).name] == content


def test_patents_are_read_with_their_profile(patents, patent_index):
    assert len(patent_index) == patents.document_count
    assert sorted(patent_index.languages) == ["de", "en", "fr"]
    found = patent_index.search("claim", filter="id=EP-200001-A1", k=1)
    assert next(iter(found)).document == "EP-200001-A1"


@pytest.mark.parametrize("topics", ["topics", "training_topics"])
def test_patent_topics_name_files_that_are_there(topics, patents):
    read = read_topics(getattr(patents, topics))
    assert len(read) == TOPICS
    for topic in read:
        root = etree.parse(topic.patent).getroot()
        assert root.get("lang").lower() == patents.languages[topic.qid]
        assert len([root.xpath(claim)[0] for claim in topic.claims]) == 2
        assert set(topic.family) <= {Path(name).stem for name in contents(patents.documents)}
    assert {topic.qid for topic in read if not topic.family}, "some topics have no earlier family member"
    assert {patents.languages[topic.qid] for topic in read} == {"en", "de", "fr"}


@pytest.mark.parametrize("judgements", ["judgements", "training_judgements"])
def test_every_judged_path_is_an_element(judgements, patents, patent_index):
    path = getattr(patents, judgements)
    assert judgement_form(path) == "clef-ip"
    judged = read_judgements(path)
    assert len(judged) == TOPICS
    roots = {Path(name).stem: etree.fromstring(content) for name, content in contents(patents.documents).items()}
    for qid in judged:
        for document, xpath in patents.relevant[qid]:
            # As CLEF-IP writes paths, a step without a number is the first: grants have claims in three languages.
            element = roots[document].xpath(xpath)[0]
            assert "".join(element.itertext()).strip()
    fitted = fit_judgements(path, patent_index.snapshot)
    assert not fitted.warning
    assert {qid: len(names) for qid, names in fitted.names.items()} == {qid: len(patents.relevant[qid]) for qid in judged}


def test_judgements_by_language_are_those_of_all_topics(patents):
    parts = [read_judgements(patents.judgements_in(language)) for language in ("en", "de", "fr")]
    assert {qid: judged for part in parts for qid, judged in part.items()} == read_judgements(patents.judgements)
    assert all(patents.languages[qid] == "en" for qid in parts[0])


def test_pages_have_the_layout_of_inex(pages, page_index):
    files = contents(pages.documents)
    assert "001/10001.xml" in files
    assert len(files) == pages.document_count == len(page_index) == 2 * TOPICS * 6 + 5
    for topics in (pages.topics, pages.training_topics):
        fields = {
            field: [topic.query for topic in read_topics(topics, field=field)]
            for field in ("title", "castitle", "description", "narrative")
        }
        assert {len(queries) for queries in fields.values()} == {TOPICS}
        assert fields["title"] == fields["castitle"]
        assert min(len(query.split()) for query in fields["narrative"]) > 30
        assert len(read_topics(pages.by_hand(topics))) == TOPICS


@pytest.mark.parametrize("judgements", ["judgements", "training_judgements"])
def test_every_judged_range_is_the_text_of_paragraphs(judgements, pages, page_index):
    path = getattr(pages, judgements)
    assert judgement_form(path) == "inex"
    for qid, documents in inex.read_judgements(path).items():
        for page, judged in documents.items():
            root = etree.parse(pages.documents / page[-3:] / f"{page}.xml").getroot()
            text = "".join(root.itertext())
            assert judged.document_length == len(text)
            ranges = pages.relevant.get(qid, {}).get(page, [])
            assert sum(end - start for start, end in ranges) <= judged.relevant_characters
            paragraphs = {"".join(element.itertext()) for element in root.iter("p", "entry")}
            assert {text[start:end] for start, end in ranges} <= paragraphs
            assert all(any(start <= first and end >= last for start, end in _ends(judged.ranges)) for first, last in ranges)
    assert not fit_judgements(path, page_index.snapshot).warning


def _ends(ranges):
    return [(start, start + length) for start, length in ranges]


def test_the_program_says_what_it_wrote(tmp_path):
    root = Path(__file__).parents[3]
    program = "import sys; from tests.support.lookalikes import sizes; sizes.SIZES['small'] = sizes.Size(2, 2, 1, 1); "
    program += "from tests.support.lookalikes.__main__ import main; sys.argv[1:] = [sys.argv[1], '--seed', '3']; main()"
    done = subprocess.run([sys.executable, "-c", program, str(tmp_path)], capture_output=True, text=True, cwd=root, check=True)
    assert "clef-ip: 20 documents" in done.stdout
    assert (tmp_path / "inex-tags" / "topics-2010.xml").is_file()
