"""Declare the batching and input sizes of a version, and verify it again with them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from deployments import rejections
from deployments.models import ModelVersion
from deployments.registry.domain import declarations, declared_tensors, input_sizes, signatures
from deployments.registry.domain.declarations import Declaration
from deployments.registry.domain.formats import catalogue
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
    supports_batching: bool | None,
    max_batch_size: int,
    largest_inputs: dict[str, Any],
    inputs: Sequence[Mapping[str, Any]] = (),
    outputs: Sequence[Mapping[str, Any]] = (),
    compute_capability: str = "",
) -> ModelVersion:
    """Store the declaration of a version. Raises Conflict once a revision uses the version, because its
    configuration was approved.

    An unchanged declaration has no effect.
    """
    version = versions.get_version(actor=actor, version_id=version_id)
    policy.require(actor, Action.UPLOAD, version)
    declaration = validate(
        supports_batching=supports_batching,
        max_batch_size=max_batch_size,
        largest_inputs=largest_inputs,
        inputs=inputs,
        outputs=outputs,
        compute_capability=compute_capability,
    )
    _require_declarable(version)
    if (declaration.inputs or declaration.outputs) and not catalogue.is_declared(version.format):
        message = (
            f"{version.filename} states its inputs and outputs itself. Remove the declared ones."
        )
        raise Invalid(message, fields={"inputs": message})
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
    *,
    supports_batching: bool | None,
    max_batch_size: int,
    largest_inputs: dict[str, Any],
    inputs: Sequence[Mapping[str, Any]] = (),
    outputs: Sequence[Mapping[str, Any]] = (),
    compute_capability: str = "",
) -> Declaration:
    """Check a declaration. Raises Invalid with the problem of each field."""
    with rejections.as_invalid():
        return declarations.check(
            supports_batching=supports_batching,
            max_batch_size=max_batch_size,
            largest_inputs=largest_inputs,
            inputs=declared_tensors.from_json(inputs),
            outputs=declared_tensors.from_json(outputs),
            compute_capability=compute_capability,
        )


def _require_declarable(version: ModelVersion) -> None:
    if version.source_uri:
        raise Conflict(
            f"{version.label} is a reference: its engine controls batching and sizes.",
            code="by_reference",
        )
    is_undeclared = version.state == VersionState.QUARANTINED and catalogue.is_declared(
        version.format
    )
    is_ready = version.state == VersionState.READY and version.deadline_at is None
    if not is_ready and not is_undeclared:
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
