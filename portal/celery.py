"""The Celery application: four queues, periodic sweeps, every message only a hint."""

from __future__ import annotations

import os

from celery import Celery

from portal.worker_liveness import AliveFile

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "portal.settings")

app = Celery("slipway")
app.config_from_object("portal.celery_config")
app.steps["worker"].add(AliveFile)
app.autodiscover_tasks(
    ["deployments", "fleet", "portal.notifications", "portal.audit", "portal.doctor"]
)
