"""Stop the verification of an upload, or discard it."""

from __future__ import annotations

from django.db import transaction
from django.db.models import ProtectedError

from deployments.models import Model, ModelVersion
from deployments.registry.selectors import versions
from deployments.registry.services import transitions
from deployments.states import VersionState
from portal.accounts import policy
from portal.accounts.models import User
from portal.accounts.policy import Action
from portal.audit import trail
from portal.audit.actions import register
from portal.core import clock
from portal.core.errors import Conflict
from portal.core.wakeups import wake

DISCARDED = register("version.discarded", "discarded the upload of")


def stop_verification(*, actor: User, version_id: int) -> ModelVersion:
    """Stop a verification. The version fails, or returns to its previous values if it was ready before. The
    worker that examines it notices within seconds and ends its process.
    """
    version = versions.get_version(actor=actor, version_id=version_id)
    policy.require(actor, Action.UPLOAD, version)
    if version.state != VersionState.VERIFYING:
        raise Conflict(
            f"{version.label} is {version.state}; it is not being verified.", code="wrong_state"
        )
    reason = f"{actor.username} stopped the verification."
    if version.former:
        reason = f"{actor.username} stopped the verification with a new declaration. {transitions.AS_BEFORE}"
        transitions.to_ready_again(version=version, actor=actor, reason=reason)
    elif version.release:
        reason = f"{actor.username} stopped the verification after its release."
        transitions.to_quarantined(version=version, actor=actor, reason=reason, facts={})
    else:
        transitions.to_failed(version=version, actor=actor, reason=reason)
    return version


def discard(*, actor: User, version_id: int) -> ModelVersion:
    """Hide a failed or unfinished upload.

    The next pass deletes its bytes and its row, and the model if it was created for this upload and
    has nothing else. The audit log keeps the history.
    """
    version = versions.get_version(actor=actor, version_id=version_id)
    policy.require(actor, Action.UPLOAD, version)
    if version.state not in (VersionState.UPLOADING, VersionState.FAILED):
        raise Conflict(
            f"{version.label} is {version.state}. Only failed and unfinished uploads can be "
            "discarded. Stop its verification first, or archive the version.",
            code="wrong_state",
        )
    with transaction.atomic():
        if version.state == VersionState.UPLOADING:
            reason = f"{actor.username} discarded the upload."
            transitions.to_failed(version=version, actor=actor, reason=reason)
        at = clock.now()
        rows = ModelVersion.objects.filter(pk=version.pk, discarded_at=None)
        if rows.update(discarded_at=at, next_check_at=at) == 1:
            trail.record(
                actor=actor,
                action=DISCARDED,
                obj=version,
                label=version.label,
                team_slug=version.team.slug,
                before={"filename": version.filename, "reason": version.state_reason},
            )
    wake(transitions.VERIFY_TASK, version.pk)
    return version


def remove_row(version: ModelVersion) -> bool:
    """Delete the row after its bytes. False if the version was not discarded and stays."""
    with transaction.atomic():
        rows = ModelVersion.objects.filter(
            pk=version.pk, state=VersionState.FAILED, discarded_at__isnull=False
        )
        if rows.delete()[0] == 0:
            return False
        _remove_empty_model(version)
    return True


def _remove_empty_model(version: ModelVersion) -> None:
    """Delete the model if it was created for this upload and is still empty."""
    model = version.model
    is_described = bool(model.description or model.task)
    if is_described and model.created_at < version.created_at:
        return
    if model.versions.exists() or model.aliases.exists():
        return
    try:
        with transaction.atomic():
            Model.objects.filter(pk=model.pk).delete()
    except ProtectedError:
        return
