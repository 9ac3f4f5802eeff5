"""How good is it? Topics, judgements and runs, measures, tuning, learning, experiments."""
