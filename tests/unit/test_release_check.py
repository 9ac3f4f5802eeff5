"""The check of a release finds imports that nothing declares."""

from pathlib import Path

from tests.support.programs import program

CHECK = program("release_check.py")


def test_imports_are_those_of_other_packages():
    text = "import os, numpy.linalg\nfrom lxml import etree\nfrom . import x\nfrom perikope.core import names\n"
    assert sorted(CHECK.imported(text)) == ["lxml", "numpy"]


def test_an_import_that_nothing_declares_is_named():
    known = {"Stemmer": ["PyStemmer"], "requests": ["requests"], "faiss": []}
    sources = {"a.py": "import Stemmer\nimport requests", "b.py": "import faiss"}
    assert CHECK.undeclared(sources, known, {"pystemmer", "faiss-cpu"}) == ["a.py: requests"]


def test_the_package_itself_imports_nothing_undeclared():
    package = Path(__file__).parents[2] / "src" / "perikope"
    sources = {str(path): path.read_text("utf-8") for path in package.rglob("*.py")}
    assert CHECK.undeclared(sources, CHECK.packages_distributions(), CHECK.declared()) == []
