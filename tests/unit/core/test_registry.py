import sys
import types

import pytest

from perikope.core.errors import UsageError
from perikope.core.registry import Registry


@pytest.fixture
def registry(monkeypatch):
    monkeypatch.setitem(sys.modules, "empty_package", types.ModuleType("empty_package"))
    return Registry("thing", "empty_package")


def test_a_thing_is_found_by_its_name(registry):
    registry.add("one", 1)
    assert registry["one"] == 1
    assert "one" in registry
    assert list(registry.items()) == [("one", 1)]


def test_a_name_can_be_taken_once(registry):
    registry.add("one", 1)
    with pytest.raises(ValueError, match="registered twice"):
        registry.add("one", 2)


def test_an_unknown_name_lists_the_valid_ones(registry):
    registry.add("alpha", 1)
    registry.add("beta", 2)
    with pytest.raises(UsageError, match="unknown thing 'alpa'; did you mean 'alpha'\\? valid: alpha, beta"):
        registry["alpa"]


def test_nothing_is_imported_before_the_first_look_up():
    registry = Registry("thing", "no_such_package_anywhere")
    with pytest.raises(ModuleNotFoundError):
        registry.names()
