"""Settings of the documentation site, for Sphinx.

    make docs

The source folder is the root of the repository, so that links between pages are the same here and in a checkout. The
pages are the Markdown files of the root and of docs/. Anything that Sphinx warns about ends the build.
"""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(Path(__file__).parent))

project = "perikope"
version = release = re.findall(r'__version__ = "(.+)"', (ROOT / "src/perikope/__init__.py").read_text("utf-8"))[0]

extensions = ["myst_parser", "commands", "navigation", "pictures", "source_pages"]
root_doc = "docs/index"
include_patterns = ["*.md", "docs/**.md"]
# Folders without pages, which Sphinx would walk through; `.` covers environments and caches.
exclude_patterns = [".*", "build", "dist", "src", "tests", "examples", "benchmarks", "experiments", "scripts", "deploy"]
nitpicky = True

# Headings have the anchors that GitHub gives them.
myst_heading_anchors = 4

html_theme = "furo"
html_title = f"perikope {version}"
html_favicon = "../../src/perikope/page/files/icon.svg"
html_static_path = ["style"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sourcelink = False
html_show_copyright = False
html_theme_options = {"navigation_with_keys": False}
pygments_style = "friendly"
pygments_dark_style = "github-dark"
