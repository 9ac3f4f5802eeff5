"""Adapting: fits the default model to the documents of one index, without human judgements."""
