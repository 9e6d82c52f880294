"""Count the synthetic requests that the portal sent to a revision."""

from __future__ import annotations

from datetime import datetime

from deployments.models import Revision, SyntheticHour, SyntheticRequest
from portal.accounts.models import Team


def count(revision: Revision, after: datetime, until: datetime) -> int:
    return SyntheticRequest.objects.filter(revision=revision, at__gt=after, at__lte=until).count()


def hours_of_team(team: Team, *, start: datetime) -> dict[int, dict[datetime, int]]:
    """Count the requests that the portal sent in each hour from `start` on, by the primary key of the
    deployment.
    """
    rows = SyntheticHour.objects.filter(deployment__team=team, start__gte=start)
    sent: dict[int, dict[datetime, int]] = {}
    for deployment_id, hour, requests in rows.values_list("deployment_id", "start", "requests"):
        sent.setdefault(deployment_id, {})[hour] = requests
    return sent
