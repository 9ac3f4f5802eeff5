"""Code blocks and tables: what all formats share about them."""

from __future__ import annotations

CODE_LANGUAGE = "code_language"
"""The metadata field that lists the programming languages of a document's code, if its format names them."""

LONGEST_HEADER = 500
"""The most characters of a table's header rows. Longer ones are text in table cells, and stay passages."""
