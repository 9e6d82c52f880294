"""Deployments of the demo's third team, with two months of made-up use, so that the demo has something to advise on.

They are requested, approved and served as any other; only the hours before they were made up, and those are
marked: `is_demo` of their rows, and the evidence of the advice. Import after django.setup().
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Final

from deployments.access.domain import catalogue
from deployments.changes.services import decisions, requests
from deployments.models import ChangeRequest, Deployment, ModelVersion
from deployments.preflight.domain.checks import DeployDraft
from deployments.spec.domain.model_settings import Batching
from deployments.spec.domain.serving_spec import Network, ServingSpec
from deployments.states import ChangeState, DeploymentState, Environment
from fleet.costs.services import demo_samples
from fleet.costs.services.demo_samples import DemoSample
from fleet.prices.services import catalogue as prices
from portal.accounts import teams
from portal.accounts.models import Membership, Team, User
from portal.accounts.policy import SYSTEM
from slipway_demo import people

TEAM: Final = "samples"
_INSTANCE_TYPE: Final = "g5.xlarge"
_SPOT_PRICES: Final = (
    "instance_type,region,capacity_type,usd_per_hour,source,valid_from\n"
    f'{_INSTANCE_TYPE},us-east-1,spot,0.4024,"sample of the demo, 60% below on-demand",2026-07-20\n'
)


# One that nobody calls, one with too many replicas, one whose requests queue, and two that fit one Triton.
SAMPLES: Final = (
    DemoSample("classifier", replicas=2, peak_requests=60_000, mean_us=21_000),
    DemoSample("archive", replicas=1, peak_requests=0, mean_us=0),
    DemoSample("ranker", replicas=2, peak_requests=130_000, mean_us=26_000, wait_us=80_000),
    DemoSample("tags", replicas=1, peak_requests=40_000, mean_us=9_000),
    DemoSample("titles", replicas=1, peak_requests=25_000, mean_us=9_000),
)
MODEL: Final = "filetype"
# Models of one Triton have to differ.
SECOND_MODEL: Final = "filetype-int8"
_OF_SECOND: Final = frozenset({"titles"})
# Without dynamic batching, so that a larger batch helps.
_UNBATCHED: Final = frozenset({"ranker"})


def make_team() -> Team:
    """Create the team of the samples with the people of vision in the same roles, and load the prices of its spot
    nodes.
    """
    team = Team.objects.filter(slug=TEAM).first() or teams.create(
        actor=SYSTEM,
        slug=TEAM,
        name="Samples",
        quota_gpus=12,
        monthly_budget_amount=Decimal(6000),
    )
    for username, role in people.MEMBERS["vision"].items():
        if not Membership.objects.filter(team=team, user__username=username).exists():
            teams.set_member(actor=SYSTEM, team=team, username=username, role=role)
    prices.load_text(actor=SYSTEM, text=_SPOT_PRICES)
    return team


def request_missing(
    *, actor: User, versions: Mapping[str, ModelVersion], cluster_id: int
) -> list[ChangeRequest]:
    """Request the samples that do not exist yet. `versions` are by the name of the model."""
    existing = set(Deployment.objects.filter(team__slug=TEAM).values_list("name", flat=True))
    return [
        requests.request_deploy(
            actor=actor,
            draft=DeployDraft(
                versions[SECOND_MODEL if sample.name in _OF_SECOND else MODEL].pk,
                cluster_id,
                sample.name,
                _spec(sample),
                Environment.STAGING,
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
    """Return whether the samples are served and metered, so that no hour is missing between what was made up and
    what is observed.
    """
    rows = Deployment.objects.filter(team__slug=TEAM, name__in=[s.name for s in SAMPLES])
    open_changes = ChangeRequest.objects.filter(deployment__in=rows, finished_at=None)
    ready = rows.filter(state=DeploymentState.READY).count()
    replicas = sum(sample.replicas for sample in SAMPLES)
    is_metered = demo_samples.count_metered(TEAM) >= replicas
    return ready == len(SAMPLES) and is_metered and not open_changes.exists()


def write_history(*, cluster_id: int) -> bool:
    """Write the hours before the samples were metered, once. Returns False if they are there. Call when all are
    ready.
    """
    begin = demo_samples.write(cluster_id=cluster_id, team_slug=TEAM, samples=SAMPLES)
    if begin is None:
        return False
    # Advice looks at what was used since the last change.
    rows = Deployment.objects.filter(team__slug=TEAM)
    ChangeRequest.objects.filter(deployment__in=rows).update(finished_at=begin)
    rows.update(created_at=begin)
    return True


def _spec(sample: DemoSample) -> ServingSpec:
    return ServingSpec(
        engine="kserve-triton",
        instance_type=_INSTANCE_TYPE,
        memory="2Gi",
        min_replicas=sample.replicas,
        max_replicas=sample.replicas,
        batching=Batching(is_dynamic=sample.name not in _UNBATCHED),
        network=Network(access=catalogue.UNCHECKED.name),
    )
