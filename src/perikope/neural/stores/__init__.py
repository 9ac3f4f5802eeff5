"""Vectors of passages on the disk: codes, files, bringing them up to date."""
