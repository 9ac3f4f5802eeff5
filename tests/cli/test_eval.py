"""`perikope eval`: comparison of runs, and measures that count characters."""

import json

import pytest

from tests.cli.test_commands import fails, run
from tests.cli.test_io_formats import PATENT

DOCUMENTS = [
    {"id": "d1", "title": "Kettles", "passages": [{"id": "p1", "text": "A lid keeps heat in."}, {"id": "p2", "text": "Brass is heavy."}]},
    {"id": "d 2", "passages": ["Pumps move water.", "Valves stop water."]},
]


@pytest.fixture
def index(tmp_path, capsys):
    path = tmp_path / "documents.jsonl"
    path.write_text("".join(json.dumps(document) + "\n" for document in DOCUMENTS))
    assert run(capsys, "index", path, "--to", tmp_path / "index")[0] == 0
    return tmp_path / "index"


@pytest.fixture
def spans(tmp_path):
    path = tmp_path / "spans.tsv"
    path.write_text("1\td1#p1\t2\t5\n1\td%202#@2\t0\t6\n2\td1#p2\t0\t15\n")
    return path


@pytest.fixture
def passage_run(tmp_path):
    path = tmp_path / "passages.run"
    path.write_text("1 Q0 d1#p1 1 4 me\n1 Q0 d%202#@1 2 3 me\n1 Q0 d1#p2 3 2 me\n1 Q0 d%202#@2 4 1 me\n")
    return path


def means(capsys, *arguments):
    code, out, _ = run(capsys, "eval", *arguments, "--json")
    assert code == 0
    return json.loads(out)["mean"]


def test_a_run_of_passages_is_measured_by_characters(index, spans, passage_run, capsys):
    measured_means = means(
        capsys, spans, passage_run, "--index", index, "--measures", "iP[0.01] iP[1] gP[10] gR[10] MAgP T2I(1) T2I(9) MAgP(t2i=9) RR MAP(D)"
    )
    # 9 relevant characters; passages of 20, 17, 15 and 18 characters. Query 2 is not in the run.
    document_1, document_2 = 2 * 3 / (3 + 35), 2 * 6 / (6 + 35)
    # Of the first document 2 + 7 characters around the 3 relevant ones are read, of the second 9 that are not relevant.
    tolerant = 2 * 3 / (3 + 12)
    expected = {
        "iP[0.01]": 3 / 20,
        "iP[1]": 9 / 70,
        "gP[10]": (document_1 + document_2) / 2,
        "gR[10]": 1.0,
        "MAgP": (document_1 + (document_1 + document_2) / 2) / 2,
        # The first characters of both documents are irrelevant.
        "T2I(1)": 0.0,
        "T2I(9)": (tolerant + tolerant / 2) / 2,
        "MAgP(t2i=9)": (tolerant + tolerant / 2) / 2,
        "RR": 1.0,
        "MAP(D)": (1 + 1 / 2) / 2,
    }
    assert measured_means == pytest.approx({name: value / 2 for name, value in expected.items()})


def test_relevant_passages_are_relevant_text(index, passage_run, tmp_path, capsys):
    qrels = tmp_path / "qrels"
    qrels.write_text("1 0 d1#p1 1\n1 0 d%202#@1 0\n")
    values = means(capsys, qrels, passage_run, "--index", index, "--measures", "iP[1] AiP nDCG@10")
    assert values == {"iP[1]": 1.0, "AiP": 1.0, "nDCG@10": 1.0}
    documents, whole = tmp_path / "documents.qrels", tmp_path / "documents.run"
    documents.write_text("1 0 d1 1\n")
    whole.write_text("1 Q0 d1 1 1 me\n")
    assert means(capsys, documents, whole, "--index", index, "--measures", "AgP") == {"AgP": 1.0}


def test_judgements_or_runs_without_characters_say_what_is_needed(index, spans, passage_run, tmp_path, capsys):
    inex_run, inex_qrels = tmp_path / "inex.run", tmp_path / "inex.qrels"
    inex_run.write_text("1 Q0 d1 1 2 me 0 5\n")
    inex_qrels.write_text("1 Q0 d1 3 40 2 2:3\n")
    fails(capsys, "judges passages: give their index (--index)", "eval", spans, passage_run, "--measures", "MAiP")
    fails(capsys, "the run names passages: give their index (--index)", "eval", inex_qrels, passage_run, "--measures", "MAiP")
    fails(capsys, "an INEX run names characters of files", "eval", spans, inex_run, "--measures", "MAiP", "--index", index)
    fails(capsys, "has no positions in an XML file", "eval", inex_qrels, passage_run, "--measures", "MAiP", "--index", index)
    assert means(capsys, inex_qrels, inex_run, "--measures", "iP[1] RR") == {"iP[1]": 0.6, "RR": 1.0}


def test_what_the_index_does_not_have_is_named(index, spans, passage_run, tmp_path, capsys):
    measured = ("--index", index, "--measures", "MAiP")
    passage_run.write_text("1 Q0 d1#p9 1 4 me\n")
    fails(capsys, "passages.run: the run names an unknown result: the index has no passage 'd1#p9'", "eval", spans, passage_run, *measured)
    passage_run.write_text("1 Q0 d1#p1 1 4 me\n")
    spans.write_text("1\td1#p1\t0\t5\n1\td7#p1\t0\t5\n")
    fails(capsys, "spans.tsv:2: the index has no document 'd7'", "eval", spans, passage_run, *measured)
    spans.write_text("1\td1#p1\t0\t5\n1\td1#p1\t0\t21\n")
    fails(capsys, "spans.tsv:2: d1#p1 has 20 characters, but the span ends at 21", "eval", spans, passage_run, *measured)
    spans.write_text("1\td1#p1\t0\t5\n1\td1#p1\t6\t5\n")
    fails(capsys, "spans.tsv:2: the start 6 of a span must be 0 or more", "eval", spans, passage_run, *measured)


def test_an_inex_run_that_is_not_in_context_is_refused_with_the_line(tmp_path, capsys):
    qrels, broken = tmp_path / "qrels", tmp_path / "broken.run"
    qrels.write_text("1 Q0 d1 3 40 2 2:3\n")
    broken.write_text("1 Q0 d1 1 3 me 0 5\n1 Q0 d2 2 2 me 0 5\n1 Q0 d1 3 1 me 9 5\n")
    fails(capsys, "broken.run:3: 5 characters of 'd1' from 9 on come after results of another", "eval", qrels, broken, "--measures", "MAgP")
    broken.write_text("1 Q0 d1 1 3 me 0 5\n\n1 Q0 d1 2 2 me 3 5\n")
    fails(capsys, "broken.run:3: 5 characters of 'd1' from 3 on overlap", "eval", qrels, broken, "--measures", "gP[10]")
    assert means(capsys, qrels, broken, "--measures", "iP[0]") == {"iP[0]": 0.6}


def test_a_run_of_passages_has_the_places_of_its_inex_run(tmp_path, capsys):
    folder, topics, qrels = tmp_path / "patent-index", tmp_path / "topics.tsv", tmp_path / "qrels"
    for number, word in (("0000011", "paddle"), ("0000012", "grinder")):
        (tmp_path / f"EP-{number}-A1.xml").write_text(PATENT.format(number=number, title="Mill", word=word, date="20010102"))
    assert run(capsys, "index", *tmp_path.glob("*.xml"), "--to", folder)[0] == 0
    topics.write_text("1\tbrass grinder\n")
    by_characters, by_name = tmp_path / "inex.run", tmp_path / "trec.run"
    assert run(capsys, "run", folder, topics, "--run-format", "inex", "--out", by_characters)[0] == 0
    assert run(capsys, "run", folder, topics, "--out", by_name)[0] == 0
    start, length = by_characters.read_text().splitlines()[0].split()[-2:]
    qrels.write_text(f"1 Q0 EP-12-A1 {length} 5000 {start} {start}:{length}\n")
    measured = ("--measures", "iP[0] iP[1] MAiP")
    by_offset = means(capsys, qrels, by_characters, *measured)
    assert by_offset["iP[1]"] == 1
    assert means(capsys, qrels, by_name, "--index", folder, *measured) == by_offset


# Runs that do not fit the judgements.


def written(path, *lines):
    path.write_text("".join(f"{line}\n" for line in lines))
    return path


@pytest.mark.parametrize("measures", ["nDCG@10", "PRES", "nDCG@10 MAP(D) docAP"])
def test_a_run_without_a_judged_query_is_an_error(passage_run, tmp_path, capsys, measures):
    qrels, fitting = written(tmp_path / "qrels", "7 0 d1#p1 1"), written(tmp_path / "fitting.run", "7 Q0 d1#p1 1 4 me")
    assert run(capsys, "eval", qrels, fitting, "--measures", measures)[0] == 0
    complaint = f"{passage_run}: has no query that {qrels} judges: check that both have the same query ids"
    fails(capsys, complaint, "eval", qrels, passage_run, "--measures", measures)
    fails(capsys, complaint, "eval", qrels, fitting, passage_run, "--measures", measures)


@pytest.mark.parametrize(
    ("judged", "complaint"),
    [
        ("d1#/a[1]", "names passages by their ids, the judgements by XPath: write it with --run-format clef-ip; or give the index of"),
        ("d1", "names passages, the judgements documents: only measures of documents, such as PRES, can compare them\n"),
    ],
)
def test_names_of_another_kind_are_an_error_unless_a_measure_can_compare_them(passage_run, tmp_path, capsys, judged, complaint):
    qrels = written(tmp_path / "qrels", f"1 0 {judged} 1")
    fails(capsys, f"{passage_run}: {complaint}", "eval", qrels, passage_run, "--measures", "nDCG@10 MAP(D)")
    code, out, err = run(capsys, "eval", qrels, passage_run, "--measures", "nDCG@10 docAP", "--json")
    assert code == 0
    assert json.loads(out)["mean"] == {"nDCG@10": 0.0, "docAP": 1.0}
    assert err.startswith(f"warning: {passage_run} {complaint}")
    assert run(capsys, "eval", qrels, passage_run, "--measures", "docAP")[2] == ""


def test_judgements_of_two_kinds_can_be_found_in_part(passage_run, tmp_path, capsys):
    qrels = written(tmp_path / "qrels", "1 0 d1#p1 1", "1 0 d1#/a[1] 1")
    code, out, err = run(capsys, "eval", qrels, passage_run, "--measures", "Recall", "--json")
    assert code == 0
    assert json.loads(out)["mean"] == {"Recall": 0.5}
    assert "names passages by their ids, the judgements by XPath" in err


@pytest.mark.parametrize(
    ("judged", "measures", "warning"),
    [
        ("d7#p1 1", "nDCG@10", "{run} has no result in a document that {qrels} judges for the query"),
        ("d7#p1 1", "PRES", "{run} has no result in a document that {qrels} judges for the query"),
        ("d1#p9 1", "nDCG@10", "{run} has no result that {qrels} judges"),
        ("d1#p9 1", "PRES", ""),
        ("d1#p1 0", "nDCG@10", "{qrels} has no relevant judgement"),
        ("d1#p1 1", "nDCG@10", ""),
    ],
)
def test_a_run_without_a_judged_result_is_told(passage_run, tmp_path, capsys, judged, measures, warning):
    qrels = written(tmp_path / "qrels", f"1 0 {judged}")
    code, _, err = run(capsys, "eval", qrels, passage_run, "--measures", measures)
    assert code == 0
    assert err == (f"warning: {warning.format(run=passage_run, qrels=qrels)}\n" if warning else "")


def test_judgements_that_do_not_fit_the_index_are_counted_once(index, passage_run, tmp_path, capsys):
    qrels = written(tmp_path / "qrels", "1 0 d1#p1 1", "1 0 d7#p1 1")
    other = written(tmp_path / "other.run", "1 Q0 d1#p1 1 4 me")
    code, _, err = run(capsys, "eval", qrels, passage_run, other, "--index", index)
    assert code == 0
    assert err.startswith(f"warning: {qrels}: 1 of 2 relevant judgements do not fit the index and count as not found, such as line 2")
    assert err.count("\n") == 1
    written(qrels, "1 0 d7#p1 1")
    fails(capsys, "none of the 1 relevant judgements fits the index", "eval", qrels, passage_run, other, "--index", index)


# Significance.


@pytest.fixture
def systems(tmp_path):
    """Judgements of 12 queries, and runs with the relevant passage at rank 1, at rank 2, and at varying ranks."""
    qrels = tmp_path / "qrels"
    qrels.write_text("".join(f"q{query} 0 d1#p1 1\n" for query in range(12)))
    paths = []
    for name, ranks in (("worse", [2] * 12), ("better", [1] * 11 + [2]), ("mixed", [1, 3] * 6)):
        lines = []
        for query, rank in enumerate(ranks):
            passages = ["d1#p2", "d1#p3"]
            passages.insert(rank - 1, "d1#p1")
            lines += [f"q{query} Q0 {passage} {place} {9 - place} {name}\n" for place, passage in enumerate(passages, start=1)]
        paths.append(tmp_path / f"{name}.run")
        paths[-1].write_text("".join(lines))
    return qrels, paths


@pytest.mark.parametrize("test", ["t", "wilcoxon", "mannwhitney", "randomisation"])
def test_runs_carry_the_letters_of_those_that_they_beat(systems, capsys, test):
    qrels, (worse, better, mixed) = systems
    code, table, _ = run(capsys, "eval", qrels, worse, better, mixed, "--measures", "RR P@1", "--test", test)
    assert code == 0
    head, *rows, note = table.split("\n\n")[0].splitlines()
    assert head.split() == ["run", "RR", "P@1", "queries"]
    cells = [row.split() for row in rows]
    assert [row[0] for row in cells] == ["a", "b", "c"]
    assert [row[1] for row in cells] == [str(worse), str(better), str(mixed)]
    assert cells[0][2:] == ["0.5000", "0.0000", "12"]
    assert cells[1][2] == "0.9583"
    assert "a" in cells[1][3]
    assert f"({test}, holm, p <= 0.05)" in note
    records = [json.loads(line) for line in run(capsys, "eval", qrels, worse, better, mixed, "--test", test, "--json")[1].splitlines()]
    assert str(worse) in records[1]["beats"]["AP"]
    assert records[0]["beats"] == {"nDCG@10": [], "AP": [], "MAP(D)": []}
    assert set(records[0]["p"]["AP"]) == {str(better), str(mixed)}
    assert records[0]["p"]["AP"][str(better)] == records[1]["p"]["AP"][str(worse)] < 0.01


def test_columns_stand_below_each_other(systems, capsys):
    qrels, paths = systems
    lines = (
        run(capsys, "eval", qrels, *paths, "--measures", "RR nDCG@10 P@1", "--test", "t", "--per-query")[1]
        .split("\n\n")[0]
        .splitlines()[:-1]
    )
    end = lines[0].index("nDCG@10") + len("nDCG@10")
    assert all(line[end - 6 : end].replace(".", "").isdigit() and line[end : end + 1] in " " for line in lines[1:])
    assert all(line == line.rstrip() for line in lines)


def test_without_a_test_the_table_is_plain(systems, capsys):
    qrels, paths = systems
    table = run(capsys, "eval", qrels, *paths, "--measures", "RR")[1]
    assert [len(line.split()) for line in table.splitlines()] == [3, 3, 3, 3]


def test_one_run_is_compared_with_nobody(systems, capsys):
    qrels, (worse, _, _) = systems
    code, table, err = run(capsys, "eval", qrels, worse, "--measures", "RR", "--test", "t")
    assert code == 0
    assert [line.split() for line in table.splitlines()] == [["run", "RR", "queries"], [str(worse), "0.5000", "12"]]
    assert err == "warning: --test compares runs, and only one run was given\n"
    # JSON records have the same keys with one run.
    assert json.loads(run(capsys, "eval", qrels, worse, "--measures", "RR", "--test", "t", "--json")[1])["beats"] == {"RR": []}


def test_a_run_is_named_once(systems, capsys, tmp_path):
    qrels, (worse, better, _) = systems
    fails(capsys, f"{worse} is given twice: name each run once", "eval", qrels, worse, better, worse)
    other = f"{tmp_path}/./worse.run"
    fails(capsys, f"{other} is given twice, first as {worse}", "eval", qrels, worse, other)


def test_what_is_empty_is_told(systems, capsys, tmp_path):
    qrels, (worse, _, _) = systems
    fails(capsys, "--measures is empty: give at least one", "eval", qrels, worse, "--measures", "")
    fails(capsys, "--measures is empty: give at least one", "eval", qrels, worse, "--measures", "  ")
    (tmp_path / "empty").write_text("\n\n")
    fails(capsys, "empty: is empty: there is no judgement in it", "eval", tmp_path / "empty", worse)


def test_settings_of_the_comparison_are_checked(systems, capsys):
    qrels, paths = systems
    fails(capsys, "alpha must be between 0 and 1", "eval", qrels, *paths, "--test", "t", "--alpha", "5")
    paths[0].write_text("q1 Q0 d1#p1 1 1 x\n")
    fails(capsys, "evaluate all systems on the same queries", "eval", qrels, *paths, "--test", "t", "--only-run-queries")
    assert run(capsys, "eval", qrels, *paths, "--test", "mannwhitney", "--only-run-queries")[0] == 0


def test_measures_are_listed_with_what_they_take(capsys):
    listed = run(capsys, "measures")[1]
    assert "iP@x " in listed
    assert "gP(beta=1.0,t2i=none)@k " in listed
    assert "(also MAgP" in listed


def test_queries_that_a_run_lacks_are_counted(tmp_path, capsys):
    qrels, one = tmp_path / "qrels.txt", tmp_path / "one.run"
    qrels.write_text("1 0 d1 1\n2 0 d2 1\n3 0 d3 1\n")
    one.write_text("1 Q0 d1 1 2.0 mine\n")
    code, _, err = run(capsys, "eval", qrels, one, "--measures", "nDCG@10")
    assert code == 0
    assert err == f"warning: {one} has no results for 2 of 3 judged queries, which count 0; --only-run-queries leaves them out\n"
    assert run(capsys, "eval", qrels, one, "--measures", "nDCG@10", "--only-run-queries")[2] == ""
