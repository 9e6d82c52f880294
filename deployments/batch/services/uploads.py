"""Files of rows that people send to their team's area: in parts, straight to the store, as artifacts are.

Start, sign parts, list stored ones, complete. Each call can be repeated. The address of the file is the input
of a job.
"""

from __future__ import annotations

import logging
import re
import secrets
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Final

from django.conf import settings
from django.db import transaction

from deployments.batch.domain import chunks, places
from deployments.batch.services import audit_actions
from deployments.models import BatchUpload
from deployments.registry.domain import multipart
from deployments.registry.gateways import object_store
from deployments.registry.gateways.object_store import ArtifactError
from deployments.registry.services import file_uploads, upload_signing, upload_validation
from deployments.registry.services.file_uploads import PartsState
from deployments.registry.services.upload_signing import PartsToSign, PartUrl
from portal.accounts import policy, teams
from portal.accounts.models import Team, User
from portal.accounts.policy import Action
from portal.audit import trail
from portal.core import clock
from portal.core.errors import Conflict, Invalid, NotFound

logger = logging.getLogger(__name__)
# Without a new signature of parts, and after completion.
WITHIN: Final = timedelta(hours=24)
_LONGEST_NAME: Final = 80
_NOT_IN_NAMES: Final = re.compile(r"[^A-Za-z0-9._-]+")


def start(
    *, actor: User, team_slug: str, filename: str, size_bytes: int, part_checksums: bool = False
) -> BatchUpload:
    """Start an upload without a request to the store. Raises Invalid for the name and the size, Conflict for too
    many at once.
    """
    team = teams.get_visible(actor=actor, slug=team_slug)
    policy.require(actor, Action.REQUEST_CHANGE, team)
    name = _name_of(filename)
    if not 0 < size_bytes <= chunks.MAX_TOTAL_BYTES:
        problem = f"A file of rows has 1 byte to {chunks.MAX_TOTAL_BYTES // 2**30} GiB."
        raise Invalid(problem, fields={"size_bytes": problem})
    at = clock.now()
    with transaction.atomic():
        # Two at the same time do not pass the limit.
        Team.objects.select_for_update().get(pk=team.pk)
        _require_few(team)
        upload = BatchUpload.objects.create(
            team=team,
            token=secrets.token_hex(8),
            path=name,
            size_bytes=size_bytes,
            part_size_bytes=multipart.plan(size_bytes).part_bytes,
            has_part_checksums=part_checksums,
            created_by=actor,
            created_at=at,
            expires_at=at + WITHIN,
        )
        trail.record(
            actor=actor,
            action=audit_actions.UPLOADED,
            obj=upload,
            label=str(upload),
            team_slug=team.slug,
            after={"input": uri_of(upload), "size_bytes": size_bytes},
        )
    return upload


def get(*, actor: User, upload_id: int) -> BatchUpload:
    """Return an upload. Anyone who may request a job of the team may continue it. Raises NotFound."""
    rows = BatchUpload.objects.select_related("team").filter(pk=upload_id)
    upload = rows.filter(team__in=policy.visible_teams(actor), expires_at__gt=clock.now()).first()
    if upload is None:
        raise NotFound(f"There is no upload {upload_id} of your teams, or it has expired.")
    policy.require(actor, Action.REQUEST_CHANGE, upload.team)
    return upload


def stored_parts(*, actor: User, upload_id: int) -> PartsState:
    return file_uploads.parts_state(get(actor=actor, upload_id=upload_id))


def sign_parts(
    *, actor: User, upload_id: int, numbers: Sequence[int], checksums: Mapping[int, str]
) -> list[PartUrl]:
    upload = get(actor=actor, upload_id=upload_id)
    item = PartsToSign(upload.path, numbers, checksums)
    has_checksums = upload.has_part_checksums
    upload_validation.check_count([numbers])
    upload_signing.require_signable(upload, item, has_part_checksums=has_checksums)
    BatchUpload.objects.filter(pk=upload.pk).update(expires_at=clock.now() + WITHIN)
    return upload_signing.sign(upload, item, has_part_checksums=has_checksums)


def complete(*, actor: User, upload_id: int) -> BatchUpload:
    """Complete an upload. Raises Conflict `parts_missing`; the upload then stays open."""
    upload = get(actor=actor, upload_id=upload_id)
    file_uploads.assemble(upload)
    return upload


def uri_of(upload: BatchUpload) -> str:
    return f"s3://{settings.SLIPWAY_S3_BUCKET}/{upload.key}"


def has_expired() -> bool:
    return BatchUpload.objects.filter(expires_at__lte=clock.now()).exists()


def expire(*, limit: int = 20) -> int:
    """Delete expired uploads and the parts that were sent. Returns the number of uploads."""
    old = list(BatchUpload.objects.filter(expires_at__lte=clock.now()).order_by("pk")[:limit])
    for upload in old:
        if upload.upload_id and not upload.s3_version_id:
            try:
                object_store.store().abort_upload(upload.key, upload.upload_id)
            except ArtifactError as error:
                logger.warning("%s: its parts were not deleted: %s", upload, error)
                continue
        upload.delete()
    return len(old)


def _name_of(filename: str) -> str:
    """Return the file name with characters that fit an address. Raises Invalid if its ending is not one of a file
    of rows.
    """
    name = _NOT_IN_NAMES.sub("-", filename.strip())[-_LONGEST_NAME:].lstrip(".-")
    if places.kind_of(name) is None:
        problem = (
            f"“{filename[:80]}” is not a file of rows. Use one that ends with {places.ENDINGS}."
        )
        raise Invalid(problem, fields={"filename": problem})
    return name


def _require_few(team: Team) -> None:
    rows = BatchUpload.objects.filter(team=team, s3_version_id="", expires_at__gt=clock.now())
    if rows.count() >= settings.SLIPWAY_TEAM_OPEN_UPLOADS:
        raise Conflict(
            f"Team {team.slug} has {rows.count()} open uploads of rows, the limit. Complete one first, or wait until "
            "tomorrow.",
            code="too_many_uploads",
        )
