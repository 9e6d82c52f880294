"""Group events of the trail by what one did: the same actor, about the same object, within a minute."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

LONGEST: Final = timedelta(minutes=1)


@dataclass(frozen=True, slots=True)
class AuditFact:
    """The facts that decide on the group of an event. `subject` is the object that a request or a rollout is of."""

    event_id: int
    at: datetime
    actor: str
    subject: str


def group_facts(facts: Sequence[AuditFact]) -> list[tuple[AuditFact, ...]]:
    """Group events, newest first. A group lasts a minute at most, and is where its newest event is."""
    groups: list[list[AuditFact]] = []
    newest: dict[tuple[str, str], list[AuditFact]] = {}
    for fact in facts:
        key = fact.actor, fact.subject
        group = newest.get(key)
        if group is not None and group[0].at - fact.at <= LONGEST:
            group.append(fact)
        else:
            newest[key] = [fact]
            groups.append(newest[key])
    return [tuple(group) for group in groups]
