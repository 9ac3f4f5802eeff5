"""Fuzzing: every reader is given damaged files for as long as one likes; see `__main__`."""
