"""The place where load tests of a team run."""

from __future__ import annotations

from deployments.load_tests.domain.choice import PodChoice
from deployments.models import LoadTestPlace


def place_of(team_id: int) -> LoadTestPlace | None:
    rows = LoadTestPlace.objects.filter(team_id=team_id)
    return rows.select_related("cluster", "set_by").first()


def pod_of(place: LoadTestPlace) -> PodChoice:
    return PodChoice.from_json(place.pod)
