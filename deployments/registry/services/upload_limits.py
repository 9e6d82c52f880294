"""The upload limits of a team: open uploads, and bytes of all its versions."""

from __future__ import annotations

from django.conf import settings
from django.db.models import Sum
from django.db.models.functions import Coalesce

from deployments.models import ModelVersion
from deployments.states import VersionState
from portal.accounts.models import Team
from portal.core.errors import Conflict

_GIB = 2**30


def require(team: Team, size_bytes: int) -> None:
    """Require that an upload of this size is within the limits. Raises Conflict. Failed versions do not count."""
    versions = ModelVersion.objects.filter(model__team=team)
    open_uploads = versions.filter(state=VersionState.UPLOADING).count()
    if open_uploads >= settings.SLIPWAY_TEAM_OPEN_UPLOADS:
        raise Conflict(
            f"Team {team.slug} has {open_uploads} open uploads, the limit. Complete or cancel "
            "one first.",
            code="too_many_uploads",
        )
    require_storage(team, size_bytes)


def require_storage(team: Team, size_bytes: int) -> None:
    """Require that the team's versions and these bytes fit into its storage. Raises Conflict."""
    used, limit = _used(team), settings.SLIPWAY_TEAM_STORAGE_BYTES
    if used + size_bytes > limit:
        raise Conflict(
            f"Team {team.slug} uses {used / _GIB:.1f} of {limit / _GIB:.1f} GiB; these files of "
            f"{size_bytes / _GIB:.1f} GiB do not fit. Ask a platform admin for more storage.",
            code="storage_full",
        )


def count_bytes_left(team: Team) -> int:
    """Return the bytes that the team may still store."""
    return max(0, int(settings.SLIPWAY_TEAM_STORAGE_BYTES) - _used(team))


def _used(team: Team) -> int:
    kept = ModelVersion.objects.filter(model__team=team).exclude(state=VersionState.FAILED)
    # The stored size, or the declared size of an open upload.
    used = kept.aggregate(sum=Sum(Coalesce("size_bytes", "declared_size_bytes")))["sum"]
    return int(used or 0)
