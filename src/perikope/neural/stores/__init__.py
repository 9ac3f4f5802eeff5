"""Stores of passage vectors on disk: how vectors are coded, read, and updated with the index."""
