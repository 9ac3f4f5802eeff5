"""Experiments: parameters tuned on training topics, systems compared on others, everything written down."""
