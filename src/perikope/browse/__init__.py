"""Which passages? Matches, models that score them, their order and explanation."""
