"""Builds an index from files, with several processes."""
