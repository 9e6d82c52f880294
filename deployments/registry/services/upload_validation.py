"""What a client says of a file before sending it, and what of that is refused at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from django.conf import settings

from deployments.errors import Rejected
from deployments.models import ModelVersion
from deployments.registry.domain import declarations, formats
from deployments.registry.domain.multipart import PartPlan
from deployments.registry.services import metadata as stated
from deployments.spec.domain import model_names
from deployments.states import VersionState
from portal.accounts.models import Team
from portal.core.errors import Conflict, Invalid

MOST_SIGNED_AT_ONCE: Final = 50


@dataclass(frozen=True, slots=True)
class UploadDraft:
    """What the client says of the file before sending it."""

    filename: str
    size_bytes: int
    sha256: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict)
    # As in deployments/registry/domain/declarations.py; empty declares nothing.
    declared: Mapping[str, Any] = field(default_factory=dict)
    has_part_checksums: bool = False
    is_duplicate_allowed: bool = False
    description: str = ""
    # The first formats.HEAD_BYTES bytes of the file, where the client sends them.
    head: bytes = b""


def check(model_name: str, draft: UploadDraft) -> dict[str, Any]:
    """All problems at once, so that a form can show each beside its field."""
    most = settings.SLIPWAY_MAX_UPLOAD_BYTES
    problems = {
        "model": model_names.model_name_problem(model_name),
        "filename": model_names.filename_problem(draft.filename) or _format_problem(draft),
    }
    if draft.size_bytes <= 0:
        problems["size_bytes"] = "The file is empty; choose the exported model."
    elif draft.size_bytes > most:
        problems["size_bytes"] = f"The file is larger than the limit of {most // 2**30} GiB."
    elif draft.filename.endswith(".onnx") and draft.size_bytes > formats.LARGEST_ONNX_BYTES:
        problems["size_bytes"] = "An ONNX file cannot be larger than 2 GiB; quantise the model."
    if draft.sha256 and not model_names.is_sha256(draft.sha256):
        problems["sha256"] = "Enter the SHA-256 as 64 lowercase hexadecimal digits."
    cleaned, metadata_problems = stated.clean(draft.metadata)
    found = {name: words for name, words in problems.items() if words} | metadata_problems
    found |= _problems_of_declared(draft)
    if found:
        raise Invalid(" ".join(found.values()), fields=found)
    return cleaned


def _format_problem(draft: UploadDraft) -> str:
    """What the beginning of the file says, before any of it is sent; without it the name decides."""
    if not draft.head:
        return formats.name_problem(draft.filename)
    kind = formats.detect(draft.head[: formats.HEAD_BYTES], draft.filename)
    if formats.is_taken(kind):
        return ""
    advice = formats.advice(kind)
    return f"{draft.filename} is {advice.name}. {advice.fix}"


def declared_of(draft: UploadDraft) -> dict[str, Any]:
    """As the row keeps it; empty when nothing was declared."""
    return declarations.from_json(draft.declared).to_json() if draft.declared else {}


def _problems_of_declared(draft: UploadDraft) -> dict[str, str]:
    try:
        declared_of(draft)
    except Rejected as error:
        return {f"declared.{name}": words for name, words in error.fields.items()}
    return {}


def refuse_same_bytes(team: Team, model_name: str, sha256: str) -> None:
    twin = (
        ModelVersion.objects.filter(model__team=team, model__name=model_name, sha256=sha256)
        .exclude(state=VersionState.FAILED)
        .first()
    )
    if twin is not None:
        raise Conflict(
            f"This file is already version {twin.number} of {model_name} ({twin.state}). Use "
            "that version, or upload the file again anyway.",
            code="same_bytes",
            fields={"sha256": f"version {twin.number}"},
        )


def check_numbers(numbers: Sequence[int], plan: PartPlan) -> None:
    if not 1 <= len(numbers) <= MOST_SIGNED_AT_ONCE:
        raise Invalid(
            f"Request 1 to {MOST_SIGNED_AT_ONCE} parts at once.",
            fields={"numbers": f"1 to {MOST_SIGNED_AT_ONCE} part numbers"},
        )
    wrong = [number for number in numbers if not 1 <= number <= plan.count]
    if wrong:
        raise Invalid(
            f"Part numbers must be 1 to {plan.count}; got {wrong[0]}.",
            fields={"numbers": f"1 to {plan.count}"},
        )
