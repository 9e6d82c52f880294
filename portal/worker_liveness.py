"""A worker renews its file (portal.alive_file) while its main loop runs."""

from __future__ import annotations

from typing import Any, Final

from celery import bootsteps

from portal import alive_file

_EVERY_SECONDS: Final = 15.0


class AliveFile(bootsteps.StartStopStep):
    """Renews SLIPWAY_WORKER_ALIVE_FILE; nothing where that is empty."""

    requires = ("celery.worker.components:Timer",)

    def __init__(self, parent: Any, **options: Any) -> None:
        super().__init__(parent, **options)
        self._path = alive_file.path()
        self._entry: Any = None

    def start(self, parent: Any) -> None:
        if self._path:
            self._renew()
            self._entry = parent.timer.call_repeatedly(_EVERY_SECONDS, self._renew)

    def stop(self, parent: Any) -> None:
        if self._entry is not None:
            self._entry.cancel()

    def _renew(self) -> None:
        if self._path:
            self._path.touch()
