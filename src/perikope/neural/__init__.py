"""Neural ranking: encoders compute vectors of passages, and graph attention adds the context of their document.

No other folder imports torch. `graph` makes the graph of a document, and `drawing` draws it; neither imports torch.
`sharing` plans which hidden states of the graph attention are computed, and `hgat` computes them.

Docstrings write the shape of an array or tensor as one name per axis: `(nodes, tokens, dimension)`. Within a docstring,
the same name means the same length. Vectors are float32. A mask is boolean: true for tokens whose vectors are used,
false for padding and skipped tokens.
"""
