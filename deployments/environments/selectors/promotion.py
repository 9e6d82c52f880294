"""Reads what an earlier environment of the same team showed of a version."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime

from django.db.models import Max, Q, QuerySet

from deployments.environments.domain import promotion
from deployments.environments.domain.promotion import Golden, PromotionEvidence
from deployments.models import (
    ChangeRequest,
    DeploymentHealth,
    GoldenRequest,
    GoldenRun,
    ModelVersion,
    Revision,
    Rollout,
)
from deployments.spec.domain.model_settings import MAX_ADDITIONAL_MODELS
from deployments.states import (
    ChangeKind,
    ChangeState,
    HealthVerdict,
    ProbePurpose,
    ProbeVerdict,
    RolloutPhase,
)

_MOST_REVISIONS = 20


@dataclass(frozen=True, slots=True)
class _GoldenState:
    verdict: Golden
    detail: str
    at: datetime | None = None


def evidence_of(version: ModelVersion, *, team_id: int, source: str) -> PromotionEvidence | None:
    """Return the best evidence of `version` in the environment `source`. None if it never was there.

    Only revisions of exactly this version count. Its files and settings that are read from the bucket cannot change
    once it is registered.
    """
    rows = _revisions(team_id, source).filter(version=version)
    return promotion.best_of(_evidence(row) for row in rows[:_MOST_REVISIONS])


def evidence_of_loaded(
    version: ModelVersion, *, team_id: int, source: str
) -> PromotionEvidence | None:
    """Return evidence as `evidence_of` does, where a Triton that loaded the version beside another model's counts
    too.
    """
    is_loaded = Q(version=version)
    for place in range(MAX_ADDITIONAL_MODELS):
        listed = f"spec__additional_models__{place}"
        names = {f"{listed}__model": version.model.name, f"{listed}__version": version.number}
        is_loaded |= Q(**names)
    rows = _revisions(team_id, source).filter(is_loaded)
    best = promotion.best_of(_evidence(row) for row in rows[:_MOST_REVISIONS])
    return best and replace(best, version=version.label, identity=_identity_of(version))


def _revisions(team_id: int, source: str) -> QuerySet[Revision]:
    """Return the team's revisions in the environment, the newest first."""
    rows = Revision.objects.filter(
        baseline_of=None, deployment__team=team_id, deployment__environment=source
    )
    return rows.select_related("deployment__team", "version__model__team").order_by("-pk")


def _evidence(revision: Revision) -> PromotionEvidence:
    deployment, version = revision.deployment, revision.version
    rollout = Rollout.objects.filter(candidate_revision=revision).first()
    is_finished, progress, finished_at = (
        _first_deployment(revision) if rollout is None else _rollout(rollout)
    )
    golden = _golden_state(revision, rollout)
    return PromotionEvidence(
        environment=deployment.environment,
        deployment_id=deployment.pk,
        deployment=str(deployment),
        revision_id=revision.pk,
        revision_number=revision.number,
        version=version.label,
        identity=_identity_of(version),
        rollout_id=rollout.pk if rollout else None,
        is_finished=is_finished,
        progress=progress,
        finished_at=finished_at,
        golden=golden.verdict,
        golden_detail=golden.detail,
        golden_at=golden.at,
    )


def _identity_of(version: ModelVersion) -> tuple[str, ...]:
    if version.source_uri:
        return (version.source_uri,)
    return (version.bucket, version.upload_prefix, version.sha256)


def _first_deployment(revision: Revision) -> tuple[bool, str, datetime | None]:
    """Return the progress of a first revision, which gets all requests at once: it is finished when it became ready."""
    change = ChangeRequest.objects.filter(revision=revision, kind=ChangeKind.DEPLOY).first()
    if change is None:
        return False, "was never rolled out", None
    at = revision.deployment.first_ready_at
    if change.state == ChangeState.DONE and at is not None:
        return True, "first deployment, ready", at
    return False, f"first deployment, request {change.state}", None


def _rollout(rollout: Rollout) -> tuple[bool, str, datetime | None]:
    if rollout.phase == RolloutPhase.COMPLETED:
        return True, "rollout completed", rollout.finished_at
    return False, f"rollout {rollout.phase}", None


def _golden_state(revision: Revision, rollout: Rollout | None) -> _GoldenState:
    """Return the latest result of golden requests: that of the quality watch of the stable revision, else of the
    run before traffic.
    """
    current = GoldenRequest.objects.filter(model=revision.version.model_id, retired_at=None)
    newest = current.aggregate(newest=Max("created_at"))["newest"]
    if newest is None:
        return _GoldenState(Golden.NONE, "the model has no golden requests")
    watched = _watched(revision, newest)
    if watched is not None:
        return watched
    keys = set(current.values_list("pk", flat=True))
    return _before_traffic(rollout, keys) or _GoldenState(
        Golden.NOT_RUN, "its golden requests were not all answered yet"
    )


def _watched(revision: Revision, newest: datetime) -> _GoldenState | None:
    """Return the verdict of the watch. None while it has not sent every present golden request to this revision."""
    health = DeploymentHealth.objects.filter(revision=revision).first()
    at = health.golden_checked_at if health else None
    if health is None or at is None or at < newest:
        return None
    verdicts = {HealthVerdict.OK.value: Golden.PASSED, HealthVerdict.FAILED.value: Golden.FAILED}
    verdict = verdicts.get(health.golden_verdict)
    return None if verdict is None else _GoldenState(verdict, health.golden_message, at)


def _before_traffic(rollout: Rollout | None, keys: set[int]) -> _GoldenState | None:
    run = GoldenRun.objects.filter(rollout=rollout, purpose=ProbePurpose.BEFORE_TRAFFIC).first()
    if rollout is None or run is None:
        return None
    if run.verdict == ProbeVerdict.FAILED:
        return _GoldenState(Golden.FAILED, run.message, run.checked_at)
    answered = run.results.filter(verdict=ProbeVerdict.PASSED).values_list("golden_id", flat=True)
    if run.verdict != ProbeVerdict.PASSED or not keys <= set(answered):
        return None
    count = len(keys)
    detail = f"{count} of {count} golden requests passed before traffic"
    return _GoldenState(Golden.PASSED, detail, run.checked_at)
