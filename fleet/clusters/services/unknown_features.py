"""Features that the portal has no permission to check are not known, rather than missing."""

from __future__ import annotations

from collections.abc import Callable

from fleet.clusters.domain.capabilities import Feature
from fleet.kube.domain.errors import NotAllowed


def or_unknown(check: Callable[[], Feature], verb: str) -> Feature:
    try:
        return check()
    except NotAllowed:
        return Feature(None, why=f"The portal's role has no permission to {verb}.")
