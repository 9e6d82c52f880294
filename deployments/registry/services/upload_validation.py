"""Validate what a client declares about a file before uploading it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from django.conf import settings

from deployments.models import ModelVersion
from deployments.registry.domain import declarations, formats
from deployments.registry.domain.multipart import PartPlan
from deployments.registry.services import metadata as metadata_service
from deployments.spec.domain import model_names
from deployments.states import VersionState
from portal.accounts.models import Team
from portal.core.definitions import Rejected
from portal.core.errors import Conflict, Invalid

MAX_SIGNED_PARTS: Final = 50


@dataclass(frozen=True, slots=True)
class UploadDraft:
    """The client's declarations about the file."""

    filename: str
    size_bytes: int
    sha256: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict)
    # See deployments/registry/domain/declarations.py. Empty declares nothing.
    declared: Mapping[str, Any] = field(default_factory=dict)
    has_part_checksums: bool = False
    is_duplicate_allowed: bool = False
    description: str = ""
    # The first formats.HEAD_BYTES bytes of the file, if the client sends them.
    head: bytes = b""


def check(model_name: str, draft: UploadDraft) -> dict[str, Any]:
    """Raises Invalid with all problems at once, so that a form shows each at its field."""
    limit = settings.SLIPWAY_MAX_UPLOAD_BYTES
    problems = {
        "model": model_names.model_name_problem(model_name),
        "filename": model_names.filename_problem(draft.filename) or _format_problem(draft),
    }
    if draft.size_bytes <= 0:
        problems["size_bytes"] = "The file is empty; choose the exported model."
    elif draft.size_bytes > limit:
        problems["size_bytes"] = f"The file is larger than the limit of {limit // 2**30} GiB."
    elif draft.filename.endswith(".onnx") and draft.size_bytes > formats.MAX_ONNX_BYTES:
        problems["size_bytes"] = "An ONNX file cannot be larger than 2 GiB; quantise the model."
    if draft.sha256 and not model_names.is_sha256(draft.sha256):
        problems["sha256"] = "Enter the SHA-256 as 64 lowercase hexadecimal digits."
    cleaned, metadata_problems = metadata_service.clean(draft.metadata)
    invalid_fields = {
        name: message for name, message in problems.items() if message
    } | metadata_problems
    invalid_fields |= _problems_of_declared(draft)
    if invalid_fields:
        raise Invalid(" ".join(invalid_fields.values()), fields=invalid_fields)
    return cleaned


def _format_problem(draft: UploadDraft) -> str:
    """The problem of the format, from the first bytes, or from the name without them."""
    if not draft.head:
        return formats.name_problem(draft.filename)
    kind = formats.detect(draft.head[: formats.HEAD_BYTES], draft.filename)
    if formats.is_accepted(kind):
        return ""
    advice = formats.advice(kind)
    return f"{draft.filename} is {advice.name}. {advice.fix}"


def declared_of(draft: UploadDraft) -> dict[str, Any]:
    """The declaration as stored; empty if nothing was declared."""
    return declarations.from_json(draft.declared).to_json() if draft.declared else {}


def _problems_of_declared(draft: UploadDraft) -> dict[str, str]:
    try:
        declared_of(draft)
    except Rejected as error:
        return {f"declared.{name}": message for name, message in error.fields.items()}
    return {}


def refuse_duplicate(team: Team, model_name: str, sha256: str) -> None:
    duplicate = (
        ModelVersion.objects.filter(model__team=team, model__name=model_name, sha256=sha256)
        .exclude(state=VersionState.FAILED)
        .first()
    )
    if duplicate is not None:
        raise Conflict(
            f"This file is already version {duplicate.number} of {model_name} ({duplicate.state}). Use "
            "that version, or upload the file again anyway.",
            code="same_bytes",
            fields={"sha256": f"version {duplicate.number}"},
        )


def check_numbers(numbers: Sequence[int], plan: PartPlan) -> None:
    if not 1 <= len(numbers) <= MAX_SIGNED_PARTS:
        raise Invalid(
            f"Request 1 to {MAX_SIGNED_PARTS} parts at once.",
            fields={"numbers": f"1 to {MAX_SIGNED_PARTS} part numbers"},
        )
    invalid = [number for number in numbers if not 1 <= number <= plan.count]
    if invalid:
        raise Invalid(
            f"Part numbers must be 1 to {plan.count}; got {invalid[0]}.",
            fields={"numbers": f"1 to {plan.count}"},
        )
