"""Readers and writers of topics, judgements and runs."""
