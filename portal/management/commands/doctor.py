"""`manage.py doctor`: checks an installation end to end, and says of each problem how to fix it."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from portal.accounts.policy import SYSTEM
from portal.doctor import examination, registry
from portal.doctor.examination import Result
from portal.doctor.lines import Status

_MARKS = {Status.OK: "ok", Status.NOTE: "note", Status.UNKNOWN: "?", Status.FAILED: "FAILED"}


class Command(BaseCommand):
    help = (
        "Check settings, database, audit trail, broker, workers, bucket, clusters, e-mail, sign-in and prices. "
        "One line for each check, with its fix. Exit code 0: nothing failed. 1: something did."
    )
    # Their messages are lines of the report.
    requires_system_checks = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--json", action="store_true", help="one JSON document")
        parser.add_argument(
            "--area",
            action="append",
            default=[],
            choices=registry.AREAS,
            help="only this part; may be repeated",
        )

    def handle(self, *args: Any, area: list[str], **options: Any) -> None:
        results = []
        for result in examination.run(actor=SYSTEM, areas=area):
            results.append(result)
            if not options["json"]:
                self.stdout.write(_text(result))
        failures = sum(result.line.status is Status.FAILED for result in results)
        if options["json"]:
            self.stdout.write(json.dumps(_document(results), indent=2))
        if failures:
            raise CommandError(f"{failures} of {len(results)} checks failed.")
        if not options["json"]:
            self.stdout.write(f"{len(results)} checks, none failed.")


def _text(result: Result) -> str:
    line = result.line
    text = f"{_MARKS[line.status]:<7} {result.area}: {line.name}: {line.detail}"
    return f"{text}. Fix: {line.fix}" if line.fix else text


def _document(results: list[Result]) -> dict[str, Any]:
    return {
        "healthy": examination.is_healthy(results),
        "checks": [
            {
                "area": result.area,
                "name": result.line.name,
                "status": result.line.status.value,
                "detail": result.line.detail,
                "fix": result.line.fix,
            }
            for result in results
        ],
    }
