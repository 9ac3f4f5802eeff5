import sys
from collections.abc import Iterator
from types import SimpleNamespace
from typing import NamedTuple

import pytest

from perikope.core.errors import InputError, MissingExtra, UsageError
from perikope.evaluation.io.judgements import judgement_form, read_judgements
from perikope.evaluation.io.topics import read_topics
from perikope.query.topic import Topic


class Query(NamedTuple):
    query_id: str
    title: str
    description: str

    def default_text(self) -> str:
        return self.title


class Judgement(NamedTuple):
    query_id: str
    doc_id: str
    relevance: int
    iteration: str = "0"


class Dataset:
    """As much of a data set of ir_datasets as is used."""

    def __init__(self, broken: bool = False) -> None:
        self.broken = broken

    def has_queries(self) -> bool:
        return True

    def has_qrels(self) -> bool:
        return True

    def queries_iter(self) -> Iterator[Query]:
        yield Query("1", "steam\n organ", "who plays it")
        if self.broken:
            raise RuntimeError("All download sources failed", [])

    def qrels_iter(self) -> Iterator[Judgement]:
        yield Judgement("1", "d 1", 2)


class Empty(Dataset):
    def has_queries(self) -> bool:
        return False

    def has_qrels(self) -> bool:
        return False


@pytest.fixture
def datasets(monkeypatch: pytest.MonkeyPatch) -> None:
    known = {"toy/test": Dataset(), "toy": Empty(), "offline": Dataset(broken=True)}
    monkeypatch.setitem(sys.modules, "ir_datasets", SimpleNamespace(load=known.__getitem__))


@pytest.mark.usefixtures("datasets")
def test_queries_and_judgements_of_a_data_set() -> None:
    assert read_topics("irds:toy/test") == [Topic("1", "steam organ")]
    assert read_topics("irds:toy/test", field="title,description") == [Topic("1", "steam organ who plays it")]
    assert judgement_form("irds:toy/test") == "trec"
    assert read_judgements("irds:toy/test") == {"1": {"d%201": 2}}


@pytest.mark.usefixtures("datasets")
def test_mistakes_are_said() -> None:
    with pytest.raises(UsageError, match="ir_datasets has no data set 'tou'"):
        read_topics("irds:tou")
    with pytest.raises(UsageError, match="has no queries; name one of its parts"):
        read_topics("irds:toy")
    with pytest.raises(UsageError, match="has no qrels"):
        read_judgements("irds:toy")
    with pytest.raises(InputError, match="irds:offline: ir_datasets cannot read the data set: All download sources failed"):
        read_topics("irds:offline")
    with pytest.raises(InputError, match="topic '1' has no field 'narrative'; choose from its fields: title, description"):
        read_topics("irds:toy/test", field="narrative")


def test_the_package_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ir_datasets", None)
    for read in (read_topics, read_judgements):
        with pytest.raises(MissingExtra, match=r"this needs ir_datasets, which is not installed: pip install '.*\[irds\]'"):
            read("irds:toy/test")
