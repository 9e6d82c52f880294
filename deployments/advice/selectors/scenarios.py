"""The present cost of a deployment, from which a what-if starts."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

from deployments.advice.domain.facts import WEEK_HOURS
from deployments.advice.domain.what_if import Scenario
from deployments.manifests.domain.keda import office_hours
from deployments.manifests.selectors import rendering
from deployments.preflight.services import cost
from deployments.preflight.services.cost import SharesByCluster
from deployments.serving.selectors import deployments
from deployments.spec.domain.serving_spec import ServingSpec
from fleet.clusters.selectors import clusters
from fleet.gpus.domain import capacity_types
from fleet.gpus.selectors import prices
from portal.accounts.models import User
from portal.core import clock

_HUNDRED = Decimal(100)


@dataclass(frozen=True, slots=True)
class Start:
    """The first scenario of a what-if. `scenario` is None if the cost is not known. `remarks` say what the figures
    leave out, and what to enter.
    """

    scenario: Scenario | None
    remarks: tuple[str, ...] = ()


def start_from_deployment(*, actor: User, label: str) -> Start:
    """Return the present cost of the deployment `label` (team/name) as a scenario.

    The price is that of one replica, so its share is 100%. Raises NotFound if the actor cannot see the deployment.
    """
    team, _, name = label.partition("/")
    deployment = deployments.get_visible(actor=actor, team_slug=team, name=name)
    if deployment.stable_revision is None:
        return Start(None, (f"{label} runs nothing yet. The figures below are an example.",))
    spec = rendering.spec_of(deployment.stable_revision)
    share = cost.find_gpu_share(SharesByCluster().list_shares(deployment.cluster_id), spec)
    if share is None or share.usd_per_hour_amount is None:
        unknown = f"The price of {spec.instance_type} in {deployment.cluster.name} is not known"
        return Start(None, (f"{unknown}. Enter it below: the figures are an example.",))
    replicas, hours, remarks = _running(spec)
    if share.capacity_type == capacity_types.SPOT:
        remarks = (*remarks, "The price is that of spot nodes already.")
    scenario = Scenario(
        usd_per_hour_amount=share.usd_per_hour_amount,
        replicas=Decimal(replicas * spec.nodes),
        gpu_share_percent=_HUNDRED,
        hours_per_week=hours,
    )
    return Start(scenario, remarks)


def _running(spec: ServingSpec) -> tuple[int, Decimal, tuple[str, ...]]:
    """Return how many replicas run, for how many hours a week, and remarks about them."""
    always, office = Decimal(WEEK_HOURS), spec.scaling.office_hours
    if not spec.scaling.can_scale_to_zero:
        extra = office is not None and office.replicas > spec.min_replicas
        more = ("Replicas that only office hours add are not counted.",) if extra else ()
        return spec.min_replicas, always, more
    if office is not None:
        return office.replicas, office_hours.hours_per_week(office), ()
    running = max(1, spec.min_replicas)
    remark = "It scales to zero: enter the hours a week in which it runs."
    return running, always, (remark,)


def instance_prices() -> dict[str, Decimal]:
    """Return today's dollars per hour by "g5.xlarge us-east-1 spot", for the regions of the clusters, or for all if
    none of them has a price.
    """
    listed = prices.list_prices(on=clock.now().date())
    regions = {cluster.region for cluster in clusters.list_clusters()}
    near = [price for price in listed if price.region in regions] or listed
    names = {f"{p.instance_type} {p.region} {p.capacity_type}": p for p in near}
    return {name: names[name].usd_per_hour_amount for name in sorted(names)}
