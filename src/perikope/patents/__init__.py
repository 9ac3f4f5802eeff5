"""Rules about patents that need no index: codes, numbers, families, headings, mentions, translation."""
