"""The events of a rollout since a given one, and whether anything of the rollout has changed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from threading import Event
from time import monotonic
from typing import Any, Final

from deployments.models import RolloutEvent
from deployments.rollouts.selectors import rollouts
from deployments.rollouts.selectors.rollouts import RolloutSummary
from portal.accounts.policy import Actor

_LOOK_SECONDS: Final = 1.0
_MOST_EVENTS: Final = 200


@dataclass(frozen=True, slots=True)
class News:
    """The news of a rollout. `view` is None while nothing of the rollout itself has changed."""

    events: tuple[RolloutEvent, ...] = ()
    view: RolloutSummary | None = None

    @property
    def is_empty(self) -> bool:
        return not self.events and self.view is None


@dataclass(slots=True)
class EventCursor:
    """A client's position in the events of a rollout. `after` is the id of the last event it has."""

    actor: Actor
    rollout_id: int
    after: int = 0
    is_final: bool = False
    _marks: tuple[Any, ...] = field(default=(), init=False)

    def poll(self) -> News:
        """Return what is new, in one query while nothing changes. Raises NotFound once the actor may not see
        the rollout.
        """
        rows = rollouts.list_visible_to(self.actor).filter(pk=self.rollout_id).values_list(*_MARKS)
        marks = rows.first()
        if marks is not None and marks == self._marks:
            return News()
        # Events first: each is written with the state that it describes, so the rollout read after
        # them is never older than the newest.
        events = self._new_events()
        rollout = rollouts.get_visible(actor=self.actor, rollout_id=self.rollout_id)
        view = rollouts.view_of(actor=self.actor, rollout=rollout)
        self._marks = marks or ()
        self.is_final = view.is_final
        return News(events, view)

    def watch(self, *, seconds: float) -> Iterator[News]:
        """Poll every second until the rollout has ended or the time is over; yields empty news too."""
        ends_at = monotonic() + seconds
        pause = Event()
        while True:
            yield self.poll()
            if self.is_final or monotonic() + _LOOK_SECONDS > ends_at:
                return
            pause.wait(_LOOK_SECONDS)

    def _new_events(self) -> tuple[RolloutEvent, ...]:
        rows = RolloutEvent.objects.filter(rollout=self.rollout_id, pk__gt=self.after)
        events = tuple(rows.order_by("id")[:_MOST_EVENTS])
        if events:
            self.after = events[-1].pk
        return events


# A change of any of these is worth telling; running numbers are not.
_MARKS: Final = (
    "phase",
    "step_index",
    "step_started_at",
    "evidence_hash",
    "observed__is_promotable",
    "deployment__candidate_weight",
    "deployment__observed_weight",
    "deployment__candidate_mirror",
    "deployment__observed_mirror",
)
