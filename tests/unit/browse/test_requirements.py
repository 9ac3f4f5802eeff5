"""Models warn, or raise, if the index lacks the titles, sections, parts or tags that they need."""

import warnings

import pytest

from perikope import cli
from perikope.core.errors import ModelWarning, UsageError
from perikope.document.tree import TreeBuilder
from perikope.index.saved_tables import write_table
from perikope.search.facade import Index
from tests.support.collections import index_of, plain_document, structured_document

TEN = "[1,2,3,4,5,6,7,8,9,10]"


@pytest.fixture(scope="module")
def bare():
    builder = TreeBuilder("d1")
    builder.passage("A magnet drives the rotor.", tag="para")
    return index_of([builder.build()])


@pytest.fixture(scope="module")
def structured():
    index = index_of([structured_document(), plain_document("d2", "", "A rotor.")], [1])
    write_table(index.folder, "mine", "tags", {"tags": {"b": 2}, "logical": ["sec"]})
    return index


TITLES = "no document or section of the index has a title, so titles do not change the ranking"
CASES = {
    "qsf_section": f"qsf_section: {TITLES}",
    "qsf_section_propagate": "qsf_section_propagate: no document of the index has sections, so each document counts as one section",
    "qsf_passage_propagate": TITLES,
    "qsf_v_title(alpha=0.5)": f"qsf_v_title: {TITLES}",
    "fuse(models=[bm25,qsf_v_title])": f"qsf_v_title: {TITLES}",
    "prox(titles=true)": f"prox: {TITLES}",
    "prox_h": "prox_h: no tag that has a weight occurs in the index, so all words have weight 1",
    "prox_hw": "prox_hw: no tag that has a weight",
    "prox(logical=beigbeder2015)": "prox: no logical tag occurs in the index",
    f"position_prior(weights={TEN})": "position_prior: no part of the index is named description",
    f"position_prior(weights={TEN},base=position_prior(base=prox(titles=true)))": f"prox: {TITLES}",
}


@pytest.mark.parametrize("model", CASES)
def test_what_is_lacking_is_said_and_the_search_done(bare, model):
    with pytest.warns(ModelWarning, match=CASES[model]) as caught:
        assert len(bare.search("rotor", model=model)) == 1
    assert {warning.filename for warning in caught} == {__file__}


def test_rescoring_says_it_too(bare):
    with pytest.warns(ModelWarning, match="prox: no document"):
        bare.search("rotor", model="bm25", rescore="prox(titles=true)")


NAMED = {
    "prox_h(weights=tags(chapter=2))": "unknown tag 'chapter'; valid: b, ",
    "prox_hw(weights=tags(chapter=2,part=3))": "unknown tag 'chapter'; valid: b, ",
    "prox(logical=[seq])": "unknown tag of elements 'seq'; did you mean 'sec'? valid: ",
    "prox(logical=[b])": "unknown tag of elements 'b'",  # a mark is not an element
    "prox(logical=chapter)": "unknown table of tags 'chapter'",
    "fuse(models=[bm25,prox(logical=[seq])])": "unknown tag of elements 'seq'",
}


@pytest.mark.parametrize("model", NAMED)
def test_tags_that_were_named_must_be_there(structured, model):
    with pytest.raises(UsageError) as error:
        structured.search("rotor", model=model)
    assert NAMED[model] in str(error.value)


def test_of_several_tags_the_missing_ones_are_said(structured):
    with pytest.warns(ModelWarning, match="prox_h: no element of the index is a <it> or <h>, so its weight has no effect"):
        structured.search("rotor", model="prox_h(weights=tags(b=2,it=3,h=4))")
    with pytest.warns(ModelWarning, match="prox: no element of the index is a <list>, so it bounds no influence"):
        structured.search("rotor", model="prox(logical=[sec,list])")


@pytest.mark.parametrize(
    "model",
    [
        "qsf_section", "qsf_section_propagate", "qsf_passage_propagate", "prox_h(weights=tags(b=2))", 'prox_h(weights="mine")', "bm25",
        f"position_prior(weights={TEN})", "prox(titles=true,logical=[sec])", "prox(logical=sec)", "prox(logical=mine)", "learned",
    ],
)  # fmt: skip
def test_nothing_is_said_where_it_is_there(structured, model):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        structured.search("rotor", model=model)


def test_who_chose_no_model_hears_nothing(bare, tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(bare.search("rotor")) == 1
        assert len(bare.search("rotor", model="position_prior")) == 1
        assert len(Index.create(tmp_path / "empty").search("rotor", model="qsf_section")) == 0


def test_on_the_command_line_it_is_one_line(bare, capsys, monkeypatch):
    monkeypatch.setattr(warnings, "showwarning", warnings.showwarning)
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        with pytest.raises(SystemExit) as done:
            cli.main(["search", str(bare.folder), "rotor", "--model", "prox_h"])
    captured = capsys.readouterr()
    assert done.value.code == 0
    assert "d1#@1" in captured.out
    assert captured.err == "perikope: warning: prox_h: no tag that has a weight occurs in the index, so all words have weight 1\n"
