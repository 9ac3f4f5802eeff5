import inspect
import warnings

import pytest

from perikope.browse.models import parse_model
from perikope.core.errors import InputError, PerikopeError, UsageError
from perikope.fetch.expansion import canonical
from perikope.fetch.models import parse_fetch_model
from perikope.search.facade import Index
from perikope.search.options import RECIPE, SearchOptions, options_on
from perikope.search.recipes import PER_QUERY, RecipeWarning, load_recipe, parse_recipe, recipe_names
from tests.support.collections import index_of, plain_document

DOCUMENTS = [
    plain_document(*texts, part="abstract")
    for texts in (
        ("d1", "Pumps", "A magnet drives the rotor of the pump.", "The seal keeps the fluid inside.", "Rotor and magnet."),
        ("d2", "Valves", "The valve opens.", "A magnet closes the valve when the pump stops."),
        ("d3", "Rotors", "Nothing of interest here.", "Pumps have rotors."),
    )
]


@pytest.fixture(scope="module")
def porter():
    return index_of(DOCUMENTS, stemmer="porter")


@pytest.fixture(params=recipe_names())
def recipe(request):
    return load_recipe(request.param)


def test_the_papers_and_hybrid_are_there():
    assert recipe_names() == ["albarede2021", "beigbeder2015", "carmel2013", "gobeill2012", "hybrid"]


def test_every_option_is_one_of_search():
    known = set(inspect.signature(Index.search).parameters)
    # A page belongs to one request, not to a recipe or a topic.
    assert {*options_on(RECIPE), *PER_QUERY, "offset"} == known - {"self", "query", "recipe", "options"}


def test_every_value_can_be_used_and_says_where_it_comes_from(recipe):
    assert recipe.title
    assert recipe.paper
    parse_fetch_model(recipe.options["fetch"])
    for model in (recipe.options["model"], *recipe.models.values()):
        parse_model(model)
    for option in ("expand", "browse_expand"):
        assert canonical(recipe.options.get(option, "bo1"))
    assert set(recipe.sources) == {*recipe.options, *recipe.expects, *recipe.models}
    assert all(source.startswith(("published: ", "decided: ")) for source in recipe.sources.values())


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("carmel2013", {"fetch": "bm25(k1=0.6,b=0.2)", "documents": 1500, "k": 1000}),
        ("beigbeder2015", {"syntax": "automatic", "no_overlap": True, "group_by_document": "fetch", "elements": True}),
        ("gobeill2012", {"fetch": "pl2(c=1)", "documents": 10, "language": "en", "browse_expand": "bo1(documents=3,terms=10)"}),
        ("albarede2021", {"documents": 1000, "k": 1500, "code_level": "full", "date_limit": False, "family_filter": False}),
    ],
)
def test_the_published_values(name, values):
    options = load_recipe(name).options
    assert {key: options[key] for key in values} == values


def found(results):
    return results.names()


def test_a_recipe_is_its_options(recipe):
    if parse_model(recipe.options["model"]).definition.needs_store:
        pytest.skip("its store is made in the tests of neural models")
    analysis = {"stemmer": "snowball", "stopwords": "default", **recipe.expects}
    index = index_of(DOCUMENTS, **analysis)
    with warnings.catch_warnings(action="error", category=RecipeWarning):
        by_name = index.search("magnet rotor", recipe=recipe.name)
    assert found(by_name) == found(index.search("magnet rotor", options=SearchOptions.of(dict(recipe.options))))
    assert len(by_name)
    name = by_name.names()[0][0]
    assert index.explain("magnet rotor", name, recipe=recipe).value == by_name.ranking.scores[0]


def test_what_is_given_goes_before_the_recipe_even_where_it_is_the_default(porter):
    results = porter.search("magnet rotor", recipe="albarede2021", k=10, model="best", fetch="bm25", documents=1000)
    assert found(results) == found(porter.search("magnet rotor"))
    assert len(porter.search("magnet rotor", recipe="albarede2021", k=1)) == 1


def test_another_analysis_is_a_warning(porter):
    with pytest.warns(RecipeWarning) as caught:
        porter.search("rotor", recipe="beigbeder2015")
    assert [str(warning.message) for warning in caught] == [
        "recipe beigbeder2015 expects --stemmer none, the index was made with porter: results will differ",
        "recipe beigbeder2015 expects --stopwords none, the index was made with default: results will differ",
    ]
    assert load_recipe("gobeill2012").complaints({"stemmer": "porter", "stopwords": ["the"]}) == [
        "recipe gobeill2012 expects --stopwords default, the index was made with a list of words: results will differ"
    ]


def test_a_filter_that_could_apply_is_missed():
    recipe, settings = load_recipe("gobeill2012"), {"stemmer": "porter", "stopwords": "default"}
    assert recipe.complaints(settings) == []
    assert "expects --shares-codes-with DOCUMENT" in recipe.complaints(settings, has_codes=True)[0]
    assert recipe.complaints(settings, ["shares_codes_with"], has_codes=True) == []


def test_a_recipe_of_ones_own(porter, tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text('[search]\nmodel = "bm25"\nk = 2\nelements = false\nrescore_weight = 1\nfetch_parts = {}\n', "utf-8")
    results = porter.search("magnet rotor", recipe=str(path))
    assert found(results) == found(porter.search("magnet rotor", model="bm25", k=2))
    assert load_recipe(str(path)).name == "mine"


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("[serach]\n", "mine.toml: unknown key of a recipe 'serach'; did you mean 'search'?"),
        ("[search]\nmodle = 'bm25'\n", "mine.toml: unknown key in [search] 'modle'; did you mean 'model'?"),
        ("[search]\nquery = 'pump'\n", "unknown key in [search] 'query'"),
        ("[search]\n[expects]\nformat = 'en'\n", "unknown key in [expects] 'format'"),
        ("[search]\n[sources]\nsigma = 'x'\n", "unknown key in [sources] 'sigma'"),
        ("[search]\nk = '10'\n", "[search] k must be a whole number, not text"),
        ("[search]\nk = true\n", "[search] k must be a whole number, not true or false"),
        ("[search]\npart = [1]\n", "[search] part must be text or a list of texts"),
        ("[search]\npart = ''\n", "[search] part is empty; give a name or leave it out"),
        ("[search]\ntag = ['p', ' ']\n", "[search] tag is empty; give a name or leave it out"),
        ("[search]\nfilter = 'year'\n", "[search] filter is wrong: cannot read 'year': expected ="),
        ("[search]\n[models]\na = 1\n", "[models] a must be text"),
        ("search = 1\n", "search must be a table: write [search]"),
        ("title = 'x'\n", "has no table [search]"),
        ("title = 1\n[search]\n", "title must be text"),
        ("[search\n", "is not TOML"),
    ],
)
def test_mistakes_in_a_file_are_named(text, complaint):
    with pytest.raises(PerikopeError) as error:
        parse_recipe("mine", text, "mine.toml")
    assert complaint in str(error.value)


def test_names_and_files_that_are_not_there(porter, tmp_path):
    with pytest.raises(UsageError, match="unknown recipe 'carmel'; did you mean 'carmel2013'"):
        porter.search("rotor", recipe="carmel")
    with pytest.raises(InputError, match="cannot read the recipe"):
        load_recipe(str(tmp_path / "none.toml"))
    (tmp_path / "latin.toml").write_bytes(b"title = '\xe9'")
    with pytest.raises(InputError, match="is not UTF-8"):
        load_recipe(str(tmp_path / "latin.toml"))
