"""Tuning: find the values of parameters that rank training topics best."""
