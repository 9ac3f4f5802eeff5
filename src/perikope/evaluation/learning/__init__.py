"""How should all signals count together? Learned from judgements, measured on topics that were not learned from.

`examples` looks the passages of topics up, `linear` and `lambdamart` fit combinations to them, `validation` measures, `export` writes
what other programs learn from. `prior` learns which places in a description are relevant.
"""
