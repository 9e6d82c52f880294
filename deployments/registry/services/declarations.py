"""Declare the batching and input sizes of a version, and verify it again with them."""

from __future__ import annotations

from typing import Any

from deployments import rejections
from deployments.models import ModelVersion
from deployments.registry.domain import declarations, input_sizes, signatures
from deployments.registry.domain.declarations import Declaration
from deployments.registry.selectors import versions
from deployments.registry.services import transitions
from deployments.states import VersionState
from portal.accounts import policy
from portal.accounts.models import User
from portal.accounts.policy import Action
from portal.core.errors import Conflict, Invalid


def declare(
    *,
    actor: User,
    version_id: int,
    takes_batches: bool | None,
    largest_batch: int,
    largest_inputs: dict[str, Any],
) -> ModelVersion:
    """Raises Conflict once a revision uses the version, because its configuration was approved.

    An unchanged declaration has no effect.
    """
    version = versions.get_version(actor=actor, version_id=version_id)
    policy.require(actor, Action.UPLOAD, version)
    declaration = validate(
        takes_batches=takes_batches, largest_batch=largest_batch, largest_inputs=largest_inputs
    )
    _require_declarable(version)
    signature = signatures.from_json(version.signature)
    problems = input_sizes.problems_with(signature, declaration.largest_inputs)
    if problems:
        message = " ".join(problems.values())
        raise Invalid(message, fields={"largest_inputs": message})
    if declaration.to_json() != version.declared:
        transitions.to_declared(version=version, actor=actor, declared=declaration.to_json())
    return version


def can_declare(actor: User, version: ModelVersion) -> bool:
    """Whether `declare` is possible now."""
    if not policy.is_allowed(actor, Action.UPLOAD, version):
        return False
    try:
        _require_declarable(version)
    except Conflict:
        return False
    return True


def validate(
    *, takes_batches: bool | None, largest_batch: int, largest_inputs: dict[str, Any]
) -> Declaration:
    """Raises Invalid with the problem of each field."""
    with rejections.as_invalid():
        return declarations.check(
            takes_batches=takes_batches, largest_batch=largest_batch, largest_inputs=largest_inputs
        )


def _require_declarable(version: ModelVersion) -> None:
    if version.source_uri:
        raise Conflict(
            f"{version.label} is a reference: its engine controls batching and sizes.",
            code="by_reference",
        )
    if version.state != VersionState.READY or version.deadline_at is not None:
        raise Conflict(
            f"{version.label} is {version.state}. You can declare batching and sizes once it "
            "is ready, unless it is released from quarantine.",
            code="wrong_state",
        )
    if versions.is_used_by_a_revision(version):
        raise Conflict(
            f"A revision uses {version.label}, so its approved configuration can't change. "
            "Upload the file again with this declaration.",
            code="version_in_use",
        )
    aliases = ", ".join(alias.name for alias in version.aliases.all())
    if aliases:
        raise Conflict(
            f"{version.label} has the alias {aliases}. Move the alias to another version first.",
            code="still_aliased",
        )
