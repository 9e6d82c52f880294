"""Start, cancel and resume an import. The worker does the rest (advance.py)."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from django.conf import settings
from django.db import transaction

from deployments.imports.domain import addresses
from deployments.imports.domain.addresses import (
    BucketAddress,
    HubRepository,
    RegisteredModel,
    SourceAddress,
    UrlAddress,
)
from deployments.imports.domain.errors import SourceRefused
from deployments.imports.gateways import mlflow_server
from deployments.imports.selectors import imports
from deployments.imports.services import bucket_source, hub_source, mlflow_source, transitions
from deployments.models import Import, ModelVersion
from deployments.registry.domain import object_keys
from deployments.registry.domain.artifacts import files as artifact_files
from deployments.registry.domain.metadata import version_metadata
from deployments.registry.gateways import object_store
from deployments.registry.services import metadata as metadata_service
from deployments.registry.services import transitions as version_transitions
from deployments.registry.services import upload_validation, uploads
from deployments.registry.services.upload_validation import UploadDraft
from deployments.spec.domain import model_names
from deployments.states import ImportState, VersionState
from portal.accounts import policy, teams
from portal.accounts.models import Team, User
from portal.accounts.policy import Action
from portal.audit import trail
from portal.audit.actions import register
from portal.core import clock
from portal.core.definitions import Rejected
from portal.core.errors import Conflict, Invalid
from portal.core.wakeups import wake
from portal.notifications import vault

STARTED = register("import.started", "started an import into")


@dataclass(frozen=True, slots=True)
class ImportDraft:
    """A request to import. `address` as in deployments/imports/domain/addresses.py; `server` names the MLflow
    server, where there are several. What is entered here goes before what the source says.
    """

    address: str
    server: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict)
    declared: Mapping[str, Any] = field(default_factory=dict)
    readme: str = ""


def start(*, actor: User, team_slug: str, model_name: str, draft: ImportDraft) -> Import:
    """Create a version and the job that fills it; create the model with its first version.

    Contacts nobody. Raises Invalid for the address, the name and the metadata, Conflict if the team
    has too many open uploads.
    """
    team = teams.get_visible(actor=actor, slug=team_slug)
    policy.require(actor, Action.UPLOAD, team)
    address, server, metadata = _validate(team, model_name, draft)
    upload = UploadDraft(files=[], declared=draft.declared, readme=draft.readme)
    token = secrets.token_urlsafe(12)
    version = ModelVersion(
        state=VersionState.UPLOADING,
        filename=address.name[: artifact_files.MAX_NAME_LENGTH],
        declared_size_bytes=0,
        bucket=object_store.store().bucket,
        upload_prefix=object_keys.upload_prefix(team=team.slug, model=model_name, token=token),
        metadata=metadata,
        readme=upload.readme,
        declared=upload_validation.read_declared(upload),
        created_by=actor,
    )
    with transaction.atomic():
        uploads.record(version, actor=actor, team=team, model_name=model_name, draft=upload)
        job = _create(actor, version, address, server)
    wake(transitions.IMPORT_TASK, job.pk)
    return imports.get_import(actor=actor, import_id=job.pk)


def cancel(*, actor: User, import_id: int) -> Import:
    """End the import at once. Its version fails, and the next pass deletes what was copied."""
    job = _changeable(actor, import_id)
    reason = f"{actor.username} canceled the import."
    with transaction.atomic():
        transitions.to_canceled(job, actor=actor, error=reason)
        if job.version.state == VersionState.UPLOADING:
            version_transitions.to_failed(version=job.version, actor=actor, reason=reason)
    return imports.get_import(actor=actor, import_id=job.pk)


def resume(*, actor: User, import_id: int) -> Import:
    """Try a failed import again: what was copied stays, unless the source has changed since."""
    job = _changeable(actor, import_id)
    if job.version.state != VersionState.UPLOADING:
        raise Conflict(
            f"{job.version.label} is {job.version.state}, so its import has ended. Start a new one.",
            code="wrong_state",
        )
    transitions.to_running(job, actor=actor)
    return imports.get_import(actor=actor, import_id=job.pk)


def _changeable(actor: User, import_id: int) -> Import:
    job = imports.get_import(actor=actor, import_id=import_id)
    policy.require(actor, Action.UPLOAD, job.version)
    return job


def _validate(
    team: Team, model_name: str, draft: ImportDraft
) -> tuple[SourceAddress, str, dict[str, Any]]:
    """Return the address, the MLflow server ("" for other sources) and the metadata.

    Raises Invalid with all problems at once, so that a form shows each at its field.
    """
    problems: dict[str, str] = {}
    if problem := model_names.model_name_problem(model_name):
        problems["model"] = problem
    address, server = None, ""
    try:
        address = addresses.parse(
            draft.address,
            hub_url=settings.SLIPWAY_IMPORT_HUGGINGFACE,
            mlflow_servers=mlflow_server.list_servers(),
        )
        server = _require_allowed(address, team, draft.server)
        upload_validation.read_declared(UploadDraft(files=[], declared=draft.declared))
    except Rejected as error:
        problems |= error.fields
    except SourceRefused as error:
        problems[addresses.FIELD] = str(error)
    metadata, metadata_problems = version_metadata.clean(draft.metadata)
    problems |= metadata_problems | metadata_service.readme_problems(draft.readme)
    if problems or address is None:
        raise Invalid(" ".join(problems.values()), fields=problems)
    return address, server, metadata


def _require_allowed(address: SourceAddress, team: Team, server: str) -> str:
    """Check the address before a row is written. The worker checks again, because settings change."""
    match address.place:
        case BucketAddress():
            bucket_source.require_allowed(address.place, team=team.slug)
        case HubRepository():
            hub_source.require_available()
        case UrlAddress():
            if problem := artifact_files.path_problem(address.place.filename):
                raise SourceRefused(f"The address does not end with the name of a file. {problem}")
        case RegisteredModel():
            return mlflow_source.choose_server(address.place, server)
    if server:
        raise SourceRefused(
            "Only models:/… is imported from an MLflow server. Leave the server out."
        )
    return ""


def _create(actor: User, version: ModelVersion, address: SourceAddress, server: str) -> Import:
    at = clock.now()
    job = Import.objects.create(
        version=version,
        kind=address.kind,
        address=address.shown,
        server=server,
        sealed_url=vault.seal(address.place.url) if isinstance(address.place, UrlAddress) else "",
        state=ImportState.RUNNING,
        created_by=actor,
        created_at=at,
        next_check_at=at,
    )
    trail.record(
        actor=actor,
        action=STARTED,
        obj=version,
        label=version.label,
        team_slug=version.team.slug,
        after={"kind": str(address.kind), "address": address.shown},
    )
    return job
