"""How much one team may upload: open uploads at a time, and bytes of all its versions together."""

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
    """Raises Conflict when the team has no room for one more upload of this size.

    A failed version counts no more: what was sent of it is removed.
    """
    versions = ModelVersion.objects.filter(model__team=team)
    open_uploads = versions.filter(state=VersionState.UPLOADING).count()
    if open_uploads >= settings.SLIPWAY_TEAM_OPEN_UPLOADS:
        raise Conflict(
            f"Team {team.slug} has {open_uploads} open uploads, the limit. Complete or cancel "
            "one first.",
            code="too_many_uploads",
        )
    kept = versions.exclude(state=VersionState.FAILED)
    # Coalesce: what was stored, and while it is being sent what was promised.
    used = kept.aggregate(sum=Sum(Coalesce("size_bytes", "declared_size_bytes")))["sum"] or 0
    most = settings.SLIPWAY_TEAM_STORAGE_BYTES
    if used + size_bytes > most:
        raise Conflict(
            f"Team {team.slug} uses {used / _GIB:.1f} of {most / _GIB:.1f} GiB; this file of "
            f"{size_bytes / _GIB:.1f} GiB does not fit. Ask a platform admin for more storage.",
            code="storage_full",
        )
