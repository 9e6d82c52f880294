"""Load list prices of GPU instances: the shipped catalogue, or a CSV file of the same columns."""

from __future__ import annotations

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from fleet.prices.services import catalogue as prices
from portal.accounts.policy import SYSTEM
from portal.core.errors import DomainError


class Command(BaseCommand):
    help = __doc__

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("path", nargs="?", type=Path, default=prices.CATALOGUE)

    def handle(self, *args: Any, path: Path, **options: Any) -> None:
        try:
            loaded = prices.load_catalogue(actor=SYSTEM, path=path)
        except DomainError as error:
            raise CommandError(error.message) from error
        self.stdout.write(f"{loaded.prices} prices, {loaded.new} of them new.")
        if loaded.unpriced:
            self.stdout.write(f"No price known for {', '.join(loaded.unpriced)}.")
