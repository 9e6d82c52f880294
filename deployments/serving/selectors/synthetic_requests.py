"""Count the synthetic requests that the portal sent to a revision."""

from __future__ import annotations

from datetime import datetime

from deployments.models import Revision, SyntheticRequest


def count(revision: Revision, after: datetime, until: datetime) -> int:
    return SyntheticRequest.objects.filter(revision=revision, at__gt=after, at__lte=until).count()
