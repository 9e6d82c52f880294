"""The items that need the user's attention: decisions first, then failures and open alerts, then the budget."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Final

from django.urls import reverse

from deployments.alerts.domain import catalogue as alert_kinds
from deployments.alerts.domain.kinds import budget
from deployments.alerts.selectors import alerts
from deployments.batch.selectors import waiting as batch
from deployments.batch.web import items as batch_items
from deployments.changes.selectors import changes, emergency_reviews
from deployments.changes.web import items
from deployments.models import (
    Alert,
    BatchJob,
    ChangeRequest,
    Deployment,
    EmergencyReview,
    ModelVersion,
    Rollout,
)
from deployments.pages.selectors import home
from deployments.rollouts.selectors import rollouts, snapshots
from portal.accounts.models import DismissedItem, Team, User
from portal.core.definitions.figures import format_money
from portal.dashboard.home_tiles import SpendTile

_RECENT = timedelta(days=7)
_MAX_PER_KIND = 8
# What fails is no less urgent for having been dismissed.
_FAILING_RETURNS_AFTER: Final = timedelta(hours=24)


@dataclass(frozen=True, slots=True)
class Need:
    # The state that sets the pill's tone, and the pill's text.
    state: str
    prompt: str
    title: str
    detail: str
    url: str
    verb: str
    # Names the item. A dismissed item is shown again when the digest of its facts is another.
    key: str
    facts: str
    who: str = ""
    since: datetime | None = None
    returns_after: timedelta | None = None

    def is_dismissed(self, dismissed: Mapping[str, DismissedItem], now: datetime) -> bool:
        row = dismissed.get(self.key)
        if row is None or row.facts != self.facts:
            return False
        return self.returns_after is None or now < row.at + self.returns_after


def list_needs(user: User, team: Team, spend: SpendTile, now: datetime) -> list[Need]:
    """List what needs a member of the team."""
    needs = list_decisions(user)
    failing = home.failing(actor=user, team_slug=team.slug, now=now)
    needs += [describe_failing(deployment) for deployment in failing]
    failed_versions = home.bad_versions(actor=user, team_slug=team.slug, since=now - _RECENT)
    needs += [_bad_version(version) for version in failed_versions]
    opened = alerts.list_open(user, team_slug=team.slug, limit=_MAX_PER_KIND)
    # The forecast below says the same of the budget.
    needs += [
        describe_alert(row) for row in opened if row.kind != budget.KIND.code or spend.over is None
    ]
    if spend.over is not None:
        needs.append(_over_budget(team, spend.over, spend))
    return needs


def list_decisions(user: User) -> list[Need]:
    """List the promotions, requests and reviews that wait for the user, whatever their team."""
    needs = [_promotable(rollout) for rollout in rollouts.list_promotable_for(user)[:_MAX_PER_KIND]]
    waiting = changes.list_by_ids(changes.waiting_for(user, most=_MAX_PER_KIND))
    needs += [_waiting(change) for change in waiting]
    needs += [_batch(job) for job in batch.first_waiting_for(user, _MAX_PER_KIND)]
    needs += [
        _emergency(review) for review in emergency_reviews.waiting_for(user, most=_MAX_PER_KIND)
    ]
    return needs


def _promotable(rollout: Rollout) -> Need:
    deployment = rollout.deployment
    progress = snapshots.snapshot_of(rollout).progress
    mirror = deployment.candidate_mirror
    now = f"{mirror}% mirrored" if mirror else f"{deployment.candidate_weight}%"
    mirrored = " mirrored" if mirror and not progress.is_last_step else ""
    moves = f"{now} → {progress.next_weight}%{mirrored}"
    if deployment.candidate_weight == progress.next_weight:
        moves = f"{now} → stable"
    return Need(
        state="canary",
        prompt="Promote?",
        title=f"{deployment.name} {moves}",
        detail=rollouts.observation_of(rollout).reason or "The step is ready to be promoted.",
        url=reverse("rollout", args=(deployment.team.slug, deployment.name)),
        verb="Review",
        key=f"rollout {rollout.pk}",
        facts=_digest(rollout.phase, rollout.step_index, moves),
        who=rollout.requested_by.display_name,
        since=rollout.step_started_at,
    )


def _waiting(change: ChangeRequest) -> Need:
    item = items.item_of(change)
    cost = f" · {format_money(item.cost)} {item.cost_unit}" if item.cost is not None else ""
    return Need(
        state="submitted",
        prompt="Approve?",
        title=item.title,
        detail=f"{item.detail}{cost}",
        url=reverse("change", args=(change.pk,)),
        verb="Review",
        key=f"request {change.pk}",
        facts=_digest(change.state, change.evidence_hash),
        who=change.requester.display_name,
        since=change.submitted_at,
    )


def _batch(job: BatchJob) -> Need:
    item = batch_items.item_of(job)
    cost = f" · at most {format_money(item.cost)}" if item.cost is not None else ""
    return Need(
        state="submitted",
        prompt="Approve?",
        title=item.title,
        detail=f"{item.detail}{cost}",
        url=item.path,
        verb="Review",
        key=f"batch job {job.pk}",
        facts=_digest(job.state, item.detail, cost),
        who=item.requester,
        since=item.requested_at,
    )


def _emergency(review: EmergencyReview) -> Need:
    return Need(
        state="degraded",
        prompt="Review",
        title=f"Emergency override: {items.item_of(review.change).title}",
        detail=f"Needs review. Reason: {review.reason}",
        url=f"{reverse('change', args=(review.change_id,))}#review",
        verb="Review",
        key=f"review {review.pk}",
        facts=_digest(review.reason),
        who=review.opened_by.display_name,
        since=review.opened_at,
    )


def describe_failing(deployment: Deployment) -> Need:
    return Need(
        state="failed",
        prompt="Failing",
        title=f"{deployment.team.slug}/{deployment.name}",
        detail=deployment.state_reason or "The cluster reported no reason.",
        url=reverse("timeline", args=(deployment.team.slug, deployment.name)),
        verb="View",
        key=f"deployment {deployment.pk}",
        facts=_digest(deployment.state, deployment.state_reason),
        since=deployment.observed_at,
        returns_after=_FAILING_RETURNS_AFTER,
    )


def _bad_version(version: ModelVersion) -> Need:
    model = version.model
    return Need(
        state=version.state,
        prompt=version.state.capitalize(),
        title=version.label,
        detail=version.state_reason or "No reason was recorded.",
        url=reverse("version", args=(model.team.slug, model.name, version.number)),
        verb="View",
        key=f"version {version.pk}",
        facts=_digest(version.state, version.state_reason),
        who=version.created_by.display_name,
        since=version.created_at,
    )


def describe_alert(alert: Alert) -> Need:
    kind = alert_kinds.KINDS.get(alert.kind)
    return Need(
        state="failed",
        prompt=kind.label if kind else "Alert",
        title=alert.subject,
        detail=alert.message,
        url=alert.path,
        verb="View",
        key=f"alert {alert.pk}",
        facts=_digest(alert.message),
        since=alert.opened_at,
    )


def _over_budget(team: Team, over: Decimal, spend: SpendTile) -> Need:
    forecast = "not known" if spend.forecast is None else format_money(spend.forecast)
    return Need(
        state="degraded",
        prompt="Budget",
        title=f"{team.slug} is forecast to exceed its budget by {format_money(over)}",
        detail=f"Forecast for {spend.month}: {forecast}",
        url=reverse("costs"),
        verb="View",
        key=f"budget {team.pk}",
        facts=_digest(spend.month, spend.budget, _tenths(over, spend.budget)),
    )


def _tenths(over: Decimal, budget: Decimal | None) -> int:
    """Count the tenths of the budget that are exceeded: a forecast moves with each minute."""
    return int(10 * over / budget) if budget else 0


def _digest(*facts: object) -> str:
    return hashlib.sha256("\n".join(map(str, facts)).encode()).hexdigest()
