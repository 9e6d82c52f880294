"""Recompute the chain over the audit trail, compare it with its anchors, and name the first broken row.

Exit code 0: intact. 1: broken. 2: rows are intact, but the anchors in the object store cannot be read.
"""

from __future__ import annotations

import re
from argparse import ArgumentParser, ArgumentTypeError
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from portal.audit.anchors import Anchor
from portal.audit.verification import Kind, verify

_ANCHOR = re.compile(r"(\d{1,18}):([0-9a-f]{64})")


def _anchor(text: str) -> Anchor:
    match = _ANCHOR.fullmatch(text)
    if match is None:
        raise ArgumentTypeError("write POSITION:HASH, as the log has them")
    return Anchor(int(match[1]), match[2], "given")


class Command(BaseCommand):
    help = __doc__

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--anchor",
            action="append",
            default=[],
            type=_anchor,
            help="POSITION:HASH from a log or a SIEM; may be repeated",
        )
        parser.add_argument(
            "--without-store",
            action="store_true",
            help="do not read the anchors in the object store",
        )

    def handle(self, *args: Any, anchor: list[Anchor], without_store: bool, **options: Any) -> None:
        report = verify(given=anchor, with_store=not without_store)
        if report.problem:
            returncode = 2 if report.problem.kind is Kind.UNREADABLE else 1
            raise CommandError(str(report.problem), returncode=returncode)
        self.stdout.write(
            f"Intact: {report.position} events, {report.anchors} anchors agree, "
            f"{report.unsealed} not chained yet. Head: {report.position}:{report.hash}"
        )
