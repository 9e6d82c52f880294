"""What people decide about a version once it is verified: archive, restore, release."""

from __future__ import annotations

from typing import Final

from deployments.domain.states import VersionState
from deployments.models import Deployment, ModelVersion
from deployments.selectors import registry
from deployments.services import version_states
from portal.accounts import policy
from portal.accounts.models import User
from portal.accounts.policy import Action
from portal.core import clock
from portal.core.errors import Conflict, Invalid

LONGEST_RELEASE_DAYS: Final = 365


def archive(*, actor: User, version_id: int, reason: str = "") -> ModelVersion:
    """Take the version out of what can be deployed. Raises Conflict while it serves or is aliased."""
    version = registry.get_version(actor=actor, version_id=version_id)
    policy.require(actor, Action.UPLOAD, version)
    _require_state(version, VersionState.READY, VersionState.QUARANTINED)
    serving = registry.deployments_serving([version.pk]).get(version.pk, [])
    if serving:
        raise Conflict(
            f"{version.label} serves {_names(serving)}. Move that to another version first.",
            code="still_serving",
        )
    aliases = ", ".join(alias.name for alias in version.aliases.all())
    if aliases:
        raise Conflict(
            f"{version.label} is called {aliases}. Move the alias to another version first.",
            code="still_aliased",
        )
    version_states.to_archived(version=version, actor=actor, reason=reason)
    return version


def restore(*, actor: User, version_id: int) -> ModelVersion:
    """Make an archived version deployable again, unless it was in quarantine when archived."""
    version = registry.get_version(actor=actor, version_id=version_id)
    policy.require(actor, Action.UPLOAD, version)
    _require_state(version, VersionState.ARCHIVED)
    is_over = version.deadline_at is not None and version.deadline_at <= clock.now()
    if version.ready_at is None or is_over:
        raise Conflict(
            f"{version.label} was quarantined ({version.state_reason}) and has no release that "
            "still holds. Upload a mended file as a new version.",
            code="quarantined",
        )
    version_states.to_restored(version=version, actor=actor)
    return version


def release(*, actor: User, version_id: int, reason: str, days: int) -> ModelVersion:
    """Let a quarantined version be deployed for some days. Platform admins only, with a reason."""
    version = registry.get_version(actor=actor, version_id=version_id)
    policy.require(actor, Action.RELEASE_QUARANTINE, version)
    _require_state(version, VersionState.QUARANTINED)
    problems = {}
    if not reason.strip():
        problems["reason"] = "Say why this is safe; it stays in the audit trail."
    if not 1 <= days <= LONGEST_RELEASE_DAYS:
        problems["days"] = f"A release holds 1 to {LONGEST_RELEASE_DAYS} days."
    if problems:
        raise Invalid(" ".join(problems.values()), fields=problems)
    if not version.repository_prefix:
        raise Conflict(
            f"No engine here can serve {version.filename} ({version.format}), so releasing it "
            "would change nothing. Export it to ONNX.",
            code="not_servable",
        )
    version_states.to_released(version=version, actor=actor, reason=reason.strip(), days=days)
    return version


def _require_state(version: ModelVersion, *states: VersionState) -> None:
    if version.state not in states:
        wanted = " or ".join(states)
        raise Conflict(
            f"{version.label} is {version.state}; this works only while it is {wanted}.",
            code="wrong_state",
        )


def _names(serving: list[Deployment]) -> str:
    return ", ".join(deployment.name for deployment in serving[:3])
