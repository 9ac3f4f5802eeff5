"""Everything numba: small loops over plain arrays, one file a family, each with a plain twin in the tests.

Kernels check no bounds. Who calls one answers for the arrays: an index validates its offsets when it is opened.
"""
