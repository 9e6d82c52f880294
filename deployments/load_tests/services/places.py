"""Choosing where load tests of a team run. It applies to the verifications that begin from then on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.db import transaction

from deployments import rejections
from deployments.load_tests.domain.choice import PodChoice
from deployments.load_tests.selectors import places
from deployments.models import LoadTestPlace
from fleet.clusters.selectors import clusters
from portal.accounts import policy
from portal.accounts.models import Team, User
from portal.accounts.policy import Action
from portal.audit import trail
from portal.audit.actions import register
from portal.core import clock
from portal.core.errors import Invalid

CHOSEN = register("team.load_tests_set", "set where load tests run for")


def read(*, actor: User, team: Team) -> LoadTestPlace | None:
    policy.require(actor, Action.VIEW, team)
    return places.place_of(team.pk)


def choose(*, actor: User, team: Team, cluster_name: str, pod: Mapping[str, Any]) -> str:
    """Choose the cluster and the pods of a team's load tests. An empty name means on no cluster. Setting the
    current values changes nothing.
    """
    policy.require(actor, Action.CHOOSE_LOAD_TESTS, team)
    with rejections.as_invalid():
        choice = PodChoice.from_json(pod)
    cluster_id = _cluster_id(cluster_name)
    with transaction.atomic():
        before = places.place_of(team.pk)
        described = describe(before)
        if cluster_id is None:
            LoadTestPlace.objects.filter(team=team).delete()
        else:
            LoadTestPlace.objects.update_or_create(
                team=team,
                defaults={
                    "cluster_id": cluster_id,
                    "pod": choice.to_json(),
                    "set_by": actor,
                    "set_at": clock.now(),
                },
            )
        after = describe(places.place_of(team.pk))
        if after == described:
            return cluster_name
        trail.record(
            actor=actor,
            action=CHOSEN,
            obj=team,
            team_slug=team.slug,
            before=described,
            after=after,
        )
    return cluster_name


def describe(place: LoadTestPlace | None) -> dict[str, Any]:
    """Describe a place as REST and the audit trail show it."""
    if place is None:
        return {"cluster": "", **PodChoice().to_json()}
    return {"cluster": place.cluster.name, **places.pod_of(place).to_json()}


def _cluster_id(name: str) -> int | None:
    if not name:
        return None
    for cluster in clusters.list_clusters():
        if cluster.name == name:
            return cluster.id
    problem = f"There is no cluster “{name}”. Use the name of a registered one, or leave it empty."
    raise Invalid(problem, fields={"cluster": problem})
