"""Which models can rank any index."""

from perikope.browse.models import MODELS

READY = [name for name, found in MODELS.items() if found.is_ready]
"""Those that need no store of vectors, which would have to be made first."""
