"""Tuning: finds the values of a model's parameters with the best measure on training topics."""
