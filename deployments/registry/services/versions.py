"""Archive, restore and release verified versions."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from deployments.models import Deployment, ModelVersion
from deployments.registry.domain import verification_steps
from deployments.registry.domain.formats import catalogue
from deployments.registry.domain.scanning import verdicts
from deployments.registry.domain.scanning.releases import Release
from deployments.registry.selectors import versions
from deployments.registry.services import transitions
from deployments.states import VersionState
from portal.accounts import policy
from portal.accounts.local import step_up
from portal.accounts.models import User
from portal.accounts.policy import Action
from portal.core import clock
from portal.core.errors import Conflict, Invalid

MAX_RELEASE_DAYS: Final = 365
READ_STEP: Final = "Inputs and outputs"


def archive(*, actor: User, version_id: int, reason: str = "") -> ModelVersion:
    """Make the version undeployable. Raises Conflict while it serves or has an alias."""
    version = versions.get_version(actor=actor, version_id=version_id)
    policy.require(actor, Action.UPLOAD, version)
    _require_state(version, VersionState.READY, VersionState.QUARANTINED)
    serving = versions.deployments_serving([version.pk]).get(version.pk, [])
    if serving:
        raise Conflict(
            f"{version.label} serves {_names(serving)}. Move those deployments to another "
            "version first.",
            code="still_serving",
        )
    aliases = ", ".join(alias.name for alias in version.aliases.all())
    if aliases:
        raise Conflict(
            f"{version.label} has the alias {aliases}. Move the alias to another version first.",
            code="still_aliased",
        )
    transitions.to_archived(version=version, actor=actor, reason=reason)
    return version


def restore(*, actor: User, version_id: int) -> ModelVersion:
    """Make an archived version deployable again. Raises Conflict if it was quarantined."""
    version = versions.get_version(actor=actor, version_id=version_id)
    policy.require(actor, Action.UPLOAD, version)
    _require_state(version, VersionState.ARCHIVED)
    is_over = version.deadline_at is not None and version.deadline_at <= clock.now()
    if version.ready_at is None or is_over:
        raise Conflict(
            f"{version.label} was quarantined ({version.state_reason}) and has no active "
            "release. Upload a fixed file as a new version.",
            code="quarantined",
        )
    transitions.to_restored(version=version, actor=actor)
    return version


def release(*, actor: User, version_id: int, reason: str, days: int) -> ModelVersion:
    """Allow deployments of a quarantined version for some days. Platform admins only.

    A version that was not read because of its scan is verified to its end first. Raises Conflict where no
    engine would serve it all the same.
    """
    version = versions.get_version(actor=actor, version_id=version_id)
    policy.require(actor, Action.RELEASE_QUARANTINE, version, requester_id=version.created_by_id)
    step_up.require(actor)
    _require_state(version, VersionState.QUARANTINED)
    problems = {}
    if not reason.strip():
        problems["reason"] = "Explain why this is safe. The audit log keeps the reason."
    if not 1 <= days <= MAX_RELEASE_DAYS:
        problems["days"] = f"A release lasts 1 to {MAX_RELEASE_DAYS} days."
    if problems:
        raise Invalid(" ".join(problems.values()), fields=problems)
    if not can_have_effect(version):
        raise Conflict(
            f"No engine supports {version.filename} ({version.format}), so a release has no "
            f"effect. {version.state_reason}",
            code="not_servable",
        )
    if catalogue.is_declared(version.format) and not version.declared.get("inputs"):
        raise Conflict(
            f"The inputs and outputs of {version.label} are not declared, so a release has no effect yet. "
            "Declare them first.",
            code="not_declared",
        )
    report = verdicts.from_json(version.scan)
    granted = Release(
        by=actor.username,
        reason=reason.strip(),
        until=clock.now() + timedelta(days=days),
        findings=frozenset() if report is None else report.decided_on,
    )
    transitions.to_released(version=version, actor=actor, release=granted)
    return version


def can_have_effect(version: ModelVersion) -> bool:
    """Whether an engine exists for what the format is converted to or read as. The last reading of a file
    that is read before its release says so too.
    """
    if version.repository_prefix or not version.format:
        return True
    kind = catalogue.by_key(version.format)
    return kind.can_be_released and not (
        kind.is_read_before_release and verification_steps.has_failed(version.checks, READ_STEP)
    )


def _require_state(version: ModelVersion, *states: VersionState) -> None:
    if version.state not in states:
        allowed = " or ".join(states)
        raise Conflict(
            f"{version.label} is {version.state}; it must be {allowed}.",
            code="wrong_state",
        )


def _names(serving: list[Deployment]) -> str:
    return ", ".join(deployment.name for deployment in serving[:3])
