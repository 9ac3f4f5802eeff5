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
    with pytest.raises(UsageError, match="there is already a thing 'one'; choose another name"):
        registry.add("one", 2)


def made(source, module, **names):
    """A function that a module, or a cell of a notebook, defines."""
    names["__name__"] = module
    exec(source, names)
    return names["one"]


def test_a_function_that_is_defined_again_replaces_itself(registry):
    first, second = (made(f"def one(): return {value}", "__main__") for value in (1, 2))
    version = registry.version
    registry.add("one", first)
    registry.add("one", second)
    assert registry["one"]() == 2
    assert registry.version == version + 2, "caches of parsed names become invalid"


@pytest.mark.parametrize("source", ["def one(): return 1", "def other(): return 1\none = other"])
def test_an_entry_of_another_module_is_protected(registry, source):
    registry.add("one", made("def one(): return 2", "perikope.packaged" if "other" not in source else "__main__"))
    with pytest.raises(UsageError, match=r"there is already a thing 'one', registered by \S+; choose another name"):
        registry.add("one", made(source, "__main__"))
    assert registry["one"]() == 2


def test_a_name_of_a_packaged_entry_is_taken_before_it_is_loaded(monkeypatch):
    """A model that a notebook defines first must not stop the packaged ones from loading."""
    registry = Registry("thing", "late_package")
    late = types.ModuleType("late_package")
    monkeypatch.setitem(sys.modules, "late_package", late)
    monkeypatch.setattr("perikope.core.registry._entry_points", lambda group: [Loading(registry)])
    with pytest.raises(UsageError, match=r"registered by perikope\.packaged"):
        registry.add("one", made("def one(): return 1", "__main__"))
    assert registry["one"]() == 2


class Loading:
    def __init__(self, registry):
        self.registry = registry

    def load(self):
        self.registry.add("one", made("def one(): return 2", "perikope.packaged"))


def test_an_unknown_name_lists_the_valid_ones(registry):
    registry.add("alpha", 1)
    registry.add("beta", 2)
    with pytest.raises(UsageError, match="unknown thing 'alpa'; did you mean 'alpha'\\? valid: alpha, beta"):
        registry["alpa"]


def test_nothing_is_imported_before_the_first_look_up():
    registry = Registry("thing", "no_such_package_anywhere")
    with pytest.raises(ModuleNotFoundError):
        registry.names()
