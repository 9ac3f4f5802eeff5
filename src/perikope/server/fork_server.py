"""The fork server imports this module first: it takes its name, and leaves signals to the server."""

from __future__ import annotations

import signal

from perikope.server.process_names import FORK_SERVER, name_process

name_process(FORK_SERVER)
if hasattr(signal, "SIGHUP"):
    signal.signal(signal.SIGHUP, signal.SIG_IGN)  # the server reads its tokens again; the fork server has none
