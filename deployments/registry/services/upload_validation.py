"""Validate what a client declares about an artifact before uploading it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from django.conf import settings
from django.db.models import Count, Q

from deployments.models import ModelVersion
from deployments.registry.domain import declarations
from deployments.registry.domain.artifacts import archives
from deployments.registry.domain.artifacts import files as artifact_files
from deployments.registry.domain.artifacts.heads import SentHeads
from deployments.registry.domain.formats import catalogue, onnx
from deployments.registry.domain.metadata import version_metadata
from deployments.registry.domain.multipart import PartPlan
from deployments.registry.services import metadata as metadata_service
from deployments.spec.domain import model_names
from deployments.states import VersionState
from portal.accounts import policy, teams
from portal.accounts.models import Team, User
from portal.accounts.policy import Action
from portal.core.definitions import Rejected
from portal.core.errors import Conflict, Invalid

MAX_SIGNED_PARTS: Final = 50
_MAX_LISTED: Final = 5
# Files whose first bytes are requested at once.
MAX_HEADS: Final = 32
_MAX_COMPARED: Final = 5


@dataclass(frozen=True, slots=True)
class DraftFile:
    """The client's declarations about a file. `path` is relative to the artifact."""

    path: str
    size_bytes: int
    sha256: str = ""
    # The first catalogue.HEAD_BYTES bytes of the file, if the client sends them.
    head: bytes = b""


@dataclass(frozen=True, slots=True)
class UploadDraft:
    """The client's declarations about an artifact."""

    files: Sequence[DraftFile]
    metadata: Mapping[str, Any] = field(default_factory=dict)
    readme: str = ""
    # See deployments/registry/domain/declarations.py. Empty declares nothing.
    declared: Mapping[str, Any] = field(default_factory=dict)
    has_part_checksums: bool = False
    is_duplicate_allowed: bool = False
    description: str = ""

    @property
    def size_bytes(self) -> int:
        return sum(file.size_bytes for file in self.files)

    @property
    def sha256(self) -> str:
        """The identity of the declared files; empty if a digest is missing."""
        if not all(file.sha256 for file in self.files):
            return ""
        return artifact_files.identity({file.path: file.sha256 for file in self.files})


@dataclass(frozen=True, slots=True)
class FormatVerdict:
    """The verdict on the format of an upload. `problem` says why the format is refused. Without
    `missing_heads`, the verdict is final.
    """

    name: str
    problem: str
    missing_heads: Sequence[str]


def check(model_name: str, draft: UploadDraft) -> dict[str, Any]:
    """Check an upload and return its metadata. Raises Invalid with all problems at once, so that a form shows
    each at its field.
    """
    problems = {
        "model": model_names.model_name_problem(model_name),
        "files": artifact_files.listing_problem([file.path for file in draft.files])
        or _size_problem(draft),
    }
    if not problems["files"]:
        for number, file in enumerate(draft.files):
            problems |= {
                f"files[{number}].{name}": problem for name, problem in _file_problems(file).items()
            }
        problems["files"] = "" if any(problems.values()) else _format_problem(draft)
    cleaned, metadata_problems = version_metadata.clean(draft.metadata)
    metadata_problems |= metadata_service.readme_problems(draft.readme)
    invalid_fields = {
        name: message for name, message in problems.items() if message
    } | metadata_problems
    invalid_fields |= _problems_of_declared(draft)
    if invalid_fields:
        messages = list(invalid_fields.values())
        more = [f"and {len(messages) - _MAX_LISTED:,} more problems."] * (
            len(messages) > _MAX_LISTED
        )
        raise Invalid(" ".join([*messages[:_MAX_LISTED], *more]), fields=invalid_fields)
    return cleaned


def _size_problem(draft: UploadDraft) -> str:
    limit = settings.SLIPWAY_MAX_VERSION_BYTES
    if draft.size_bytes == 0:
        return "The file is empty; choose the exported model."
    if draft.size_bytes > limit:
        return f"The files together are larger than the limit of {limit // 2**30:,} GiB."
    return ""


def _file_problems(file: DraftFile) -> dict[str, str]:
    limit = settings.SLIPWAY_MAX_UPLOAD_BYTES
    problems = {"path": artifact_files.path_problem(file.path)}
    if file.size_bytes < 0:
        problems["size_bytes"] = f"The size of {file.path[:80]} is negative."
    elif file.size_bytes > limit:
        problems["size_bytes"] = (
            f"{file.path[:80]} is larger than the limit of {limit // 2**30:,} GiB for a file."
        )
    elif file.path.endswith(".onnx") and file.size_bytes > onnx.MAX_BYTES:
        problems["size_bytes"] = (
            "An ONNX file cannot be larger than 2 GiB. Save its weights as external data: "
            "onnx.save_model(model, 'model.onnx', save_as_external_data=True), and upload the folder."
        )
    if file.sha256 and not model_names.is_sha256(file.sha256):
        problems["sha256"] = "Enter the SHA-256 as 64 lowercase hexadecimal digits."
    return problems


def files_problem(draft: UploadDraft) -> str:
    """Return the first problem of paths and sizes. Empty if there is none."""
    problem = artifact_files.listing_problem([file.path for file in draft.files])
    if problem or (problem := _size_problem(draft)):
        return problem
    problems = (p for file in draft.files for p in _file_problems(file).values())
    return next(filter(None, problems), "")


def detect_format(draft: UploadDraft) -> FormatVerdict:
    """Return the format by the first bytes that were sent. A format that needs others is not refused yet."""
    archive = archives.kind_of(draft.files[0].head) if len(draft.files) == 1 else ""
    if archive:
        # The worker unpacks it, or finds that it is a model.
        return FormatVerdict(f"{archive} archive, unpacked after the upload", "", ())
    artifact = SentHeads(
        heads={file.path: file.head[: catalogue.HEAD_BYTES] for file in draft.files},
        sizes={file.path: file.size_bytes for file in draft.files},
    )
    detected = catalogue.detect(artifact)
    missing = artifact.missing
    if not detected.format.is_accepted and not any(artifact.heads.values()):
        # Without any bytes nothing is refused.
        missing = set(artifact.sizes)
    is_refused = not detected.format.is_accepted and not missing
    name = artifact_files.display_name(list(artifact.sizes))
    return FormatVerdict(
        name=detected.format.name,
        problem=detected.describe_refusal(name) if is_refused else "",
        missing_heads=sorted(missing, key=lambda path: (path.count("/"), path)),
    )


def _format_problem(draft: UploadDraft) -> str:
    """Return the problem of the format, from the first bytes, or from the name of a single file without them."""
    if len(draft.files) == 1 and not draft.files[0].head:
        path = draft.files[0].path
        is_archive = path.lower().endswith(archives.ENDINGS)
        return "" if is_archive else catalogue.name_problem(path)
    return detect_format(draft).problem


def read_declared(draft: UploadDraft) -> dict[str, Any]:
    """Return the declaration as stored. Empty if nothing was declared."""
    return declarations.from_json(draft.declared).to_json() if draft.declared else {}


def _problems_of_declared(draft: UploadDraft) -> dict[str, str]:
    try:
        read_declared(draft)
    except Rejected as error:
        return {f"declared.{name}": message for name, message in error.fields.items()}
    return {}


def refuse_duplicate(team: Team, model_name: str, draft: UploadDraft) -> None:
    """Raise Conflict if a version of the model has exactly the declared files."""
    if not draft.sha256:
        return
    duplicate = (
        ModelVersion.objects.filter(model__team=team, model__name=model_name)
        .filter(Q(sha256=draft.sha256) | Q(archive_sha256=draft.sha256))
        .exclude(state=VersionState.FAILED)
        .first()
    )
    if duplicate is not None:
        these = "This file is" if len(draft.files) == 1 else "These exact files are"
        raise Conflict(
            f"{these} already version {duplicate.number} of {model_name} ({duplicate.state}). Use "
            "that version, or upload again anyway.",
            code="same_bytes",
            fields={"sha256": f"version {duplicate.number}"},
        )


def check_count(numbers: Sequence[Sequence[int]]) -> None:
    """Check the number of parts of all files together, of which each has at least one. Raises Invalid."""
    count = sum(map(len, numbers))
    if not all(numbers) or not 1 <= count <= MAX_SIGNED_PARTS:
        raise Invalid(
            f"Request 1 to {MAX_SIGNED_PARTS} parts at once.",
            fields={"numbers": f"1 to {MAX_SIGNED_PARTS} part numbers"},
        )


def check_numbers(numbers: Sequence[int], plan: PartPlan) -> None:
    invalid = [number for number in numbers if not 1 <= number <= plan.count]
    if invalid:
        raise Invalid(
            f"Part numbers must be 1 to {plan.count}; got {invalid[0]}.",
            fields={"numbers": f"1 to {plan.count}"},
        )


@dataclass(frozen=True, slots=True)
class UploadPreview:
    """The preview of an upload. `needed_heads` are the paths whose first bytes decide the format; until they
    are sent, `format_name` is empty. `problem` says why the artifact would be refused. `same_sizes` are
    versions of the model with files of exactly these paths and sizes, newest first: their digests tell
    whether these are the same files.
    """

    format_name: str = ""
    problem: str = ""
    needed_heads: Sequence[str] = ()
    same_sizes: Sequence[ModelVersion] = ()


def preview(*, actor: User, team_slug: str, model_name: str, draft: UploadDraft) -> UploadPreview:
    """Say what these files are. The name of the model may be empty or new. Changes nothing."""
    team = teams.get_visible(actor=actor, slug=team_slug)
    policy.require(actor, Action.UPLOAD, team)
    problem = files_problem(draft)
    if problem:
        return UploadPreview(problem=problem)
    verdict = detect_format(draft)
    return UploadPreview(
        format_name="" if verdict.missing_heads else verdict.name,
        problem=verdict.problem,
        needed_heads=verdict.missing_heads[:MAX_HEADS],
        same_sizes=_same_sizes(team, model_name, draft),
    )


def _same_sizes(team: Team, model_name: str, draft: UploadDraft) -> list[ModelVersion]:
    if model_names.model_name_problem(model_name):
        return []
    candidates = (
        ModelVersion.objects.filter(
            model__team=team, model__name=model_name, declared_size_bytes=draft.size_bytes
        )
        .exclude(state__in=(VersionState.FAILED, VersionState.UPLOADING))
        .exclude(sha256="")
        .annotate(file_count=Count("files"))
        .filter(file_count=len(draft.files))
        .order_by("-number")[:_MAX_COMPARED]
    )
    sizes = {(file.path, file.size_bytes) for file in draft.files}
    return [
        version
        for version in candidates
        if set(version.files.values_list("path", "size_bytes")) == sizes
    ]
