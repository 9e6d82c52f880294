"""The audit stream as a page shows it: filtered, one page at a time, with changes as text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta

from django.db.models import Q, QuerySet

from deployments.pages.selectors import audit_subjects
from portal.accounts import roles
from portal.accounts.models import User
from portal.audit import actions, grouping, selectors, streaming, verification
from portal.audit.changes import ChangedValue, list_changed_values
from portal.audit.grouping import AuditFact
from portal.audit.models import AuditEvent, ChainCheck, StreamPosition
from portal.core.definitions.counts import format_count
from portal.core.errors import Forbidden
from portal.dashboard import audit_links

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
class AuditLine:
    event: AuditEvent
    phrase: str
    changes: Sequence[ChangedValue]
    # The page of the object; empty if it has none.
    url: str


@dataclass(frozen=True, slots=True)
class AuditGroup:
    """The events of one actor about one object within a minute, newest first."""

    lines: Sequence[AuditLine]

    @property
    def newest(self) -> AuditLine:
        return self.lines[0]

    @property
    def earlier(self) -> Sequence[AuditLine]:
        return self.lines[1:]

    @property
    def count(self) -> str:
        return format_count(len(self.earlier), "more event")


@dataclass(frozen=True, slots=True)
class AuditPage:
    groups: Sequence[AuditGroup]
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
        groups=_group(events[:_PAGE], is_admin=actor.is_platform_admin),
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


def _group(events: Sequence[AuditEvent], *, is_admin: bool) -> list[AuditGroup]:
    """Join the events of a page by actor and by the object that requests and rollouts are of."""
    keys = {event.pk: (event.object_type, event.object_id) for event in events}
    subjects = audit_subjects.find_subjects(set(keys.values()))
    facts = [
        AuditFact(
            event_id=event.pk,
            at=event.at,
            actor=f"{event.actor_id}:{event.actor_name}",
            subject=":".join(subjects.get(keys[event.pk], keys[event.pk])),
        )
        for event in events
    ]
    lines = {event.pk: _line(event, is_admin=is_admin) for event in events}
    groups = grouping.group_facts(facts)
    return [AuditGroup([lines[fact.event_id] for fact in group]) for group in groups]


def _line(event: AuditEvent, *, is_admin: bool) -> AuditLine:
    return AuditLine(
        event=event,
        phrase=actions.phrase_of(event.action),
        changes=list_changed_values(event.before, event.after),
        url=audit_links.find_page(event, is_admin=is_admin),
    )
