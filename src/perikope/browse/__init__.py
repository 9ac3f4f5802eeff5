"""Rank the passages of candidate documents: matches, models that score them, their order and explanation."""
