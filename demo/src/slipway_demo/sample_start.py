"""The start of the sample deployments in an empty demo. The next start continues one that was interrupted."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final, TypeVar

import httpx
from django.db import DatabaseError

from deployments.advice.services import refresh
from deployments.models import ModelVersion
from deployments.registry.services import file_uploads, upload_signing, uploads
from deployments.registry.services.upload_signing import PartsToSign
from deployments.registry.services.upload_validation import DraftFile, UploadDraft
from deployments.states import VersionState
from fleet.clusters.selectors import clusters
from fleet.costs.services import demo_samples
from portal.accounts.models import User
from portal.core.errors import DomainError
from slipway_demo import sample_deployments as samples
from slipway_demo.samples import CONFIGURATION, MODEL, QUANTISED

_LONGEST_WAIT_SECONDS: Final = 600
_UPLOAD_SECONDS: Final = 60
_LOOK_SECONDS: Final = 0.5
_pause = time.sleep
_FILES: Final = {samples.MODEL: MODEL, samples.SECOND_MODEL: QUANTISED}

T = TypeVar("T")


class NotMade(Exception):
    """The message says what did not happen."""


def run(folder: Path) -> str:
    """Return what the demo says about them. `folder` has the sample models. Raises NotMade."""
    if demo_samples.have_history(samples.TEAM):
        return f"team {samples.TEAM} has its deployments"
    cluster_id = next(one.id for one in clusters.list_clusters() if one.kind == "local")
    _wait("nodes of the cluster", lambda: demo_samples.sees_nodes(cluster_id))
    if not demo_samples.list_demo_nodes(cluster_id):
        return "none, because this machine has GPUs of its own"
    try:
        _make(cluster_id, folder)
    except (DomainError, httpx.HTTPError, DatabaseError) as error:
        raise NotMade(str(error)) from error
    return f"team {samples.TEAM}: five deployments with two months of made-up use; see Advice"


def _make(cluster_id: int, folder: Path) -> None:
    samples.make_team()
    member, lead = (User.objects.get(username=name) for name in ("member", "lead"))
    versions = _versions(member, folder)
    samples.request_missing(actor=member, versions=versions, cluster_id=cluster_id)
    samples.approve_waiting(actor=lead)
    _wait("ready sample deployments", samples.are_ready)
    samples.write_history(cluster_id=cluster_id)
    refresh.sweep()


def _versions(member: User, folder: Path) -> dict[str, ModelVersion]:
    """Return the verified versions by model. They are uploaded as by a browser, and verified by a worker."""
    _wait("sample models", (folder / CONFIGURATION).exists)
    usable = (VersionState.VERIFYING, VersionState.READY)
    rows = ModelVersion.objects.filter(model__team__slug=samples.TEAM, state__in=usable)
    versions = {
        name: rows.filter(model__name=name).order_by("pk").first()
        or _upload(member, name, folder / file)
        for name, file in _FILES.items()
    }

    def are_verified() -> bool:
        for version in versions.values():
            version.refresh_from_db()
        return all(one.state != VersionState.VERIFYING for one in versions.values())

    _wait("verified sample models", are_verified)
    for version in versions.values():
        if version.state != VersionState.READY:
            raise NotMade(f"{version.label} is {version.state}: {version.state_reason}")
    return versions


def _upload(member: User, name: str, file: Path) -> ModelVersion:
    content = file.read_bytes()
    digest = hashlib.sha256(content).hexdigest()
    draft = UploadDraft([DraftFile(file.name, len(content), digest)], is_duplicate_allowed=True)
    version = uploads.start(actor=member, team_slug=samples.TEAM, model_name=name, draft=draft)
    plan = file_uploads.plan_of(version.files.get())
    parts = PartsToSign("", list(range(1, plan.count + 1)))
    for part in upload_signing.sign_parts(actor=member, version_id=version.pk, files=[parts]):
        start = (part.number - 1) * plan.part_bytes
        httpx.put(
            part.url,
            content=content[start : start + part.size_bytes],
            headers=dict(part.headers),
            timeout=_UPLOAD_SECONDS,
        ).raise_for_status()
    return uploads.complete(actor=member, version_id=version.pk)


def _wait(what: str, is_there: Callable[[], T]) -> T:
    deadline = time.monotonic() + _LONGEST_WAIT_SECONDS
    while not (there := is_there()):
        if time.monotonic() > deadline:
            raise NotMade(f"{what} not there after {_LONGEST_WAIT_SECONDS} s.")
        _pause(_LOOK_SECONDS)
    return there
