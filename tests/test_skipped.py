"""What the test run says about parts that it leaves out."""

import re

import pytest

from tests import skipped


def test_a_part_whose_package_is_missing_is_named_with_the_remedy(monkeypatch):
    monkeypatch.setattr(skipped, "PARTS", (("no_such_package", "dreams", "pip install dreams"), ("sys", "nothing", "")))
    [reason] = [reason for reason in skipped.left_out() if "dreams" in reason]
    assert reason == "not tested: dreams; no_such_package is not installed (pip install dreams)"
    assert not any("nothing" in reason for reason in skipped.left_out())


@pytest.mark.parametrize("package", [package for package, _, _ in skipped.PARTS])
def test_every_part_has_a_test_that_is_skipped_without_its_package(package):
    """A package that no test asks for would be named although nothing is left out."""
    texts = [path.read_text("utf-8") for path in (skipped.ROOT / "tests").rglob("test_*.py")]
    asked = re.compile(rf'importorskip\(\s*"{package}')
    assert any(asked.search(text) for text in texts)
