"""`manage.py migrate`, also for a database whose fresh migrations replace further ones since they were applied."""

from __future__ import annotations

from typing import Any

from django.core.management import load_command_class
from django.core.management.base import BaseCommand, CommandParser
from django.db import connections

from portal.core.schema import history


class Command(BaseCommand):
    help = "Update the tables of the database."
    # A check compares it with that of makemigrations.
    autodetector = load_command_class("django.core", "migrate").autodetector

    def add_arguments(self, parser: CommandParser) -> None:
        load_command_class("django.core", "migrate").add_arguments(parser)

    def get_check_kwargs(self, options: dict[str, Any]) -> dict[str, Any]:
        """Run the checks of the database that is migrated too."""
        return {**super().get_check_kwargs(options), "databases": [options["database"]]}

    def handle(self, *args: Any, **options: Any) -> None:
        history.record_replaced(connections[options["database"]])
        migrate = load_command_class("django.core", "migrate")
        migrate.stdout, migrate.stderr, migrate.style = self.stdout, self.stderr, self.style
        migrate.handle(*args, **options)
