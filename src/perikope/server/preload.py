"""What the processes of a server share: this module is imported once, before they are forked.

Kernels are loaded here, so a new process can search at once. The garbage collector of the processes leaves alone what
was loaded: looking through it took a tenth of a second, during which a request waited, and copied shared memory.
"""

from __future__ import annotations

import contextlib
import gc
import warnings

import perikope.server.handler
import perikope.server.writer  # noqa: F401
from perikope.service.operations import load_operations

load_operations()
with contextlib.suppress(Exception), warnings.catch_warnings():
    # A server works without this, only its first requests are slower.
    warnings.simplefilter("ignore")
    from perikope.evaluation.demo import warm_up

    warm_up()
gc.collect()
gc.freeze()
