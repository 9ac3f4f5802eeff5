"""Evaluation: readers of topics, judgements and runs; measures; tuning; learning to rank; experiments."""
