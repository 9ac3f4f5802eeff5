"""Stress scenarios, which run for as long as one likes; `python -m tests.soak --help` lists them."""
