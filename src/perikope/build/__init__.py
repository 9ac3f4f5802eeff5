"""Files to an index, by several processes."""
