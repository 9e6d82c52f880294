"""Deployments of the demo's third team, with three weeks of made-up use, so that the demo has something to advise on.

They are requested, approved and served as any other; only the hours before they were made up, and those are
marked: `is_demo` of their rows, and the evidence of the advice. Import after django.setup().
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Final

from deployments.changes.services import decisions, requests
from deployments.models import ChangeRequest, Deployment, ModelVersion
from deployments.preflight.domain.checks import DeployDraft
from deployments.spec.domain.pod_settings import OPEN
from deployments.spec.domain.serving_spec import Network, ServingSpec
from deployments.states import ChangeState, DeploymentState, Environment
from fleet.costs.services import demo_history
from fleet.costs.services.demo_history import ALL_DAY, DAYS, PastNode, PastWorkload
from fleet.gpus.domain.intervals import hour_of
from fleet.models import GpuLease, LedgerRow, Node, SealedHour
from fleet.prices.services import catalogue as prices
from portal.accounts import teams
from portal.accounts.models import Membership, Team, User
from portal.accounts.policy import SYSTEM
from portal.management.demo import people

TEAM: Final = "samples"
_INSTANCE_TYPE: Final = "g5.xlarge"
_NODES: Final = "demo-"
_SPOT_PRICES: Final = (
    "instance_type,region,capacity_type,usd_per_hour,source,valid_from\n"
    f'{_INSTANCE_TYPE},us-east-1,spot,0.4024,"sample of the demo, 60% below on-demand",2026-07-20\n'
)


@dataclass(frozen=True, slots=True)
class Sample:
    """`peak_requests` of its busiest hour; 0 is one that nobody calls."""

    name: str
    replicas: int
    peak_requests: int
    mean_us: int


SAMPLES: Final = (
    Sample("classifier", replicas=2, peak_requests=60_000, mean_us=21_000),
    Sample("archive", replicas=1, peak_requests=0, mean_us=0),
)


def make_team() -> Team:
    """With the people of vision in the same roles, and a price for its spot nodes."""
    team = Team.objects.filter(slug=TEAM).first() or teams.create(
        actor=SYSTEM,
        slug=TEAM,
        name="Samples",
        quota_gpus=8,
        monthly_budget_amount=Decimal(3000),
    )
    for username, role in people.MEMBERS["vision"].items():
        if not Membership.objects.filter(team=team, user__username=username).exists():
            teams.set_member(actor=SYSTEM, team=team, username=username, role=role)
    prices.load_text(actor=SYSTEM, text=_SPOT_PRICES)
    return team


def request_missing(*, actor: User, version: ModelVersion, cluster_id: int) -> list[ChangeRequest]:
    """The requests of the samples that do not exist yet."""
    existing = set(Deployment.objects.filter(team__slug=TEAM).values_list("name", flat=True))
    return [
        requests.request_deploy(
            actor=actor,
            draft=DeployDraft(
                version.pk, cluster_id, sample.name, _spec(sample), Environment.STAGING
            ),
            comment="A sample of the demo.",
        )
        for sample in SAMPLES
        if sample.name not in existing
    ]


def approve_waiting(*, actor: User) -> None:
    waiting = ChangeRequest.objects.filter(team__slug=TEAM, state=ChangeState.SUBMITTED)
    for change in waiting.filter(deployment__name__in=[sample.name for sample in SAMPLES]):
        decisions.approve(actor=actor, change_id=change.pk, evidence_hash=change.evidence_hash)


def are_ready() -> bool:
    """Served and metered, so that no hour is missing between what was made up and what is observed."""
    rows = Deployment.objects.filter(team__slug=TEAM, name__in=[s.name for s in SAMPLES])
    open_changes = ChangeRequest.objects.filter(deployment__in=rows, finished_at=None)
    ready = rows.filter(state=DeploymentState.READY).count()
    replicas = sum(sample.replicas for sample in SAMPLES)
    metered = GpuLease.objects.filter(team_slug=TEAM, ended_at=None).count()
    return ready == len(SAMPLES) and metered >= replicas and not open_changes.exists()


def write_history(*, cluster_id: int) -> int:
    """Hours before the samples were metered, once; return the number of ledger rows. Call when they are ready."""
    nodes = nodes_of(cluster_id)
    leases = list(
        GpuLease.objects.filter(team_slug=TEAM, ended_at=None).select_related("node", "workload")
    )
    until = _metered_from(cluster_id, nodes, leases)
    made = demo_history.extend(
        cluster_id=cluster_id,
        until=until,
        nodes=[
            PastNode(node.name, node.instance_type, node.gpu_count, node.uid, node.capacity_type)
            for node in nodes
        ],
        workloads=[_past(sample, leases) for sample in SAMPLES],
    )
    if made:
        _backdate(until - timedelta(days=DAYS))
    return made


def nodes_of(cluster_id: int) -> list[Node]:
    """Those for the samples; none where the cluster has real GPUs."""
    rows = Node.objects.filter(cluster_id=cluster_id, gone_at=None, name__startswith=_NODES)
    return list(rows.order_by("name"))


def have_history() -> bool:
    return LedgerRow.objects.filter(is_demo=True, team_slug=TEAM).exists()


def _spec(sample: Sample) -> ServingSpec:
    return ServingSpec(
        engine="kserve-triton",
        instance_type=_INSTANCE_TYPE,
        memory="2Gi",
        min_replicas=sample.replicas,
        max_replicas=sample.replicas,
        network=Network(access=OPEN),
    )


def _past(sample: Sample, leases: Sequence[GpuLease]) -> PastWorkload:
    own = [
        lease for lease in leases if lease.workload and lease.workload.name == f"{sample.name}-r1"
    ]
    return PastWorkload(
        TEAM,
        sample.name,
        1,
        tuple(lease.node.name for lease in own),
        1,
        DAYS,
        0,
        ALL_DAY,
        sample.peak_requests,
        sample.mean_us,
    )


def _metered_from(cluster_id: int, nodes: Sequence[Node], leases: Sequence[GpuLease]) -> datetime:
    """The first hour that is not made up. Where an hour ended while the samples came up, their nodes are metered
    from the next one, unless it is sealed.
    """
    seen = min(hour_of(node.first_seen_at) for node in nodes)
    held = max((hour_of(lease.started_at) for lease in leases), default=seen)
    sealed = SealedHour.objects.filter(cluster_id=cluster_id, hour__gte=seen, hour__lt=held)
    if held <= seen or sealed.exists():
        return seen
    Node.objects.filter(pk__in=[node.pk for node in nodes]).update(first_seen_at=held)
    return held


def _backdate(at: datetime) -> None:
    """Advice looks at what was used since the last change."""
    rows = Deployment.objects.filter(team__slug=TEAM)
    ChangeRequest.objects.filter(deployment__in=rows).update(finished_at=at)
    rows.update(created_at=at)
