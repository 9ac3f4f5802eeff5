"""Encoders, and attention over document graphs: what a passage means alone and among its neighbours.

No other folder imports torch. `graph` makes the graph of a document and `drawing` a picture of it, both without torch.
`sharing` plans which hidden states are computed, and `hgat` computes them.

Docstrings write the shape of an array or tensor as one name per axis: `(nodes, tokens, dimension)`. Within a docstring,
the same name means the same length. Vectors are float32. A mask is boolean; it is true where there is a token.
"""
