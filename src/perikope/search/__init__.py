"""Searching an index: options, the steps of a search, results and recipes."""
