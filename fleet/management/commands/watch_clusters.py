"""Watch every cluster until SIGTERM, so that changes are recorded within a second."""

from __future__ import annotations

import signal
import threading
from typing import Any

from django.core.management.base import BaseCommand

from fleet.observation.services.watcher import Watcher
from portal import alive_file

_REFRESH_SECONDS = 2


class Command(BaseCommand):
    help = __doc__
    # Those of the settings (portal.checks). All others would import every page.
    requires_system_checks = ("slipway",)

    def handle(self, *args: Any, **options: Any) -> None:
        stopping = threading.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: stopping.set())
        watcher, alive = Watcher(), alive_file.path()
        watcher.refresh()
        self.stdout.write("watching")
        self.stdout.flush()
        while not stopping.wait(_REFRESH_SECONDS):
            watcher.refresh()
            if alive and watcher.is_well():
                alive.touch()
        watcher.stop()
