"""Search with a patent by number, by file and by claims, in ten families with known answers."""

import io
import json
import sys
from urllib.parse import quote

import pytest

from perikope import cli
from perikope.core.errors import UsageError
from perikope.formats import read
from perikope.query.topic import Topic
from perikope.search.batch import search_topics
from perikope.search.facade import Index
from tests.cli.test_commands import fails, run
from tests.support.patents import families, patent_xml
from tests.unit.patents.test_translation import server

FAMILIES = families()
EVERYTHING = [patent for family in FAMILIES for patent in family.everything]
NUMBER = {patent.id: patent.id.replace("-", "") for patent in EVERYTHING}
SILENT = {"code_filter": False, "date_limit": False, "family_filter": False}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("patents")
    for patent in EVERYTHING:
        (folder / f"{patent.id}.xml").write_text(patent.xml, encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def index(folder, tmp_path_factory):
    to = tmp_path_factory.mktemp("index") / "idx"
    with pytest.raises(SystemExit) as done:
        cli.main(["index", str(folder), "--to", str(to)])
    assert done.value.code == 0
    return to


def documents(out):
    """The documents of the hits that were printed as JSON, best first."""
    return list(dict.fromkeys(json.loads(line)["document"] for line in out.splitlines()))


def searched(capsys, index, *arguments):
    code, out, err = run(capsys, "search", index, "--json", "-k", 1000, *arguments)
    assert code == 0
    return documents(out), err


def expected(family, patent, *, later=False, other_codes=False, members=False):
    ids = [family.earlier.id]
    ids += [family.later.id] * later + [family.other_codes.id] * other_codes
    ids += [member.id for member in family.members if member != patent] * members
    return sorted(ids)


MEMBERS = [(family, member) for family in FAMILIES for member in family.members]


@pytest.mark.parametrize(("family", "member"), MEMBERS, ids=[member.id for _, member in MEMBERS])
def test_what_a_member_finds(index, family, member):
    """Every combination of the filters; in Python, because a command per member would take too long."""
    opened = Index.open(index)
    ours = {patent.id for patent in family.everything}
    for codes in (True, False):
        for dates in (True, False):
            for exclude_family in (True, False):
                query = opened.patent_query(NUMBER[member.id], code_filter=codes, date_limit=dates, family_filter=exclude_family)
                documents = {hit.document for hit in opened.search(query, model="bm25", k=1000)}
                wanted = expected(family, member, later=not dates, other_codes=not codes, members=not dates and not exclude_family)
                assert sorted(documents & ours) == wanted
                if codes:
                    # No code is shared with another family.
                    assert documents <= ours


@pytest.mark.parametrize(("family", "member"), MEMBERS, ids=[member.id for _, member in MEMBERS])
def test_with_all_filters_off_the_best_are_of_its_own_theme(index, family, member):
    opened = Index.open(index)
    hits = opened.search(opened.patent_query(NUMBER[member.id], **SILENT), k=1000)
    ranked = list(dict.fromkeys(hit.document for hit in hits))
    others = {patent.id for patent in family.everything} - {member.id}
    assert member.id not in ranked
    assert set(ranked[: len(others)]) == others


def test_by_number_by_file_and_by_id(index, folder, capsys):
    for family in FAMILIES[:4]:
        member = family.members[0]
        file = folder / f"{member.id}.xml"
        answers = [searched(capsys, index, "--patent", patent) for patent in (NUMBER[member.id], file, member.id)]
        assert [documents for documents, _ in answers] == [[family.earlier.id]] * 3


def test_a_file_that_is_not_in_the_index(index, tmp_path, capsys):
    family = FAMILIES[0]
    xml = family.members[0].xml.replace("900100", "999100").replace("81000000", "99999999")
    path = tmp_path / "application.xml"
    path.write_text(xml, encoding="utf-8")
    # The priority date is still that of the family.
    assert searched(capsys, index, "--patent", path)[0] == [family.earlier.id]


def test_a_number_without_its_kind_is_the_latest(index, capsys):
    documents, err = searched(capsys, index, "--patent", "EP 0 900 100")
    assert documents == [FAMILIES[0].earlier.id]
    assert "EP-900100-B1 has no abstract" in err, "as the B1 has none"


def test_filters_turned_off_and_added(index, capsys):
    family = FAMILIES[0]
    patent = ["--patent", "EP0900100A1"]
    wide = ["--no-code-filter", "--no-date-limit", "--no-family-filter"]
    assert sorted(searched(capsys, index, *patent, "--no-date-limit")[0]) == sorted([family.earlier.id, family.later.id])
    ours = [patent.id for patent in family.everything]
    documents = searched(capsys, index, *patent, *wide, "--filter", f"id={'|'.join(ours)}")[0]
    assert sorted(documents) == sorted(set(ours) - {"EP-900100-A1"})
    assert searched(capsys, index, *patent, *wide, "--filter", "country=WO", "--filter", f"id={'|'.join(ours)}")[0] == [family.later.id]


def test_one_of_each_family(index, capsys):
    words = ["device of claim 1, nach Anspruch 1, according to the invention"]
    everything, _ = searched(capsys, index, *words)
    one, _ = searched(capsys, index, *words, "--one-per", "family")
    family_of = {patent.id: number for number, family in enumerate(FAMILIES) for patent in family.members}
    first = list({family_of.get(id, id): id for id in reversed(everything)}.values())
    assert sorted(one) == sorted(first)
    assert len(everything) - len(one) == 20
    fails(capsys, "--one-per is empty", "search", index, *words, "--one-per", "")
    fails(capsys, "unknown metadata field 'famly'", "search", index, *words, "--one-per", "famly")


def test_pasted_claims(index, capsys, monkeypatch):
    text = "A tunnel kiln comprising a burner and a muffle"
    documents, err = searched(capsys, index, "--claims", text)
    assert set(documents[:6]) == {patent.id for patent in FAMILIES[2].everything}
    assert err == "perikope: note: claims without a patent have no codes and no dates: documents are not filtered by them\n"
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"\xef\xbb\xbf" + text.encode())))
    assert searched(capsys, index, "--claims", "-")[0] == documents
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"\xff")))
    fails(capsys, "standard input: is not UTF-8", "search", index, "--claims", "-")


def test_amended_and_chosen_claims(index, capsys):
    documents, _ = searched(capsys, index, "--patent", "EP0900100A1", "--claims", "A strainer")
    assert documents == [FAMILIES[0].earlier.id]
    _, out, _ = run(capsys, "search", index, "--patent", "EP0900100A1", "--claim", 2, "--model", "bm25", "--json")
    highlighted = {json.loads(line)["text"][a:b].lower() for line in out.splitlines() for a, b in json.loads(line)["highlights"]}
    assert "gasket" in highlighted
    assert "strainer" not in highlighted, "only the first claim has one"


def test_what_is_printed(index, capsys):
    code, out, err = run(capsys, "search", index, "--patent", "EP0900100A1", "-k", 1)
    assert (code, err) == (0, "")
    assert "EP-800200-A1#" in out
    assert run(capsys, "search", index, "--patent", "EP0900100A1", "--filter", "date<1900")[1] == "no document meets the conditions\n"


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ([], "Missing argument 'QUERY'; give a query, --patent"),
        (["pump", "--patent", "EP0900100A1"], "not both"),
        (["pump", "--no-date-limit"], "--no-date-limit needs a patent"),
        (["pump", "--fetch-words", 5], "--fetch-words needs a patent"),
        (["--claim", 1], "give the patent with --patent"),
        (["--patent", "EP0900100A1", "--claims", "A pump", "--claim", 1], "not both"),
        (["--patent", ""], "--patent is empty"),
        (["--claims", " "], "--claims is empty"),
        (["--patent", "EP0900199A1"], "similar names: EP0900109A1"),
        (["--patent", "EP0900100A9"], "these publications of EP0900100: EP-900100-A1, EP-900100-B1"),
        (["--patent", "nothing.xml"], "neither a file"),
        (["--patent", "EP0900100A1", "--claim", 7], "no claim '7'; its claims are claim-1, claim-2"),
        (["--patent", "EP0900100A1", "--fetch-from", "claim"], "did you mean 'claims'"),
        (["--patent", "EP0900100A1", "--translate", "here"], "not the address of a translation server"),
    ],
)
def test_mistakes(index, capsys, arguments, complaint):
    fails(capsys, complaint, "search", index, *arguments)


def test_files_that_cannot_be_searched_with(index, tmp_path, capsys):
    letter = tmp_path / "letter.md"
    letter.write_text("# Dear Sirs\n\nA pump.\n")
    fails(capsys, "letter.md: is not a patent", "search", index, "--patent", letter)
    several = tmp_path / "several.xml"
    several.write_text("".join(patent.xml for patent in FAMILIES[0].members), encoding="utf-8")
    fails(
        capsys, "must contain one patent, but contains EP-900100-A1, EP-900100-B1, US-20020010000-A1", "search", index, "--patent", several
    )
    bare = tmp_path / "bare.xml"
    bare.write_text(patent_xml("EP", "1", "A1", "2001-01-01", titles={"EN": "Pump"}, description=["A pump."]), encoding="utf-8")
    fails(capsys, "bare.xml has neither claims nor an abstract", "search", index, "--patent", bare)
    fails(capsys, "is a folder", "search", index, "--patent", tmp_path)


def test_a_patent_that_lacks_codes_and_dates(index, tmp_path, capsys):
    path = tmp_path / "bare.xml"
    xml = patent_xml("EP", "7", "A1", "", titles={"EN": "Pump"}, claims={"EN": ["A submersible pump with a strainer."]})
    path.write_text(xml, encoding="utf-8")
    documents, err = searched(capsys, index, "--patent", path)
    assert set(documents[:6]) == {patent.id for patent in FAMILIES[0].everything}
    assert "has no abstract: words are taken from its claims" in err
    assert "has no classification codes: documents are not filtered" in err
    assert "has no date" in err
    assert all(line.startswith("perikope: note: ") for line in err.splitlines())


def test_claims_are_translated_by_a_server(index, tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("PERIKOPE_TRANSLATE_KEY", "k7")
    path = tmp_path / "dutch.xml"
    xml = patent_xml("NL", "7", "A", "2005-01-01", language="NL", titles={"NL": "Pomp"}, claims={"NL": ["Dompelpomp met een zeef."]})
    path.write_text(xml, encoding="utf-8")
    _, err = searched(capsys, index, "--patent", path)
    assert "nl, the language of the claims" in err

    def answer(url, content):
        return 200, {}, json.dumps({"translatedText": "Submersible pump with a strainer."}).encode()

    with server(answer) as (address, asked):
        documents, err = searched(capsys, index, "--patent", path, "--translate", address)
    assert set(documents[:6]) == {patent.id for patent in FAMILIES[0].everything}
    assert "nl, the language" not in err
    assert {(content["source"], content["target"], content["api_key"]) for _, content in asked} == {("nl", "en", "k7")}
    path.write_text(xml.replace("een zeef", "een filter"), encoding="utf-8")  # translations of the same text are remembered
    fails(capsys, "cannot translate with", "search", index, "--patent", path, "--translate", address)


# Topics


def lines(path):
    return [line.split() for line in path.read_text().splitlines()]


def test_topics_that_are_patents(index, folder, tmp_path, capsys):
    topics = folder / "topics.jsonl"
    try:
        records = [
            {"qid": "1", "patent": "EP0900100A1"},
            {"qid": "2", "patent": "EP-900101-A1.xml", "claims": ["/patent-document/claims/claim[1]"]},
            {"qid": "3", "patent": "EP0999999A1"},
            {"qid": "4", "query": "tunnel kiln with a burner"},
        ]
        topics.write_text("".join(json.dumps(record) + "\n" for record in records))
        out = tmp_path / "out.run"
        code, said, err = run(capsys, "run", index, topics, "--out", out, "--model", "bm25")
    finally:
        topics.unlink()
    assert code == 1
    assert "3 topics ranked" in said
    assert "topic 3: there is no EP0999999A1" in err
    documents_of_topic = {qid: {name.split("#")[0] for query, _, name, *_ in lines(out) if query == qid} for qid in "1234"}
    assert documents_of_topic["1"] == {FAMILIES[0].earlier.id}
    assert documents_of_topic["2"] == {FAMILIES[1].earlier.id}
    assert documents_of_topic["3"] == set()
    assert {patent.id for patent in FAMILIES[2].everything} <= documents_of_topic["4"]


def test_topics_of_clef_ip(index, folder, tmp_path, capsys):
    """A file that does not exist names a patent of the index; the family of a topic is not among the results."""
    topics = tmp_path / "topics.xml"
    topics.write_text(
        "<topic><tid>tPSG-1</tid><tfile>EP-900102-A1.xml</tfile><tfam-docs>WO-2002040302-A2</tfam-docs>"
        "<tclaims>/patent-document/claims/claim[1] /patent-document/claims/claim[2]</tclaims></topic>\n"
    )
    family, out = FAMILIES[2], tmp_path / "out.run"
    for options, wanted in (
        ([], {family.earlier.id}),
        (["--no-date-limit"], {family.earlier.id}),
        (["--no-date-limit", "--no-family-filter"], {family.earlier.id, family.later.id, *(other.id for other in family.members[1:])}),
    ):
        assert run(capsys, "run", index, topics, "--out", out, "--model", "bm25", *options)[0] == 0
        assert {name.split("#")[0] for _, _, name, *_ in lines(out)} == wanted


def test_a_topic_with_words_and_a_patent(index):
    opened = Index.open(index)
    topics = [Topic("1", query="strainer", patent="EP0900100A1"), Topic("2", patent="EP0900100A1", options={"browse_query": "impeller"})]
    notes, problems = [], []
    rankings = dict(search_topics(opened, topics, problems.append, model="bm25", date_limit=False, on_note=notes.append, k=50))
    assert (notes, problems) == ([], [])
    ours = {FAMILIES[0].earlier.id, FAMILIES[0].later.id}
    assert all({name.split("#")[0] for name, _ in ranking} == ours for ranking in rankings.values())
    with pytest.raises(UsageError, match="fetch_words must be"):
        list(search_topics(opened, topics, problems.append, fetch_words=0))


def test_notes_on_topics(index, tmp_path, capsys):
    topics = tmp_path / "topics.jsonl"
    topics.write_text("".join(json.dumps({"qid": str(n), "patent": f"EP0900{100 + n}B1"}) + "\n" for n in range(10)))
    code, _, err = run(capsys, "run", index, topics, "--out", tmp_path / "out.run")
    assert code == 0
    assert "note: topic 0: EP-900100-B1 has no abstract: the abstract of EP-900100-A1 is used" in err


# Real files


def test_publications_of_one_real_patent_find_each_other(shared_data, tmp_path):
    files = sorted((shared_data / "patents").glob("*.xml"))
    pairs = [("EP-1000000-A1", "EP-1000000-B1"), ("EP-1000000-B1", "EP-1000000-A1")]
    if not {"EP-1000000-A1.xml", "EP-1000000-B1.xml"} <= {file.name for file in files}:
        pytest.skip("other patents are there")
    index = Index.create(tmp_path / "idx")
    index.add(read(files))
    index.commit()
    for id, other in pairs:
        file = shared_data / "patents" / f"{id}.xml"
        free, bound = (index.patent_query(file, **options) for options in (SILENT, {}))
        assert free.fetch == index.patent_query(id, **SILENT).fetch
        assert index.search(free, k=1)[0].document == other
        assert {hit.document for hit in index.search(bound, k=1000)}.isdisjoint({id, other})


def test_topics_that_are_patents_teach_too(index, folder, tmp_path, capsys):
    topics, qrels = folder / "training.jsonl", tmp_path / "qrels.txt"
    wanted = ["--patent", "EP0900100A1", "--json", "-k", 1, "--part", "description", "--no-date-limit"]
    for patent in (FAMILIES[0].earlier, FAMILIES[0].later):
        hit = json.loads(run(capsys, "search", index, *wanted, "--filter", f"id={patent.id}")[1])
        with open(qrels, "a") as file:
            file.write(f"1 0 {hit['document']}#{quote(hit['passage'])} 1\n2 0 {hit['document']}#{quote(hit['passage'])} 1\n")
    records = [{"qid": "1", "patent": "EP-900100-A1.xml"}, {"qid": "2", "patent": "EP0999999A1"}]
    try:
        topics.write_text("".join(json.dumps(record) + "\n" for record in records))
        code, _, err = run(capsys, "learn", "export", index, topics, qrels, "--out", tmp_path / "examples.csv", "--depth", 5)
        assert code == 1, "a topic was passed over"
        assert "skipped: topic 2: there is no EP0999999A1" in err
        prior = run(capsys, "learn", "prior", index, topics, qrels, "--name", "mine", "--model", "bm25")
    finally:
        topics.unlink()
    rows = (tmp_path / "examples.csv").read_text().splitlines()[1:]
    assert {row.split(",")[0] for row in rows} == {"1"}
    assert {row.split(",")[1].split("#")[0] for row in rows} == {FAMILIES[0].earlier.id}, "found under the conditions of the patent"
    assert "not in the index" not in prior[2], "what the conditions keep out is judged all the same"
    assert "learned from 1 topic" in prior[1]
