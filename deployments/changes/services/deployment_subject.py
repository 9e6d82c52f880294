"""Deployments as the subject of change requests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from deployments import audit_actions
from deployments.approvals.domain.rules import ChangeFacts
from deployments.changes.selectors import deployment_descriptions, deployment_evidence, guard_lines
from deployments.changes.selectors.subjects import (
    ChangedField,
    ChangeSubject,
    Description,
    GuardLine,
    deployment_of,
)
from deployments.changes.services import plan_figures
from deployments.manifests.selectors import baselines, rendering
from deployments.manifests.selectors.rendered import RenderedRevision
from deployments.models import ChangeRequest, Deployment
from deployments.plans.selectors import plans
from deployments.preflight.domain.checks import Check, Cost
from deployments.preflight.selectors import quotas
from deployments.preflight.services import (
    environment_checks,
    preflight,
    quota_checks,
    refusals,
    revision_checks,
    scaling_checks,
    team_address_checks,
)
from deployments.serving.services import timeline
from deployments.spec.domain.serving_spec import ServingSpec
from deployments.states import ChangeKind, DeploymentState
from portal.accounts.policy import Actor
from portal.audit import trail
from portal.core.errors import Invalid, QuotaExceeded

# They run the stable revision, so what it takes is not counted twice.
_IN_PLACE: Final = (ChangeKind.SCALE, ChangeKind.START)


class DeploymentSubject(ChangeSubject[RenderedRevision]):
    def facts(self, change: ChangeRequest) -> ChangeFacts:
        return deployment_evidence.facts(change)

    def describe(self, change: ChangeRequest) -> Description:
        return deployment_descriptions.describe(change)

    def diff(self, change: ChangeRequest) -> list[ChangedField]:
        return deployment_evidence.diff(change)

    def render(self, change: ChangeRequest) -> RenderedRevision | None:
        return deployment_evidence.render(change)

    def evidence(
        self, change: ChangeRequest, rendered: RenderedRevision | None
    ) -> Mapping[str, Any]:
        return deployment_evidence.evidence(change, rendered)

    def guards(self, change: ChangeRequest) -> list[GuardLine]:
        return guard_lines.list_guard_lines(change)

    def list_golden_ids(self, change: ChangeRequest) -> tuple[int, ...]:
        return deployment_evidence.list_golden_ids(change)

    def metadata(self, change: ChangeRequest) -> Mapping[str, Any]:
        metadata: Mapping[str, Any] = change.revision.version.metadata if change.revision else {}
        return metadata

    def checks(
        self, change: ChangeRequest, rendered: RenderedRevision | None
    ) -> tuple[tuple[Check, ...], Cost | None]:
        if rendered is None:
            return (), None
        deployment = deployment_of(change)
        repeated = preflight.evaluate_revision(
            deployment=deployment,
            version=rendered.version,
            spec=rendered.spec,
            number=rendered.served.number,
            is_in_place=change.kind in _IN_PLACE,
            overlap_seconds=plan_figures.overlap_seconds(
                deployment, change.kind, plans.plan_of(change)
            ),
            without_change_id=change.pk,
            revision=rendered,
            baseline=_baseline(change, rendered),
        )
        default_scaling = _default_scaling(change.checks, repeated.checks)
        entered = _environment_checks(change, rendered)
        return (*entered, *default_scaling, *repeated.checks), repeated.cost

    def promotion(self, change: ChangeRequest) -> Mapping[str, Any]:
        return deployment_evidence.promotion_of(change)

    def require_all(self, checks: Sequence[Check]) -> None:
        refusals.require_all(checks)

    def require_still_possible(
        self, change: ChangeRequest, rendered: RenderedRevision | None
    ) -> None:
        """Check again that no version was archived, and that no other approval took the quota or a name of a model."""
        if rendered is None:
            return
        for version in (rendered.version, *rendered.additional):
            version.refresh_from_db(fields=["state"])
            check = revision_checks.check_version(version)
            if check.is_refusal:
                raise Invalid(f"{check.detail} {check.fix}", code="version_not_ready")
        self.require_all(_check_names(change, rendered))
        is_in_place = change.kind == ChangeKind.SCALE
        quota = quota_checks.check_quota(
            change.team,
            rendered.spec,
            quotas.list_running(change.team),
            without_change_id=change.pk,
            without_deployment_id=change.deployment_id if is_in_place else None,
            baseline=_baseline(change, rendered),
        )
        if quota.is_refusal:
            raise QuotaExceeded(f"{quota.detail} {quota.fix}")

    def retire_unbegun(self, change: ChangeRequest, *, actor: Actor, reason: str) -> None:
        deployment = deployment_of(change)
        if deployment.stable_revision_id is not None:
            return
        Deployment.objects.filter(pk=deployment.pk, is_retired=False).update(
            is_retired=True,
            state=DeploymentState.RETIRED,
            state_reason=reason,
            next_check_at=None,
        )
        trail.record(
            actor=actor,
            action=audit_actions.DEPLOYMENT_RETIRED,
            obj=deployment,
            team_slug=change.team.slug,
            before={"state": deployment.state},
            after={"state": DeploymentState.RETIRED},
            reason=reason,
        )

    def note(self, change: ChangeRequest, *, kind: str, message: str, actor: Actor) -> None:
        timeline.note(
            deployment=deployment_of(change),
            kind=kind,
            message=message,
            actor=actor,
            revision_number=change.revision.number if change.revision else None,
        )


def _check_names(change: ChangeRequest, rendered: RenderedRevision) -> list[Check]:
    deployment = deployment_of(change)
    return team_address_checks.check(
        spec=rendered.spec,
        model=rendered.version.model.name,
        team_id=deployment.team_id,
        cluster_id=deployment.cluster_id,
        deployment_id=deployment.pk,
    )


def _baseline(change: ChangeRequest, rendered: RenderedRevision) -> ServingSpec | None:
    return baselines.spec_of(deployment_of(change), plans.plan_of(change), rendered.spec)


def _environment_checks(change: ChangeRequest, rendered: RenderedRevision) -> list[Check]:
    """Check the rules of the environment again, which may have become stricter since the request."""
    deployment = deployment_of(change)
    checks = environment_checks.check_change(
        environment=deployment.environment,
        team_id=deployment.team_id,
        kind=change.kind,
        version=rendered.version,
        spec=rendered.spec,
        additional=rendered.additional,
        current=rendering.stable_spec_of(deployment),
    )
    if change.kind != ChangeKind.DEPLOY:
        return checks
    place = environment_checks.check_place(
        environment=deployment.environment,
        cluster_id=deployment.cluster_id,
        cluster=deployment.cluster.name,
        namespace=deployment.namespace,
        name=deployment.name,
    )
    return [*place, *checks]


def _default_scaling(before: Sequence[Mapping[str, Any]], now: Sequence[Check]) -> list[Check]:
    """Return the check of the autoscaler that the request got by default: only the request knew that it named none."""
    if any(check.name == scaling_checks.NAME for check in now):
        return []
    return [Check.from_json(row) for row in before if row["name"] == scaling_checks.NAME]
