"""Every tight loop, compiled by numba: one file per family, each kernel with a plain twin in the tests.

Kernels check no bounds. Who calls one answers for the arrays: an index validates its offsets when it is opened.
"""
