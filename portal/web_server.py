"""Configuration of gunicorn: `gunicorn --config python:portal.web_server portal.wsgi:application`.

Web processes count requests in files, one set for each place among the workers. A worker that is started in the place
of another goes on with its files, so that no counter goes back and no file is left over.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from itertools import count
from typing import Any, Final

from prometheus_client import values

_FOLDER: Final = "PROMETHEUS_MULTIPROC_DIR"
_PLACE: Final = "SLIPWAY_WEB_PLACE"


def folder() -> str:
    """Return the folder of the metrics. Empty outside gunicorn, where this process counts alone."""
    return os.environ.get(_FOLDER, "") if _PLACE in os.environ else ""


def on_starting(server: Any) -> None:
    """Create a folder for metrics in the arbiter, so that nothing of an earlier start is counted again."""
    os.environ[_FOLDER] = tempfile.mkdtemp(prefix="slipway-metrics-")


def pre_fork(server: Any, worker: Any) -> None:
    """Give a new worker a free place, in the arbiter. Workers that still end after a reload keep theirs."""
    taken = {other.slipway_place for other in server.WORKERS.values()}
    worker.slipway_place = next(place for place in count() if place not in taken)


def post_fork(server: Any, worker: Any) -> None:
    """Set up the metrics of a worker, before it imports the portal."""
    os.environ[_PLACE] = str(worker.slipway_place)
    make: Any = values.MultiProcessValue
    values.ValueClass = make(lambda: os.environ[_PLACE])


def on_exit(server: Any) -> None:
    shutil.rmtree(os.environ[_FOLDER], ignore_errors=True)
