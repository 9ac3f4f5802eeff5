"""The document: one text and a tree of spans over it."""
