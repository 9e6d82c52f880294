"""`manage.py demo`: the same as `python -m portal.management.demo`, which needs no settings."""

from __future__ import annotations

import os
import sys
from typing import Any

from django.core.management.base import BaseCommand


class Command(BaseCommand):
    help = "Start every part of Slipway on this machine. Ctrl-C stops everything."
    requires_system_checks = []

    def handle(self, *args: Any, **options: Any) -> None:
        command = [sys.executable, "-m", "portal.management.demo"]
        os.execv(sys.executable, command)  # noqa: S606  there is no shell, on purpose
