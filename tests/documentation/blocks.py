"""The fenced blocks of a Markdown page, and what the words behind the fence say about them.

The first word is the language. `sh` and `python` blocks are run in the order of the page, in one folder per page, and
python blocks of a page share their names. Other languages are parsed if there is a parser. Further words are needs:

    checkout    commands that begin with make; they need the files of the repository
    install     pip install, from the repository
    neural      needs the extra of that name; so do langchain, llamaindex, haystack, pyterrier, mcp and frames
    curl        needs the program of that name
    slow        takes more than some seconds
    background  a command that runs until the end of the page, such as a server
    excerpt     a part of a program, which is parsed and not run
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
LANGUAGES = frozenset({"sh", "python", "text", "json", "toml", "xml"})
EXTRAS = {
    "neural": "torch", "langchain": "langchain_core", "llamaindex": "llama_index", "haystack": "haystack", "pyterrier": "pyterrier",
    "mcp": "mcp", "frames": "pyarrow",
}  # fmt: skip
"""Extras that blocks may need, each with a package by which one sees that the extra is installed."""
PROGRAMS = frozenset({"curl"})
"""Programs that blocks may need and that a machine may lack."""
NEEDS = frozenset({"checkout", "install", "slow", "background", "excerpt", *EXTRAS, *PROGRAMS})

_BLOCK = re.compile(r"^( *)```(?P<words>[^\n`]*)\n(?P<text>.*?)^\1```$", re.S | re.M)


@dataclass(frozen=True)
class Block:
    """A fenced block."""

    page: str
    line: int
    language: str
    needs: frozenset[str]
    text: str

    @property
    def place(self) -> str:
        """Where the block is, for messages."""
        return f"{self.page}:{self.line}"

    @property
    def is_run(self) -> bool:
        """Whether the block is run, not only parsed."""
        return self.language in ("sh", "python") and "excerpt" not in self.needs

    @property
    def commands(self) -> list[str]:
        """The commands of a shell block, without comments; a backslash continues a line."""
        joined = re.sub(r"\\\n\s*", "", self.text)
        return [command for line in joined.split("\n") if (command := re.sub(r"(^|\s)#.*$", "", line).strip())]


def blocks_in(text: str, page: str = "") -> list[Block]:
    """All fenced blocks of a page, in order."""
    found = []
    for match in _BLOCK.finditer(text):
        language, *needs = match["words"].split() or [""]
        found.append(Block(page, text.count("\n", 0, match.start()) + 1, language, frozenset(needs), match["text"]))
    return found


def blocks_of(path: Path) -> list[Block]:
    """All fenced blocks of a file."""
    return blocks_in(path.read_text("utf-8"), path.relative_to(ROOT).as_posix())
