"""The page's types are those of the server, and its programs agree with them."""

from __future__ import annotations

import importlib.util
import re
import subprocess
from pathlib import Path

import pytest

from perikope.page import page_files
from tests.page.tools import HERE, TOOLS, missing_tools

FILES = Path(__file__).parents[2] / "src" / "perikope" / "page" / "files"
MOST_SENT = 150_000
"""The most bytes of all files of the page together, compressed."""


def _maker():
    path = Path(__file__).parents[2] / "scripts" / "make_page_types.py"
    specification = importlib.util.spec_from_file_location("make_page_types", path)
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


def test_the_types_are_those_of_the_server():
    maker = _maker()
    assert maker.FILE.read_text("utf-8") == maker.types(), "run python scripts/make_page_types.py"


@pytest.mark.parametrize(
    ("schema", "written"),
    [
        ({"type": "array", "items": {"anyOf": [{"type": "string"}, {"type": "null"}]}}, "(string | null)[]"),
        ({"type": "array", "prefixItems": [{"type": "integer"}, {"type": "number"}]}, "[number, number]"),
        ({"type": "object", "additionalProperties": {"$ref": "#/components/schemas/Hit"}}, "Record<string, Hit>"),
        ({"enum": ["words", "boolean"]}, '"words" | "boolean"'),
        ({}, "any"),
    ],
)
def test_a_schema_becomes_a_type(schema, written):
    assert _maker().typescript(schema) == written


def test_the_programs_agree_with_the_types():
    if reason := missing_tools():
        pytest.skip(reason)
    done = subprocess.run([TOOLS / ".bin" / "tsc", "--project", HERE, "--pretty", "false"], capture_output=True, text=True, check=False)
    assert done.stdout == ""
    assert done.returncode == 0


def test_a_wrong_option_is_found(tmp_path):
    if reason := missing_tools():
        pytest.skip(reason)
    program = tmp_path / "wrong.js"
    program.write_text(f'import {{ Api }} from "{FILES}/api.js";\nawait new Api("demo").ask("search", {{ words: "pump" }});\n', "utf-8")
    configuration = tmp_path / "tsconfig.json"
    configuration.write_text(f'{{"extends": "{HERE}/tsconfig.json", "include": ["wrong.js"]}}', "utf-8")
    done = subprocess.run([TOOLS / ".bin" / "tsc", "--project", tmp_path, "--pretty", "false"], capture_output=True, text=True, check=False)
    assert "'words' does not exist" in done.stdout


@pytest.mark.parametrize("path", sorted(FILES.rglob("*.js")), ids=lambda path: str(path.relative_to(FILES)))
def test_no_program_makes_markup_from_text(path):
    text = re.sub(r"/\*.*?\*/|(?<!:)//[^\n]*", "", path.read_text("utf-8"), flags=re.DOTALL)
    forbidden = r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|srcdoc|createContextualFragment"
    assert re.findall(forbidden, text) == []


def test_the_page_is_small():
    sent = {path: len(file.packed) for path, file in page_files().items() if path != "/"}
    assert sum(sent.values()) < MOST_SENT, sorted(sent.items(), key=lambda item: -item[1])


def test_every_language_has_the_same_texts():
    """The names of groups and texts are the same. `tsc` checks the types of texts, too."""
    found = {
        path.name: sorted(re.findall(r"^ {2,4}(\w+)(?=[:(])", path.read_text("utf-8"), re.MULTILINE))
        for path in (FILES / "texts").glob("*.js")
    }
    assert len(found) >= 2
    assert all(names == found["en.js"] for names in found.values()), found
