"""Read the audit trail."""

from __future__ import annotations

from collections.abc import Collection

from django.db.models import QuerySet

from portal.audit.models import AuditEvent


def list_events(*, team_slugs: Collection[str] | None) -> QuerySet[AuditEvent]:
    """List the events, newest first. `team_slugs` None means all teams and platform events."""
    events = AuditEvent.objects.all()
    return events if team_slugs is None else events.filter(team_slug__in=team_slugs)
