"""`manage.py migrate`, also for a database whose fresh migrations replace further ones since they were applied."""

from __future__ import annotations

from typing import Any

from django.core.management import load_command_class
from django.core.management.base import BaseCommand, CommandParser
from django.db import connections

from portal.core.schema import history


def _of_django() -> Any:
    return load_command_class("django.core", "migrate")


class Command(BaseCommand):
    help = "Update the tables of the database."
    # A check compares it with that of makemigrations.
    autodetector = _of_django().autodetector

    def add_arguments(self, parser: CommandParser) -> None:
        _of_django().add_arguments(parser)

    def get_check_kwargs(self, options: dict[str, Any]) -> Any:
        """Run the checks of the database that is migrated too."""
        kwargs: Any = super().get_check_kwargs(options)
        return {**kwargs, "databases": [options["database"]]}

    def handle(self, *args: Any, **options: Any) -> None:
        history.record_replaced(connections[options["database"]])
        migrate = _of_django()
        migrate.stdout, migrate.stderr, migrate.style = self.stdout, self.stderr, self.style
        migrate.handle(*args, **options)
