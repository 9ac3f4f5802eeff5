"""Evaluation: topics, judgements and runs, measures, tuning, learning and experiments."""
