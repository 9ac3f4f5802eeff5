"""What goes in and out as files beside documents: topics, judgements and runs."""
