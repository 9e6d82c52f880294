"""The audit stream as a page shows it: filtered, one page at a time, with changes as text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import Any

from django.db.models import Q, QuerySet

from portal.accounts import roles
from portal.accounts.models import User
from portal.audit import actions, selectors, streaming, verification
from portal.audit.models import AuditEvent, ChainCheck, StreamPosition
from portal.core.errors import Forbidden

_PAGE = 50


@dataclass(frozen=True, slots=True)
class AuditFilter:
    """A filter of audit events. Empty fields do not filter. `before_id` is where the page begins."""

    text: str = ""
    team_slug: str = ""
    action: str = ""
    start: date | None = None
    end: date | None = None
    before_id: int | None = None


@dataclass(frozen=True, slots=True)
class Change:
    name: str
    before: str | None
    after: str | None


@dataclass(frozen=True, slots=True)
class AuditLine:
    event: AuditEvent
    phrase: str
    changes: Sequence[Change]


@dataclass(frozen=True, slots=True)
class AuditPage:
    lines: Sequence[AuditLine]
    next_before_id: int | None
    team_slugs: Sequence[str]
    action_choices: Sequence[tuple[str, str]]
    # The last verification of the whole chain, of all teams.
    last_check: ChainCheck | None
    # To the SIEM; for platform admins.
    stream: StreamPosition | None


def read(*, actor: User, filters: AuditFilter) -> AuditPage:
    """Read the trail: leads their teams', platform admins all. Raises Forbidden for others."""
    slugs = list(roles.led_teams(actor).values_list("slug", flat=True))
    if not slugs and not actor.is_platform_admin:
        raise Forbidden(
            "Only team leads and platform admins can read the audit trail.", code="role_required"
        )
    visible = selectors.list_events(team_slugs=None if actor.is_platform_admin else slugs)
    events = list(_filtered(visible, filters)[: _PAGE + 1])
    return AuditPage(
        lines=[_line(event) for event in events[:_PAGE]],
        next_before_id=events[_PAGE - 1].pk if len(events) > _PAGE else None,
        team_slugs=slugs,
        action_choices=actions.choices(),
        last_check=verification.last_check(),
        stream=streaming.status() if actor.is_platform_admin else None,
    )


def _filtered(events: QuerySet[AuditEvent], filters: AuditFilter) -> QuerySet[AuditEvent]:
    if filters.text:
        events = events.filter(
            Q(object_label__icontains=filters.text)
            | Q(actor_name__icontains=filters.text)
            | Q(reason__icontains=filters.text)
            | Q(evidence__startswith=filters.text)
        )
    if filters.team_slug:
        events = events.filter(team_slug=filters.team_slug)
    if filters.action:
        events = events.filter(action=filters.action)
    if filters.start:
        events = events.filter(at__gte=_midnight(filters.start))
    if filters.end:
        events = events.filter(at__lt=_midnight(filters.end + timedelta(days=1)))
    if filters.before_id is not None:
        events = events.filter(pk__lt=filters.before_id)
    return events


def _midnight(day: date) -> datetime:
    return datetime.combine(day, time(), tzinfo=UTC)


def _line(event: AuditEvent) -> AuditLine:
    names = list(dict.fromkeys([*event.before, *event.after]))
    changes = [
        Change(
            name.replace("_", " "), _format(event.before.get(name)), _format(event.after.get(name))
        )
        for name in names
        if event.before.get(name) != event.after.get(name)
    ]
    return AuditLine(event=event, phrase=actions.phrase_of(event.action), changes=changes)


def _format(value: Any) -> str | None:
    """Format a stored value as text: "yes" for True, "weight 25; soak seconds 60" for an object."""
    match value:
        case None:
            return None
        case bool():
            return "yes" if value else "no"
        case list():
            return ", ".join(_format(item) or "none" for item in value) or "none"
        case dict():
            pairs = (f"{name.replace('_', ' ')} {_format(item)}" for name, item in value.items())
            return "; ".join(pairs) or "none"
    return str(value)
