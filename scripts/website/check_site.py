"""Check a built site: every link leads to a file and an anchor of the site, and nothing is loaded from elsewhere.

python scripts/website/check_site.py build/site
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import unquote, urlsplit

from lxml import html

_OF_HEAD = "//link[not(contains('search next prev canonical', @rel))]/@href"
LOADED = f"{_OF_HEAD} | //script/@src | //img/@src | //source/@srcset"
"""What a browser asks for when it shows a page."""


@dataclass
class Findings:
    """What a check of a site has counted, and what is wrong with it."""

    pages: int = 0
    links: int = 0
    anchors: int = 0
    outside: set[str] = field(default_factory=set)
    """Addresses of other sites that pages link to."""
    problems: list[str] = field(default_factory=list)


def check(site: Path) -> Findings:
    """Follow all links of a site that lead to the site itself."""
    findings = Findings()
    pages = {path: html.parse(path) for path in sorted(site.rglob("*.html"))}
    names = {path: {*tree.xpath("//@id"), *tree.xpath("//a/@name")} for path, tree in pages.items()}
    for path, tree in pages.items():
        findings.pages += 1
        here = path.relative_to(site)
        findings.problems += [f"{here}: loads {address}" for address in tree.xpath(LOADED) if urlsplit(address).netloc]
        for address in (*tree.xpath("//a/@href"), *tree.xpath(LOADED)):
            parts = urlsplit(address)
            if parts.scheme or parts.netloc:
                findings.outside.add(address)
                continue
            findings.links += 1
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            target = target / "index.html" if target.is_dir() else target
            if not target.is_file():
                findings.problems.append(f"{here}: no file {address}")
            elif parts.fragment and target in names:
                findings.anchors += 1
                if unquote(parts.fragment) not in names[target]:
                    findings.problems.append(f"{here}: no anchor {address}")
    return findings


def main() -> int:
    """Print what the check found; the exit status is 1 if something is wrong."""
    findings = check(Path(sys.argv[1]).resolve())
    summary = (
        f"{findings.pages} pages, {findings.links} links inside the site ({findings.anchors} with an anchor), "
        f"{len(findings.outside)} addresses of other sites, {len(findings.problems)} problems"
    )
    sys.stdout.writelines(f"{line}\n" for line in (summary, *findings.problems))
    return bool(findings.problems)


if __name__ == "__main__":
    sys.exit(main())
