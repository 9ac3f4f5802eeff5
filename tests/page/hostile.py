"""Documents that attack the page: every text that a document can have tries to run a program, load a file or mislead.

An attack that works calls `window.attacked`, asks for a file at `evil.example`, or changes the look of the page.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from perikope import Index
from perikope.build.indexing import BuildOptions, build

SCRIPT = "<script>window.attacked=1</script>"
IMAGE = '<img src="https://evil.example/x" onerror="window.attacked=1">'
STYLE = "<style>body{display:none!important}</style>"
LINK = "javascript:window.attacked=1"
BACKWARDS = "\u202egnp.exe\u202c"
"""Reads as `exe.png` where the direction of text is followed."""
MARKS = "\u2066\u200b\u00ad\ufeff\u0007"
WORD = "pneumonoultra" * 60
"""A word without a place to break it."""
FORMULA = '=HYPERLINK("https://evil.example/","click")'
ATTACKS = (SCRIPT, IMAGE, STYLE, LINK, BACKWARDS, MARKS, FORMULA, "</script><script>window.attacked=1</script>", "{{7*7}}${7*7}")

DOCUMENTS: list[Mapping[str, Any]] = [
    {
        "id": f"a/../b?c=d&e#{number} \"'<b>",
        "title": f"Pump {attack}",
        "passages": [f"The pump says {attack} to the coupling.", f"{attack}", f"A pump {WORD}"],
        "metadata": {"year": "2011", "author": attack, "url": LINK, "source": "https://evil.example/" + attack, "family": FORMULA},
    }
    for number, attack in enumerate(ATTACKS)
]

MARKDOWN = f"""# Pump {SCRIPT}

A pump with {IMAGE} and [a link]({LINK}), [another](data:text/html,{SCRIPT}) and [a good one](https://example.org/).

| pump {BACKWARDS} | {FORMULA} |
|---|---|
| {SCRIPT} | {STYLE} |

```html
{SCRIPT}{STYLE}
```
"""

HTML = f"""<!doctype html><title>Pump {IMAGE}</title><base href="https://evil.example/">
<h1 onclick="window.attacked=1">Pump</h1><p style="position:fixed;inset:0;background:red">A pump <a href="{LINK}">here</a>
{SCRIPT}{STYLE}<svg onload="window.attacked=1"></svg><iframe src="https://evil.example/"></iframe>
<form action="https://evil.example/"><input name="token"><button>Search</button></form></p>
"""


def write_hostile(index: Path, files: Path) -> None:
    """Write the documents into an index: some through the API, and some as files in the folder `files`."""
    files.mkdir(parents=True)
    (files / "notes.md").write_text(MARKDOWN, "utf-8")
    (files / "page.html").write_text(HTML, "utf-8")
    (files / "pump <img src=x onerror=attacked()>.txt").write_text(f"A pump.\n\n{SCRIPT} pump", "utf-8")
    build(str(index), [str(files)], BuildOptions())
    with Index.open(index) as opened:
        opened.add(DOCUMENTS)
