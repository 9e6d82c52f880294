"""The engine that `make test-engines` installed. Nothing here is collected by other runs."""

from __future__ import annotations

import os

from tests.engines.running import PROGRAM

collect_ignore_glob = [] if PROGRAM in os.environ else ["test_*.py"]
