"""Learning to rank: fits combinations of features to judgements, and measures them on held-out topics.

`examples` collects passages of topics as training examples. `linear` and `lambdamart` fit combinations to the examples.
`validation` measures the combinations, `saving` saves them in an index, and `export` writes examples for other
programs. `prior` learns at which positions of a description relevant passages occur.
"""
