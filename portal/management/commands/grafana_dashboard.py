"""Print a dashboard for Grafana as JSON, for its import or a ConfigMap that it reads."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand

from portal.monitoring.dashboards import catalogue


class Command(BaseCommand):
    help = __doc__
    requires_system_checks = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("dashboard", choices=sorted(catalogue.DASHBOARDS))

    def handle(self, *args: Any, dashboard: str, **options: Any) -> None:
        self.stdout.write(json.dumps(catalogue.DASHBOARDS[dashboard]().to_json(), indent=2))
