"""What a client says of a file before sending it, and what of that is refused at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from django.conf import settings

from deployments.domain import model_names, onnx_files
from deployments.domain.parts import PartPlan
from deployments.domain.states import VersionState
from deployments.models import ModelVersion
from deployments.services import metadata as stated
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
    has_part_checksums: bool = False
    is_duplicate_allowed: bool = False
    description: str = ""


def check(model_name: str, draft: UploadDraft) -> dict[str, Any]:
    """All problems at once, so that a form can show each beside its field."""
    most = settings.SLIPWAY_MAX_UPLOAD_BYTES
    problems = {
        "model": model_names.model_name_problem(model_name),
        "filename": model_names.filename_problem(draft.filename),
    }
    if draft.size_bytes <= 0:
        problems["size_bytes"] = "The file is empty; choose the exported model."
    elif draft.size_bytes > most:
        problems["size_bytes"] = f"The file is larger than the limit of {most // 2**30} GiB."
    elif draft.filename.endswith(".onnx") and draft.size_bytes > onnx_files.LARGEST_BYTES:
        problems["size_bytes"] = "An ONNX file cannot be larger than 2 GiB; quantise the model."
    if draft.sha256 and not model_names.is_sha256(draft.sha256):
        problems["sha256"] = "Write the SHA-256 as 64 lower-case hexadecimal digits."
    cleaned, metadata_problems = stated.clean(draft.metadata)
    found = {name: words for name, words in problems.items() if words} | metadata_problems
    if found:
        raise Invalid(" ".join(found.values()), fields=found)
    return cleaned


def refuse_same_bytes(team: Team, model_name: str, sha256: str) -> None:
    twin = (
        ModelVersion.objects.filter(model__team=team, model__name=model_name, sha256=sha256)
        .exclude(state=VersionState.FAILED)
        .first()
    )
    if twin is not None:
        raise Conflict(
            f"These bytes are already version {twin.number} of {model_name} ({twin.state}). "
            "Use that one, or say that a second version of them is wanted.",
            code="same_bytes",
            fields={"sha256": f"version {twin.number}"},
        )


def check_numbers(numbers: Sequence[int], plan: PartPlan) -> None:
    if not 1 <= len(numbers) <= MOST_SIGNED_AT_ONCE:
        raise Invalid(
            f"Ask for 1 to {MOST_SIGNED_AT_ONCE} parts at once.",
            fields={"numbers": f"1 to {MOST_SIGNED_AT_ONCE} part numbers"},
        )
    wrong = [number for number in numbers if not 1 <= number <= plan.count]
    if wrong:
        raise Invalid(
            f"Part numbers go from 1 to {plan.count}; {wrong[0]} is none.",
            fields={"numbers": f"1 to {plan.count}"},
        )
