"""What do passages mean, and what do their neighbours add? Encoders and attention over document graphs; the only place that imports torch.

`graph` makes the graph of a document and `drawing` a picture of it, without torch. `sharing` says which hidden states have to be computed,
`hgat` computes them.
"""
