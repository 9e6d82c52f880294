"""Write the audit trail as JSON lines, in the order of its chain, with the hashes to recompute it."""

from __future__ import annotations

from argparse import ArgumentParser, ArgumentTypeError
from datetime import UTC, datetime
from typing import Any

from django.core.management.base import BaseCommand

from portal.audit import export


def _time(text: str) -> datetime:
    try:
        at = datetime.fromisoformat(text)
    except ValueError as error:
        raise ArgumentTypeError("write a day or a time: 2026-11-20T09:00:00Z") from error
    return at if at.tzinfo else at.replace(tzinfo=UTC)


def _position(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 19):
        raise ArgumentTypeError("write the position of the last line that you have")
    return int(text)


class Command(BaseCommand):
    help = __doc__

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--after", type=_position, default=0, help="position of the last line that you have"
        )
        parser.add_argument("--since", type=_time, help="events from this day or time on (UTC)")

    def handle(self, *args: Any, after: int, since: datetime | None, **options: Any) -> None:
        for record in export.records(after=after, since=since):
            self.stdout.write(export.line(record))
