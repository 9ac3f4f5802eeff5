"""All tight loops, as kernels that numba compiles. The tests compare each kernel with a plain Python version.

Kernels do not check array bounds. The caller must pass valid indexes; an index validates its offsets when it is opened.
"""
