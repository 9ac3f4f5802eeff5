"""Experiments: tune systems on training topics, compare them on other topics, and write a report."""
