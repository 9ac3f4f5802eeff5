"""The index on disk: immutable segments of columns, and the manifest that names them."""
