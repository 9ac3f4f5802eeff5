"""Topics, judgements and runs in the formats of TREC, CLEF-IP, INEX and BEIR, in `perikope run` and `perikope eval`."""

import gzip
import json

import pytest
from lxml import etree

from tests.cli.test_commands import fails, run

PATENT = """<?xml version="1.0" encoding="UTF-8"?>
<patent-document ucid="EP-{number}-A1" country="EP" doc-number="{number}" kind="A1" lang="EN" date="{date}">
  <bibliographic-data>
    <technical-data><invention-title lang="EN">{title}</invention-title></technical-data>
  </bibliographic-data>
  <abstract lang="EN"><p>{title} for hot drinks.</p></abstract>
  <description lang="EN">
    <p num="0001">The invention is about a {word} in a kitchen.</p>
    <p num="0002">A <b>{word}</b> turns below the lid.</p>
  </description>
  <claims lang="EN">
    <claim num="1"><claim-text>A device with a {word} under a lid.</claim-text></claim>
    <claim num="2"><claim-text>The device of claim 1, <claim-text>whose {word} is made of brass.</claim-text></claim-text></claim>
  </claims>
</patent-document>
"""

CLEF_IP_TOPICS = """<tid>PSG-1</tid>
<tfile>EP-0000011-A1.xml</tfile>
<tfam-docs>EP-0000012-A1.xml</tfam-docs>
<tclaims>/patent-document/claims/claim[1]</tclaims>
"""

INEX_TOPICS = """<?xml version="1.0"?>
<!DOCTYPE inex-topic-file [ <!ENTITY amp "ampersand"> ]>
<inex-topic-file>
<topic id="2009901"><title>paddle</title><castitle>//article[about(., grinder)]</castitle><phrasetitle>"below the lid"</phrasetitle></topic>
</inex-topic-file>
"""


@pytest.fixture
def patents(tmp_path):
    folder = tmp_path / "patents"
    folder.mkdir()
    for number, title, word, date in (("0000011", "Kettle", "paddle", "20010102"), ("0000012", "Coffee mill", "grinder", "20000102")):
        (folder / f"EP-{number}-A1.xml").write_text(PATENT.format(number=number, title=title, word=word, date=date))
    return folder


@pytest.fixture
def index(patents, tmp_path, capsys):
    assert run(capsys, "index", patents, "--to", tmp_path / "index")[0] == 0
    return tmp_path / "index"


@pytest.fixture
def topics(tmp_path):
    path = tmp_path / "topics.tsv"
    path.write_text("1\tbrass grinder\n")
    return path


def test_a_clef_ip_run_opens_the_files_at_the_passages(index, patents, topics, tmp_path, capsys):
    out = tmp_path / "clef-ip.run"
    assert run(capsys, "run", index, topics, "--run-format", "clef-ip", "--out", out)[0] == 0
    rows = [line.split() for line in out.read_text().splitlines()]
    assert rows[0][:5] == ["1", "Q0", "EP-0000012-A1", "/patent-document/claims/claim[2]", "1"]
    for _, _, document, xpath, _, _ in rows:
        [element] = etree.parse(patents / f"{document}.xml").xpath(xpath)
        assert element.getparent().tag in ("abstract", "description", "claims")
    assert len({(row[2], row[3]) for row in rows}) == len(rows)


def test_an_inex_run_opens_the_files_at_the_characters(index, patents, topics, tmp_path, capsys):
    out = tmp_path / "inex.run.gz"
    assert run(capsys, "run", index, topics, "--run-format", "inex", "--name", "me", "--out", out)[0] == 0
    rows = [line.split() for line in gzip.decompress(out.read_bytes()).decode().splitlines()]
    assert rows[0][:4] == ["1", "Q0", "EP-12-A1", "1"]
    assert rows[0][5] == "me"
    text = "".join(etree.parse(patents / "EP-0000012-A1.xml").getroot().itertext())
    start, length = map(int, rows[0][6:])
    assert " ".join(text[start : start + length].split()) == "The device of claim 1, whose grinder is made of brass."


def test_clef_ip_judgements_and_runs(index, topics, tmp_path, capsys):
    qrels, clef_ip, trec = tmp_path / "qrels", tmp_path / "clef-ip.run", tmp_path / "trec.run"
    qrels.write_text("1 Q0 EP-0000012-A1 /patent-document[1]/claims[1]/claim[2] 1\n")
    run(capsys, "run", index, topics, "--run-format", "clef-ip", "--out", clef_ip)
    run(capsys, "run", index, topics, "--out", trec)
    code, table, err = run(capsys, "eval", qrels, clef_ip, trec, "--measures", "RR MAP(D) PRES@100")
    assert code == 0
    assert table.split()[5:9] == [str(clef_ip), "1.0000", "1.0000", "1.0000"]
    complaint = "names passages by their ids, the judgements by XPath: write it with --run-format clef-ip; or give the index"
    assert err == f"warning: {trec} {complaint} of its passages (--index)\n"
    # Only PRES, which compares documents, can be above 0. One such run among others is enough for an error.
    fails(capsys, f"{trec}: {complaint}", "eval", qrels, clef_ip, trec, "--measures", "RR MAP(D)")
    assert run(capsys, "eval", qrels, clef_ip, "--qrels-format", "clef-ip", "--run-format", "clef-ip", "--measures", "RR")[0] == 0
    fails(capsys, "qrels:1: expected 4 columns", "eval", qrels, clef_ip, "--qrels-format", "trec")
    fails(capsys, "clef-ip.run:1: the rank must be a whole number", "eval", qrels, clef_ip, "--run-format", "trec")


def test_with_an_index_a_run_by_ids_is_not_told_to_use_xpath(index, topics, tmp_path, capsys):
    qrels, trec = tmp_path / "qrels", tmp_path / "trec.run"
    qrels.write_text("".join(f"1 Q0 EP-0000012-A1 /patent-document[1]/claims[1]/claim[{claim}] 1\n" for claim in (2, 99)))
    run(capsys, "run", index, topics, "--out", trec)
    code, out, err = run(capsys, "eval", qrels, trec, "--index", index, "--measures", "RR", "--json")
    assert code == 0
    assert json.loads(out)["mean"] == {"RR": 1.0}
    assert err.startswith(f"warning: {qrels}: 1 of 2 relevant judgements do not fit the index")
    assert err.count("\n") == 1


@pytest.mark.parametrize("form", ["trec", "clef-ip", "inex"])
@pytest.mark.parametrize("measures", ["RR", "MAiP", "PRES"])
def test_judgements_of_which_none_fits_the_index_are_an_error(index, topics, tmp_path, capsys, form, measures):
    qrels, out = tmp_path / "qrels", tmp_path / "out.run"
    run(capsys, "run", index, topics, "--run-format", form, "--out", out)
    element = "1 Q0 EP-0000099-A1 /patent-document[1]/claims[1]/claim[2] 1\n"
    for lines in (element, "1 Q0 EP-99-A1 3 40 2 2:3\n", "1 Q0 EP-12-A1 3 999999 900000 900000:3\n"):
        qrels.write_text(lines)
        fails(capsys, f"{qrels}: none of the 1 relevant judgements fits", "eval", qrels, out, "--index", index, "--measures", measures)


def test_inex_judgements_and_runs_by_document(index, topics, tmp_path, capsys):
    qrels, out = tmp_path / "qrels", tmp_path / "inex.run"
    qrels.write_text("1 Q0 EP-11-A1 0 500 0\n1 Q0 EP-12-A1 30 500 40 40:30\n")
    run(capsys, "run", index, topics, "--run-format", "inex", "--out", out)
    record = json.loads(run(capsys, "eval", qrels, out, "--json")[1])
    assert record["mean"] == {"nDCG@10": 1.0, "AP": 1.0}
    by_id = tmp_path / "trec.run"
    run(capsys, "run", index, topics, "--out", by_id)
    fails(capsys, "names passages, the judgements documents", "eval", qrels, by_id)
    fails(capsys, "; or give the index of its passages (--index)", "eval", qrels, by_id)
    qrels.write_text("1 Q0 EP-12-A1 30 500 40 40:29\n")
    fails(capsys, "qrels:1: the ranges have 29 characters, not 30", "eval", qrels, out)


@pytest.mark.parametrize("form", ["clef-ip", "inex"])
def test_a_run_by_places_needs_xml(topics, tmp_path, capsys, form):
    (tmp_path / "d.jsonl").write_text(json.dumps({"id": "d1", "passages": ["a brass grinder"]}))
    run(capsys, "index", tmp_path / "d.jsonl", "--to", tmp_path / "plain")
    out = tmp_path / "run"
    fails(capsys, "index the XML files themselves", "run", tmp_path / "plain", topics, "--run-format", form, "--out", out)
    assert not out.exists()
    fails(
        capsys, "is for passages; leave --document-ranking out", "run", tmp_path / "plain", topics, "--run-format", form, "--out", out,
        "--document-ranking", "maxp",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("options", "first"),
    [((), "EP-11-A1#"), (("--topic-field", "castitle"), "EP-12-A1#"), (("--topic-field", "phrasetitle", "--topic-format", "inex"), "EP-1")],
)
def test_inex_topics(index, tmp_path, capsys, options, first):
    topics, out = tmp_path / "inex.xml", tmp_path / "run"
    topics.write_text(INEX_TOPICS)
    assert run(capsys, "run", index, topics, "--out", out, *options)[0] == 0
    assert out.read_text().splitlines()[0].split()[2].startswith(first)
    assert out.read_text().startswith("2009901 Q0 ")


def test_topics_of_one_language(index, tmp_path, capsys):
    topics, out, qrels = tmp_path / "topics.jsonl", tmp_path / "run", tmp_path / "qrels.txt"
    lines = [f'{{"qid": "{number}", "query": "grinder", "language": "{"fr" if number == 2 else "en"}"}}' for number in range(1, 4)]
    topics.write_text("\n".join(lines))
    code, printed, err = run(capsys, "run", index, topics, "--topic-language", "en", "--out", out)
    assert code == 0
    assert printed.startswith("2 topics ranked")
    assert "1 of 3 topics are not in the language 'en' and left out: 2 (line 2, fr)" in err
    assert {line.split()[0] for line in out.read_text().splitlines()} == {"1", "3"}
    qrels.write_text("".join(f"{number} 0 {out.read_text().split()[2]} 1\n" for number in range(1, 4)))
    model = ("--model", "qsf_v(alpha=[0,1])", "--measure", "RR", "--folds", 2, "--workers", 1)
    code, printed, err = run(capsys, "tune", index, topics, qrels, "--topic-language", "en", *model)
    assert code == 0
    assert "left out: 2 (line 2, fr)" in err
    assert "on 2 topics" in printed


def test_trec_topics_and_a_beir_folder(index, tmp_path, capsys):
    topics, out = tmp_path / "trec.txt", tmp_path / "run"
    topics.write_text("<top>\n<num> Number: 051\n<title> Topic: grinder\n<desc> Description:\nbrass\n</top>\n")
    assert run(capsys, "run", index, topics, "--topic-field", "title,desc", "--document-ranking", "maxp", "--out", out)[0] == 0
    assert out.read_text().startswith("51 Q0 EP-12-A1 1 ")
    folder = tmp_path / "beir"
    (folder / "qrels").mkdir(parents=True)
    (folder / "queries.jsonl").write_text('{"_id": "q1", "text": "brass grinder"}\n')
    (folder / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq1\tEP-12-A1\t1\n")
    assert run(capsys, "run", index, folder, "--document-ranking", "maxp", "--out", out)[0] == 0
    assert run(capsys, "eval", folder, out, "--measures", "RR")[1].split()[4] == "1.0000"


def test_a_clef_ip_run_as_candidates(index, topics, tmp_path, capsys):
    theirs, out = tmp_path / "theirs", tmp_path / "run"
    theirs.write_text("1 Q0 EP-0000011-A1 /patent-document/claims/claim[1] 1 0.5\n")
    run(capsys, "run", index, topics, "--candidates", theirs, "--out", out)
    assert {line.split()[2].partition("#")[0] for line in out.read_text().splitlines()} == {"EP-11-A1"}
    theirs.write_text("1 Q0 EP-12-A1 1 0.5 me 0 40\n")
    run(capsys, "run", index, topics, "--candidates", theirs, "--out", out)
    assert {line.split()[2].partition("#")[0] for line in out.read_text().splitlines()} == {"EP-12-A1"}


def test_mistakes(index, tmp_path, capsys):
    topics, out = tmp_path / "topics", tmp_path / "run"
    topics.write_text("brass grinder\n")
    fails(capsys, "topics:1: the file has none of the known forms of topics", "run", index, topics, "--out", out)
    fails(capsys, "topics:1: the topic that begins here", "run", index, _written(topics, "<top>\n<num>1"), "--out", out)
    fails(capsys, "topics:4: <tclaims> is not closed", "run", index, _written(topics, CLEF_IP_TOPICS[:110]), "--out", out)
    fails(capsys, "topics:4: cannot be read as XML", "run", index, _written(topics, INEX_TOPICS[:180]), "--out", out)
    fails(capsys, "TSV topics have no fields", "run", index, _written(topics, "1\tx"), "--out", out, "--topic-field", "desc")
    fails(capsys, "'clefip' is not one of", "run", index, topics, "--out", out, "--topic-format", "clefip")
    fails(capsys, "ir_datasets", "run", index, "irds:vaswani-nowhere", "--out", out)
    assert not out.exists()


def _written(path, content):
    path.write_text(content)
    return path


def test_clef_ip_topics_search_with_their_patent(index, patents, tmp_path, capsys):
    """The file name names the patent, whether its file is beside the topics or in the index only."""
    out = tmp_path / "run"
    alone = _written(tmp_path / "topics.txt", CLEF_IP_TOPICS.replace("EP-0000012-A1.xml", ""))
    beside = _written(patents / "topics.txt", alone.read_text())
    for topics in (alone, beside):
        assert run(capsys, "run", index, topics, "--run-format", "clef-ip", "--out", out)[0] == 0
        rows = [line.split() for line in out.read_text().splitlines()]
        assert {(row[0], row[2]) for row in rows} == {("PSG-1", "EP-0000012-A1")}
    topics = _written(tmp_path / "topics.txt", CLEF_IP_TOPICS)
    code, _, err = run(capsys, "run", index, topics, "--run-format", "clef-ip", "--out", out)
    assert code == 1
    assert "topic PSG-1: no passage" in err
