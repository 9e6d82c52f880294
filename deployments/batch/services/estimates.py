"""Estimate the cost of a batch job, and whether its nodes are available, before it is requested. Nothing is stored."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from deployments import rejections
from deployments.batch.domain.job import spec_of
from deployments.batch.domain.settings import BatchSettings
from deployments.batch.services import limits, requests
from deployments.batch.services.limits import Price
from deployments.batch.services.requests import BatchDraft
from deployments.preflight.domain.checks import Check
from deployments.preflight.services import capacity_checks
from deployments.spec.domain import replicas
from fleet.capacity.selectors import capacity
from fleet.clusters.selectors import clusters
from fleet.gpus.domain.capacity_types import ON_DEMAND, SPOT
from portal.accounts import policy, teams
from portal.accounts.models import Team, User
from portal.accounts.policy import Action
from portal.core.errors import Invalid


@dataclass(frozen=True, slots=True)
class Estimate:
    """The estimate of a batch job. `spot` and `on_demand` are the prices of the same workers there.

    `why_approval` says why a lead would decide, `refusal` why it would be refused; both are empty if it would start
    at once.
    """

    workers: int
    hours: int
    capacity_type: str
    price: Price
    spot: Price
    on_demand: Price
    capacity: Check
    why_approval: str
    refusal: str

    @property
    def others(self) -> list[tuple[str, Price]]:
        """The prices of the capacity types that were not chosen."""
        prices = ((SPOT, self.spot), (ON_DEMAND, self.on_demand))
        return [(kind, price) for kind, price in prices if kind != self.capacity_type]


def check(*, actor: User, team_slug: str, draft: BatchDraft) -> Estimate:
    """Estimate the job of a draft. Raises what a request of the draft would raise."""
    read = requests.read(actor=actor, team_slug=team_slug, draft=draft)
    return _estimate(read.team, read.cluster_id, read.pods)


def estimate(
    *,
    actor: User,
    team_slug: str,
    cluster: str,
    pods: Mapping[str, Any],
) -> Estimate:
    """Estimate the workers alone, while the form is filled in. Raises Invalid if there is no price to show."""
    team = teams.get_visible(actor=actor, slug=team_slug)
    policy.require(actor, Action.REQUEST_CHANGE, team)
    with rejections.as_invalid():
        settings = BatchSettings.from_json(pods)
    return _estimate(team, requests.cluster_id_of(cluster), settings)


def _estimate(team: Team, cluster_id: int, settings: BatchSettings) -> Estimate:
    cluster = clusters.get_cluster(cluster_id)
    nodes = capacity.read(cluster_id=cluster_id, instance_types=[settings.instance_type])
    price = limits.price_of(nodes.shares, settings)
    why_approval, refusal = _limits_of(team, settings, price)
    spec = replicas.reduce_replicas(spec_of(settings), settings.workers)
    return Estimate(
        workers=settings.workers,
        hours=settings.hours,
        capacity_type=settings.capacity,
        price=price,
        spot=limits.price_of(nodes.shares, settings, capacity_type=SPOT),
        on_demand=limits.price_of(nodes.shares, settings, capacity_type=ON_DEMAND),
        capacity=capacity_checks.check_capacity(
            spec,
            cluster.capabilities,
            nodes.spaces,
            are_devices_read=cluster.devices_read_at is not None,
        ),
        why_approval=why_approval,
        refusal=refusal,
    )


def _limits_of(team: Team, settings: BatchSettings, price: Price) -> tuple[str, str]:
    """Return why a lead has to decide, and why so many workers are refused. Each is empty if it does not apply."""
    try:
        return limits.require(team, settings, price), ""
    except Invalid as refusal:
        if "workers" not in refusal.fields:
            raise
        return "", refusal.message
