"""Record requests that the portal itself sends, so that they do not count as users' requests."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from django.db.models import F

from deployments.models import Revision, SyntheticHour, SyntheticRequest
from portal.core import clock

# Longer than any interval that an analysis covers.
_KEPT: Final = timedelta(hours=1)
# Longer than advice on costs looks back.
_HOURS_KEPT: Final = timedelta(days=60)


def note(revision: Revision) -> None:
    """Record one that was answered just now, and delete what is kept no longer."""
    at = clock.now()
    SyntheticRequest.objects.filter(revision=revision, at__lt=at - _KEPT).delete()
    SyntheticRequest.objects.create(revision=revision, at=at)
    _count(revision, at.replace(minute=0, second=0, microsecond=0))


def _count(revision: Revision, hour: datetime) -> None:
    hours = SyntheticHour.objects.filter(deployment=revision.deployment_id)
    _, is_new = hours.get_or_create(start=hour, defaults={"deployment_id": revision.deployment_id})
    hours.filter(start=hour).update(requests=F("requests") + 1)
    if is_new:
        hours.filter(start__lt=hour - _HOURS_KEPT).delete()
