"""What the processes of a server share: this module is imported once, before they are forked.

Kernels are loaded here, so a new process can search at once.
"""

from __future__ import annotations

import contextlib
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
