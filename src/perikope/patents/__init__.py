"""Patents without an index: codes, numbers, families, headings, mentions, translation."""
