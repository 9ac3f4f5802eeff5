"""An index may have a default model of its own."""

import json

import pytest

from perikope.core.errors import PerikopeError, UsageError
from perikope.search.own_default import own_default, remove_own_default, save_own_default


def test_an_index_has_no_default_at_first(tmp_path):
    assert own_default(tmp_path) is None


def test_a_saved_default_is_read_again(tmp_path):
    save_own_default(tmp_path, "coverage(b=0.25)", {"gain": 0.03})
    saved = own_default(tmp_path)
    assert "b=0.25" in saved.model
    assert saved.facts == {"gain": 0.03}


def test_an_unknown_model_is_not_saved(tmp_path):
    with pytest.raises(UsageError, match="nonsense"):
        save_own_default(tmp_path, "nonsense", {})
    assert own_default(tmp_path) is None


@pytest.mark.parametrize("values", [{}, {"model": 3}, {"model": "nonsense"}, {"model": "coverage", "facts": []}])
def test_a_damaged_default_is_one_clear_error(tmp_path, values):
    path = save_own_default(tmp_path, "coverage", {})
    content = json.loads(path.read_text())
    content.pop("checksum", None)
    path.write_text(json.dumps(content | {"values": values}))
    with pytest.raises(PerikopeError, match="cannot be used"):
        own_default(tmp_path)


def test_a_default_is_removed_even_if_it_is_damaged(tmp_path):
    assert remove_own_default(tmp_path) is False
    save_own_default(tmp_path, "coverage", {}).write_text("damaged")
    assert remove_own_default(tmp_path) is True
    assert own_default(tmp_path) is None
