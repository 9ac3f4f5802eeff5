"""The notebooks run from their first cell to their last, and are stored without outputs."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.documentation.blocks import ROOT
from tests.documentation.notebooks import NEEDS, NOTEBOOKS, cells_of, show


def test_all_notebooks_are_found():
    assert len(NOTEBOOKS) >= 6
    assert {*NEEDS} <= {notebook.stem for notebook in NOTEBOOKS}


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda notebook: notebook.stem)
def test_a_notebook_runs(notebook: Path, tmp_path: Path):
    if notebook.stem in NEEDS:
        pytest.importorskip(NEEDS[notebook.stem])
    environment = os.environ | {"PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]), "TMPDIR": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-m", "tests.documentation.notebooks", str(notebook)],
        cwd=ROOT, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, f"{done.stdout[-2000:]}\n{done.stderr[-3000:]}"
    assert done.stdout


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda notebook: notebook.stem)
def test_a_notebook_is_stored_without_outputs_and_in_one_form(notebook: Path):
    for cell in cells_of(notebook):
        assert cell.get("outputs", []) == []
        assert cell.get("execution_count") is None
    content = json.loads(notebook.read_text("utf-8"))
    assert notebook.read_text("utf-8") == json.dumps(content, indent=1, ensure_ascii=False, sort_keys=True) + "\n"


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda notebook: notebook.stem)
def test_a_kernel_runs_a_notebook(notebook: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """What the plain run above cannot show: that a kernel of Jupyter takes the file."""
    if notebook.stem in NEEDS:
        pytest.importorskip(NEEDS[notebook.stem])
    nbformat, nbclient = pytest.importorskip("nbformat"), pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    monkeypatch.setenv("PATH", os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]))
    content = nbformat.read(notebook, as_version=4)
    nbformat.validate(content)
    nbclient.NotebookClient(content, timeout=600, kernel_name="python3", resources={"metadata": {"path": str(tmp_path)}}).execute()


def test_a_value_with_html_is_shown_as_html(capsys: pytest.CaptureFixture[str]):
    class Table:
        def _repr_html_(self) -> str:
            return "<table></table>"

    show(Table())
    show(3)
    show(None)
    assert capsys.readouterr().out == "<table></table>\n3\n"
