"""Queries: texts, Boolean expressions and patents, translated into terms of the index."""
