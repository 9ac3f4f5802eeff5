"""The experiment of Gobeill and Ruch 2012, on a collection in the files of CLEF-IP, from one command."""

import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from perikope.build.indexing import BuildOptions, build
from perikope.evaluation.experiment.lexical import notes_on_queries
from perikope.evaluation.experiment.outcome import Outcome
from perikope.evaluation.experiment.plan import load_plan
from perikope.evaluation.experiment.plan_parts import Given
from perikope.evaluation.io.topics import read_topics
from perikope.evaluation.measures.significance import compare
from perikope.evaluation.views import Looking
from perikope.index.reader import Snapshot
from tests.cli.test_commands import run
from tests.support.lookalikes.patents import make_patents
from tests.support.lookalikes.words import translate

NUMBERS = (5, 10, 20, 50, 100, 200, 500, 1000)


class _Server(BaseHTTPRequestHandler):
    """A LibreTranslate server for the made-up words."""

    requests: list[tuple[str, str]]

    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.requests.append((asked["source"], asked["target"]))
        answer = json.dumps({"translatedText": translate(asked["q"], asked["source"], asked["target"])}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *arguments):
        pass


@contextmanager
def translating():
    handler = type("Handler", (_Server,), {"requests": []})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}", handler.requests
    finally:
        server.shutdown()
        server.server_close()


def experiment(capsys, collection, out, *options):
    return run(
        capsys, "experiment", "gobeill2012", "--documents", collection.documents, "--topics", collection.topics,
        "--judgements", collection.judgements, "--training-topics", collection.training_topics,
        "--training-judgements", collection.training_judgements, "--out", out, "--workers", 1, *options,
    )  # fmt: skip


def p_value(sweep):
    compared = compare({system.name: system.values["MRR"] for system in sweep.systems}, test="t", correction="none")
    return compared.p["without the prior", "with the prior"]


def test_the_planted_effect_of_the_position_is_found_with_translated_topics(tmp_path, capsys):
    collection = make_patents(tmp_path / "clef-ip", topics=6, relevant=2, decoys=1, background=0, effect="positions")
    with translating() as (address, requests):
        code, _, err = experiment(capsys, collection, tmp_path / "out", "--translate", address)
    assert code == 0, err
    assert "untranslated" not in err
    assert {source for source, _ in requests} == {"de", "fr"}
    assert {target for _, target in requests} == {"en"}
    outcome = Outcome.load(tmp_path / "out")
    assert [sweep.label for sweep in outcome.sweeps] == [f"{number} documents fetched" for number in NUMBERS]
    for sweep in outcome.sweeps:
        without, with_prior = sweep.systems
        assert with_prior.mean("MRR") > without.mean("MRR")
        # The prior of the run with 10 documents is used with every number of documents.
        assert with_prior.figures == outcome.sweeps[1].systems[1].figures
        assert with_prior.notes == outcome.sweeps[1].systems[1].notes
    assert p_value(outcome.sweeps[1]) < 0.05
    (positions,) = outcome.sweeps[0].systems[1].figures
    relevant, returned = ([share for _, share in series.points] for series in positions.series)
    assert sum(relevant) == pytest.approx(100)
    assert sum(relevant[7:]) > 60 > sum(returned[7:]), "planted: most relevant passages are in the last sections"
    for report in ("report.html", "report.md"):
        assert "Passages by position in the description" in (tmp_path / "out" / report).read_text("utf-8")
    assert "MRR in all sweeps" in (tmp_path / "out" / "report.md").read_text("utf-8"), "Table 1"


def test_topics_that_are_not_translated_are_named(tmp_path):
    collection = make_patents(tmp_path / "clef-ip", topics=5, relevant=1, decoys=1, background=0, effect="positions")
    build(str(tmp_path / "idx"), [str(collection.documents)], BuildOptions(languages=("en",), stemmer="porter"))
    plan = load_plan("gobeill2012", Given(documents=("d",), topics="t", judgements="j"))
    looking, options = Looking(Snapshot.open(tmp_path / "idx"), {}), plan.systems[0].search_options(10, 10)
    notes = notes_on_queries(looking, read_topics(collection.topics), options)
    untranslated = [note for note in notes if "is not searched, and there is no translator" in note]
    for note, language, qid in zip(untranslated, ("de", "fr"), ("PSG-4", "PSG-5"), strict=True):
        assert note.startswith(f"topic {qid}: {language}, the language of the "), notes
        assert "claims" in note.partition(" of the patent")[0], "all parts are in one note"


def test_the_protocol_is_that_of_the_paper():
    plan = load_plan("gobeill2012", Given(documents=("d",), topics="t", judgements="j"))
    assert plan.documents == NUMBERS
    assert plan.measures[0] == "MRR"
    (collection,) = plan.collections.values()
    assert (collection.build.languages, collection.build.stemmer) == (("en",), "porter")
    assert [system.learn_documents for system in plan.systems] == [0, 10]
    for system in plan.systems:
        options = system.search_options(10, 1000)
        assert (options.fetch_words, options.browse_words, options.weighted) == ("all", "all", True)
        assert set(options.fetch_parts) == {"title", "abstract", "claims", "bibliography", "ipc"}
        assert set(options.fetch_from) == {*options.fetch_parts, "description"}
        assert (options.code_filter, options.code_level, options.date_limit, options.family_filter) == (True, "full", False, False)
