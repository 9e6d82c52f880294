"""`manage.py migrate`, also for a database whose fresh migrations replace further ones since they were applied."""

from __future__ import annotations

from typing import Any

from django.core.management.commands import migrate
from django.db import connections

from portal.core.schema import history


class Command(migrate.Command):
    def handle(self, *args: Any, **options: Any) -> None:
        history.record_replaced(connections[options["database"]])
        super().handle(*args, **options)
