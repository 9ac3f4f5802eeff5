"""The command that installs an extra names the checkout that the package came from, if there is one."""

import json
from importlib import metadata

import pytest

from perikope.core import installation


class Recorded:
    def __init__(self, text):
        self.text = text

    def read_text(self, name):
        assert name == "direct_url.json"
        return self.text


@pytest.mark.parametrize("text", [None, "{}", "no json", json.dumps({"url": "https://example.org/perikope.whl"}), json.dumps({"url": 3})])
def test_without_a_checkout_it_is_the_name_of_the_package(text, monkeypatch):
    monkeypatch.setattr(installation, "distribution", lambda name: Recorded(text))
    assert installation.install_command("eval") == "pip install 'perikope[eval]'"


def test_a_package_that_is_not_installed_is_named_too(monkeypatch):
    def missing(name):
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(installation, "distribution", missing)
    assert installation.install_command("neural") == "pip install 'perikope[neural]'"


def test_a_checkout_is_named_with_its_folder(tmp_path, monkeypatch):
    folder = tmp_path / "my checkout"
    folder.mkdir()
    recorded = Recorded(json.dumps({"url": folder.as_uri(), "dir_info": {"editable": True}}))
    monkeypatch.setattr(installation, "distribution", lambda name: recorded)
    assert installation.install_command("eval") == "pip install 'perikope[eval]'"  # it was removed
    (folder / "pyproject.toml").touch()
    assert installation.install_command("eval") == f"pip install '{folder}[eval]'"
