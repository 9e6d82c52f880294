"""Record requests that the portal itself sends, so that they do not count as users' requests."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from deployments.models import Revision, SyntheticRequest
from portal.core import clock

# Longer than any interval that an analysis covers.
_KEPT: Final = timedelta(hours=1)


def note(revision: Revision) -> None:
    """Record one that was answered just now, and delete those older than an hour."""
    at = clock.now()
    SyntheticRequest.objects.filter(revision=revision, at__lt=at - _KEPT).delete()
    SyntheticRequest.objects.create(revision=revision, at=at)
