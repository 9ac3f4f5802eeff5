"""Learning: fit combinations of signals to judgements, and measure them on held-out topics.

`examples` collects the passages of topics, `linear` and `lambdamart` fit combinations to them, `validation` measures
the combinations, and `export` writes examples for other programs. `prior` learns which positions in a description are
relevant.
"""
