"""The Celery application: four queues, periodic sweeps, every message only a hint. Beat has one of its own (portal.beat)."""

from __future__ import annotations

import os
import sys
from typing import Any

from celery import Celery, signals
from django.db import close_old_connections

from portal.worker_liveness import AliveFile

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "portal.settings")
# Celery would import all pages for Django's checks, and tell nobody what these found.
os.environ.setdefault("CELERY_SKIP_CHECKS", "1")

app = Celery("slipway")
app.config_from_object("portal.celery_config")
# After so many tasks Celery would close a connection to the database; by default after each. We do it by age, as web does.
app.conf["CELERY_DB_REUSE_MAX"] = sys.maxsize
app.steps["worker"].add(AliveFile)
app.autodiscover_tasks(
    [
        "deployments",
        "fleet",
        "portal.notifications",
        "portal.audit",
        "portal.doctor",
        "portal.core.sweeps",
    ]
)


@signals.task_prerun.connect
@signals.task_postrun.connect
def close_unusable_connections(sender: Any, **kwargs: Any) -> None:
    """Close those that broke or are older than CONN_MAX_AGE; a task that a test calls keeps its transaction's."""
    if not sender.request.is_eager:
        close_old_connections()
