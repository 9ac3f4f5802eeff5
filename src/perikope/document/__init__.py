"""What is a document? One text and a tree of spans over it."""
