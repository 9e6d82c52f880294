"""Imports that the actor may see, and how far each is."""

from __future__ import annotations

from django.db.models import Count, Q, QuerySet, Sum

from deployments.models import Import
from portal.accounts import policy
from portal.accounts.policy import Actor
from portal.core.errors import NotFound


def get_import(*, actor: Actor, import_id: int) -> Import:
    job = list_imports(actor=actor).filter(pk=import_id).first()
    if job is None:
        raise NotFound(f"Import {import_id} does not exist, or you are not in its team.")
    return job


def list_imports(*, actor: Actor, state: str = "") -> QuerySet[Import]:
    """List imports, newest first, each with `files_count`, `files_done` and `total_bytes`."""
    is_stored = ~Q(version__files__s3_version_id="")
    rows = (
        Import.objects.select_related("version__model__team", "created_by")
        .filter(
            version__model__team__in=policy.visible_teams(actor), version__discarded_at__isnull=True
        )
        .annotate(
            files_count=Count("version__files"),
            files_done=Count("version__files", filter=is_stored),
            total_bytes=Sum("version__files__size_bytes", default=0),
        )
    )
    return (rows.filter(state=state) if state else rows).order_by("-id")
