"""Judgements of files, in the names that rankings of an index have."""

import pytest

import perikope as pk
from perikope.browse.tags import Selection, learn_tags
from perikope.cli import main
from perikope.core.errors import InputError
from perikope.core.names import passage_name
from perikope.evaluation.io.fitting import fit_judgements, relevant_tokens
from perikope.index.reader import Snapshot
from perikope.text.analysis import word_spans

PAGE = (
    "<article><header><title>Satie</title><id>{id}</id></header><bdy>"
    "<sec><st>Life</st><p>He was  a <b>pianist</b> and a composer.</p><p>He lived in Arcueil.</p></sec>"
    "<sec><st>Works</st><p>Gymnopedies for <it>piano</it>.</p></sec></bdy></article>"
)
TEXT = "Satie{id}LifeHe was  a pianist and a composer.He lived in Arcueil.WorksGymnopedies for piano."
"""The text nodes of a page, joined, as INEX counts them."""


def perikope(*arguments):
    """The exit code of a command."""
    with pytest.raises(SystemExit) as ended:
        main([str(argument) for argument in arguments])
    return ended.value.code


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    folder = tmp_path_factory.mktemp("fitting")
    (folder / "pages").mkdir()
    for id in (77, 78):
        (folder / "pages" / f"{id}.xml").write_text(PAGE.format(id=id), "utf-8")
    assert perikope("index", folder / "pages", "--to", folder / "index") == 0
    return Snapshot.open(folder / "index")


def words(snapshot, document, ranges):
    segment, local = snapshot.locate(document)
    text = segment.text(local)
    starts, ends = word_spans(text)
    return [text[starts[token] : ends[token]] for first, end in ranges for token in range(first, end)]


def passages(snapshot, id):
    """The names of a page's passages by their first words."""
    found = {}
    for hit in pk.Index.open(snapshot.folder).search("he was in arcueil gymnopedies piano", k=20, filter=f"id={id}"):
        found[" ".join(hit.text.split()[:2])] = passage_name(hit.document, hit.passage)
    return found


def written(tmp_path, *lines):
    path = tmp_path / "qrels"
    path.write_text("".join(f"{line}\n" for line in lines), "utf-8")
    return path


def judged(text, id=77, qid="1"):
    """A line of INEX judgements: the characters of `text` in a page are relevant."""
    whole = TEXT.format(id=id)
    start = whole.index(text)
    return f"{qid} Q0 {id} {len(text)} {len(whole)} {start} {start}:{len(text)}"


def test_an_xpath_stands_for_its_passages(index, tmp_path):
    fitted = fit_judgements(written(tmp_path, "1 Q0 77 /article/bdy/sec[1] 1", "1 Q0 77 /article/bdy/sec[2]/p/it 2"), index)
    of_77 = passages(index, 77)
    assert fitted.names == {"1": {of_77["He was"]: 1, of_77["He lived"]: 1, of_77["Gymnopedies for"]: 2}}
    assert fitted.warning == ""


def test_characters_stand_for_the_passages_that_contain_them(index, tmp_path):
    fitted = fit_judgements(written(tmp_path, judged("composer.He")), index)
    of_77 = passages(index, 77)
    assert fitted.names == {"1": {of_77["He was"]: 1, of_77["He lived"]: 1}}


def test_a_document_without_relevant_characters_adds_no_passage(index, tmp_path):
    line = f"1 Q0 77 0 {len(TEXT.format(id=77))} -1"
    fitted = fit_judgements(written(tmp_path, line, judged("Arcueil", 78)), index)
    assert fitted.names == {"1": {passages(index, 78)["He lived"]: 1}}


def test_relevant_characters_are_tokens(index, tmp_path):
    tokens = relevant_tokens(written(tmp_path, judged("pianist and"), judged("piano", 78, "2")), index)
    number = {id: index.find_document(str(id)) for id in (77, 78)}
    assert {qid: [words(index, document, ranges) for document, ranges in found.items()] for qid, found in tokens.items()} == {
        "1": [["pianist", "and"]],
        "2": [["piano"]],
    }
    assert [set(tokens[qid]) for qid in "12"] == [{number[77]}, {number[78]}]


def test_spans_of_passages_are_tokens(index, tmp_path):
    name = passages(index, 77)["He lived"]
    path = written(tmp_path, f"1 {name} 3 8", f"1 {name} 12 19")
    (ranges,) = relevant_tokens(path, index)["1"].values()
    assert words(index, index.find_document("77"), ranges) == ["lived", "Arcueil"]
    assert fit_judgements(path, index).names == {"1": {name: 1}}


def test_files_that_judge_whole_passages_have_no_relevant_tokens(index, tmp_path):
    assert relevant_tokens(written(tmp_path, "1 Q0 77 /article/bdy/sec[1] 1"), index) is None


def test_tags_are_learned_from_the_relevant_characters_alone(index, tmp_path):
    """A range of one word in `b` gives `b` a larger weight than the whole document does."""
    selection, weights = Selection(occurrences=1, coverage=0), []
    for text in ("pianist", TEXT.format(id=77)):
        path = written(tmp_path, judged(text))
        names, tokens = fit_judgements(path, index).names, relevant_tokens(path, index)
        weights.append(learn_tags(index, names, tokens=tokens, selection=selection).table.weights["b"])
    assert weights[0] > 3 * weights[1]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("1 Q0 99 /article/bdy/sec[1]/p[1] 1", "line 2: the index has no document '99'"),
        ("1 Q0 78 /article/bdy/sec[9] 1", "line 2: document '78' has no passage at /article[1]/bdy[1]/sec[9]"),
    ],
)
def test_judgements_that_do_not_fit_are_counted_with_their_line(index, tmp_path, line, reason):
    fitted = fit_judgements(written(tmp_path, "1 Q0 77 /article/bdy/sec[2]/p 1", line), index)
    assert fitted.warning.endswith(f"1 of 2 relevant judgements do not fit the index and count as not found, such as {reason}")
    assert len(fitted.names["1"]) == 2  # the one that does not fit counts as not found


def test_characters_beyond_the_end_do_not_fit(index, tmp_path):
    fitted = fit_judgements(written(tmp_path, judged("Arcueil"), "1 Q0 78 10 9000 8000 8000:10"), index)
    assert "line 2: the text ends at character 8,010, but the file of 78 has" in fitted.warning
    name = passages(index, 77)["He lived"]
    fitted = fit_judgements(written(tmp_path, f"1 {name} 3 8", f"1 {name} 3 80"), index)
    assert f"line 2: the span ends at character 80, but {name} has 20 characters" in fitted.warning


def test_judgements_of_which_none_fits_are_an_error(index, tmp_path):
    path = written(tmp_path, "1 Q0 98 /article/bdy/sec[1] 1", "2 Q0 99 /article/bdy/sec[1] 1", "2 Q0 77 /article/bdy/sec[1] 0")
    with pytest.raises(InputError, match=r"none of the 2 relevant judgements fits the index, such as line 1: .* '98'"):
        fit_judgements(path, index)
    with pytest.raises(InputError, match="is empty"):
        fit_judgements(written(tmp_path), index)


@pytest.mark.parametrize("command", ["tune", "learn prior", "learn fusion", "learn tags"])
def test_commands_refuse_judgements_that_do_not_fit(index, tmp_path, capsys, command):
    topics = tmp_path / "topics.tsv"
    topics.write_text("1\tpianist\n", "utf-8")
    path = written(tmp_path, "1 Q0 99 /article/bdy/sec[1]/p[1] 1")
    name = [] if command == "tune" else ["--name", "learned"]
    assert perikope(*command.split(), index.folder, topics, path, *name) == 2
    assert "none of the 1 relevant judgements fits the index" in capsys.readouterr().err
