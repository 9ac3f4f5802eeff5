"""The front door: options of a search, its steps, results and recipes."""
