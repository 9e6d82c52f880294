"""All dashboards."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from portal.monitoring.dashboards import gpus, portal, serving
from portal.monitoring.dashboards.dashboard import Dashboard

DASHBOARDS: Final[Mapping[str, Callable[[], Dashboard]]] = {
    "gpus": gpus.dashboard,
    "portal": portal.dashboard,
    "serving": serving.dashboard,
}
