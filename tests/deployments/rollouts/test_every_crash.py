"""A worker dies once before and once after everything it does, in every phase and at every step.

The walk is one whole rollout. At each function below the worker ends where it stands the first time
it reaches in a phase: before the call, and in the next pass right after it. What was committed
stays, what was not is gone, the lease expires, another worker continues. In the end the cluster,
the rows, the alias, the histories and the messages must be those of a rollout without a crash.

All four walks begin alike. In the first one workers die from the beginning, in each other from where it goes on
in a way of its own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest
from django.db import connection

from deployments.changes.selectors.subjects import deployment_of
from deployments.changes.services import decisions, requests
from deployments.changes.services import transitions as change_transitions
from deployments.delivery.services import bucket_files, effects, record
from deployments.lifecycle.services import apply_changes
from deployments.models import Alias, ChangeRequest, Deployment, Rollout, RolloutEvent
from deployments.rollouts.services import actions, evidence, growth, promote, reconcile
from deployments.rollouts.services import notifications as rollout_notifications
from deployments.rollouts.services import transitions as rollout_transitions
from deployments.serving.services import desired_state, timeline
from deployments.states import ROLLOUT, RolloutPhase
from portal.audit import trail
from portal.audit.models import AuditEvent
from portal.core import leases
from portal.notifications import services as notifications
from portal.notifications.models import Notice
from tests.deployments.canaries import send
from tests.deployments.world import World
from tests.rollout_plans import AT_ONCE, OF_SERVERS

STEPS = [
    {"weight": 10, "soak_seconds": 5, "min_requests": 20},
    {"weight": 50, "soak_seconds": 5, "min_requests": 20, "auto_promote": True},
]
# All that a worker does between looking and being done; the effects on the cluster first.
POINTS: tuple[tuple[ModuleType, str], ...] = (
    (bucket_files, "lay_out_all"),
    (effects, "push_revisions"),
    (effects, "push_routes"),
    (effects, "delete_revision"),
    (record, "record"),
    (reconcile, "observation_of"),
    (evidence, "store"),
    (rollout_transitions, "move"),
    (rollout_transitions, "mark"),
    (rollout_transitions, "reload"),
    (rollout_transitions, "finish"),
    (rollout_transitions, "begin_abort"),
    (desired_state, "add_candidate"),
    (desired_state, "set_candidate_replicas"),
    (desired_state, "set_weight"),
    (desired_state, "swap"),
    (desired_state, "drop_candidate"),
    (promote, "one_step"),
    (promote, "to_all"),
    (promote, "advance"),
    (growth, "begin"),
    (promote, "move_aliases"),
    (change_transitions, "move"),
    (trail, "record"),
    (timeline, "note_rollout"),
    (rollout_notifications, "notify_progress"),
    (rollout_notifications, "waits"),
    (notifications, "notify"),
    (leases, "release"),
)
_MOST_LOOKS = 800


class _CrashError(Exception):
    """A worker that ends where it stands."""


def _from_the_beginning(_phase: str, _step: int) -> bool:
    return True


def _from_the_second_step(phase: str, step: int) -> bool:
    return phase != RolloutPhase.PREPARING and (phase != RolloutPhase.RUNNING or step > 0)


def _from_the_promotion(phase: str, _step: int) -> bool:
    return phase not in (RolloutPhase.PREPARING, RolloutPhase.RUNNING)


def _read_place() -> tuple[str, int] | None:
    """Read the rollout's phase and step in SQL, because it is done five thousand times."""
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT phase, step_index FROM {Rollout._meta.db_table}")
        return cursor.fetchone()


class Deaths:
    """`died` are the places where a worker has died already: function, side, phase, step. None dies while
    `may_die` says no of phase and step.
    """

    def __init__(
        self, monkeypatch: pytest.MonkeyPatch, may_die: Callable[[str, int], bool]
    ) -> None:
        self._may_die = may_die
        self.died: set[tuple[str, str, str, int]] = set()
        self.is_armed = True
        for module, name in POINTS:
            name_of_point = f"{module.__name__}.{name}"
            monkeypatch.setattr(module, name, self._deadly(name_of_point, getattr(module, name)))

    @property
    def by_phase(self) -> set[tuple[str, str]]:
        return {(place, phase) for place, _, phase, _ in self.died}

    def _deadly(self, name: str, original: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **named: Any) -> Any:
            self._die_once(name, "before")
            result = original(*arguments, **named)
            self._die_once(name, "after")
            return result

        return call

    def _die_once(self, name: str, side: str) -> None:
        row = _read_place() if self.is_armed else None
        if row is None or not self._may_die(*row):
            return
        place = (name, side, *row)
        if place not in self.died:
            self.died.add(place)
            raise _CrashError(place)


class Walk:
    """People and workers, one pass at a time, until the rollout has ended."""

    def __init__(self, world: World, deaths: Deaths) -> None:
        self.world, self.deaths = world, deaths
        self.deployment = deployment_of(ChangeRequest.objects.get(kind="canary"))

    @property
    def row(self) -> Rollout:
        return Rollout.objects.get()

    def to_the_end(self, act: Callable[[Walk], None]) -> None:
        """`act` is what people and users do between two passes."""
        for _ in range(_MOST_LOOKS):
            if not ROLLOUT[RolloutPhase(self.row.phase)]:
                break
            self.survive(lambda: act(self))
            self.survive(lambda: self.world.reconcile_now(self.deployment))
        # The row has ended; what it no longer wants is still to be removed from the cluster.
        for _ in range(12):
            self.survive(lambda: self.world.reconcile_now(self.deployment))
        self.deaths.is_armed = False
        self.world.reconcile_now(self.deployment)

    def survive(self, work: Callable[[], object]) -> None:
        try:
            work()
        except _CrashError:
            # Its leases run out; moving the clock that far each time would pass every deadline.
            for model in (Rollout, Deployment):
                model.objects.update(lease_until=self.world.clock.at)
            self.world.clock.move(1)


def _good(walk: Walk) -> None:
    """The candidate comes up and does well; a lead promotes what waits for a person."""
    world, row = walk.world, walk.row
    if "detector-r2" in world.cluster.names("InferenceService"):
        world.cluster.make_ready("detector-r2")
    world.clock.move(6)
    if row.phase != RolloutPhase.RUNNING:
        return
    weight = row.steps[row.step_index]["weight"]
    send(world, "detector-r1", 9 * (100 - weight))
    send(world, "detector-r2", 9 * weight)
    if row.observed.get("is_promotable") and row.step_index == 0:
        actions.promote(actor=world.lead, rollout_id=row.pk, evidence_hash=row.evidence_hash)


def _bad(walk: Walk) -> None:
    """As good, until the second step: there it fails, and no person reacts."""
    world, row = walk.world, walk.row
    if row.step_index == 0:
        _good(walk)
        return
    world.clock.move(6)
    if row.phase == RolloutPhase.RUNNING:
        send(world, "detector-r1", 450)
        send(world, "detector-r2", 250, failure=200)


def _good_until_promoted(walk: Walk) -> None:
    """As good in every step; while it is watched, the old revision gets nothing and it does well."""
    _good(walk)
    if walk.row.phase == RolloutPhase.WATCHING:
        send(walk.world, "detector-r2", 900)


def _bad_once_promoted(walk: Walk) -> None:
    """As good in every step; once it is stable it fails, and no person reacts."""
    _good(walk)
    if walk.row.phase == RolloutPhase.WATCHING:
        send(walk.world, "detector-r2", 500, failure=400)


@pytest.fixture
def walk(world: World, monkeypatch: pytest.MonkeyPatch) -> Walk:
    _begin(world, watch_seconds=0)
    return Walk(world, Deaths(monkeypatch, _from_the_beginning))


@pytest.fixture
def late_walk(world: World, monkeypatch: pytest.MonkeyPatch) -> Walk:
    _begin(world, watch_seconds=0)
    return Walk(world, Deaths(monkeypatch, _from_the_second_step))


@pytest.fixture
def watched_walk(world: World, monkeypatch: pytest.MonkeyPatch) -> Walk:
    _begin(world, watch_seconds=60)
    return Walk(world, Deaths(monkeypatch, _from_the_promotion))


def _begin(world: World, *, watch_seconds: int) -> None:
    # With half of the requests the candidate needs all of its replicas, with a tenth one.
    deployment = world.serving(min_replicas=4, max_replicas=4)
    change = requests.request_canary(
        actor=world.member,
        deployment_id=deployment.pk,
        version_id=world.version2.pk,
        steps=STEPS,
        plan={
            **AT_ONCE,
            "watch_seconds": watch_seconds,
            "move_alias": "champion",
            "guards": OF_SERVERS,
        },
    )
    decisions.approve(actor=world.lead, change_id=change.pk, evidence_hash=change.evidence_hash)
    apply_changes.sweep()


def _notices(event: str) -> int:
    return Notice.objects.filter(event=event).count()


def _once(action: str) -> bool:
    return AuditEvent.objects.filter(action=action).count() == 1


def test_a_good_rollout_in_which_every_worker_died_once_ends_as_approved(
    world: World, walk: Walk
) -> None:
    walk.to_the_end(_good)

    assert walk.row.phase == RolloutPhase.COMPLETED
    assert world.cluster.names("InferenceService") == ["detector-r2"]
    assert world.cluster.weights("vision", "detector") == {"detector-r2-predictor": 100}
    assert ChangeRequest.objects.get(kind="canary").state == "done"
    assert Alias.objects.get().version == world.version2
    assert RolloutEvent.objects.filter(kind="alias").count() == 1
    kinds = Counter(RolloutEvent.objects.values_list("kind", flat=True))
    assert (kinds["promoting"], kinds["completed"], kinds["aborting"]) == (2, 1, 0)
    promoted = AuditEvent.objects.filter(action="rollout.promoted").order_by("id")
    assert [event.actor_name for event in promoted] == ["lead", "slipway"]
    assert (_notices("rollout.started"), _notices("rollout.finished")) == (1, 1)
    _assert_all_died(walk.deaths, but={"deployments.rollouts.services.transitions.begin_abort"})


def test_a_bad_rollout_in_which_every_worker_died_once_goes_back_to_stable(
    world: World, late_walk: Walk
) -> None:
    late_walk.to_the_end(_bad)

    assert late_walk.row.phase == RolloutPhase.ABORTED
    assert world.cluster.names("InferenceService") == ["detector-r1"]
    assert world.cluster.weights("vision", "detector") == {"detector-r1-predictor": 100}
    assert ChangeRequest.objects.get(kind="canary").state == "failed"
    assert not Alias.objects.exists()
    assert _once("rollout.aborted")
    assert (_notices("rollout.aborted"), _notices("rollout.finished")) == (1, 1)
    places = {place for place, *_ in late_walk.deaths.died}
    assert {
        "deployments.rollouts.services.transitions.begin_abort",
        "deployments.serving.services.desired_state.drop_candidate",
    } <= places


def test_a_watched_rollout_in_which_every_worker_died_once_ends_as_approved(
    world: World, watched_walk: Walk
) -> None:
    watched_walk.to_the_end(_good_until_promoted)

    assert watched_walk.row.phase == RolloutPhase.COMPLETED
    assert world.cluster.names("InferenceService") == ["detector-r2"]
    assert ChangeRequest.objects.get(kind="canary").state == "done"
    kinds = Counter(RolloutEvent.objects.values_list("kind", flat=True))
    assert (kinds["watching"], kinds["completed"], kinds["aborting"]) == (1, 1, 0)
    assert RolloutEvent.objects.filter(kind="alias").count() == 1
    assert _notices("rollout.finished") == 1
    assert {
        ("deployments.rollouts.services.reconcile.observation_of", "watching"),
        ("deployments.rollouts.services.evidence.store", "watching"),
        ("deployments.rollouts.services.transitions.finish", "watching"),
        # In the transaction that ends the watch the row has its next phase already.
        ("deployments.serving.services.desired_state.drop_candidate", "completed"),
    } <= watched_walk.deaths.by_phase


def test_one_that_goes_bad_once_promoted_goes_back_though_every_worker_died_once(
    world: World, watched_walk: Walk
) -> None:
    watched_walk.to_the_end(_bad_once_promoted)

    assert watched_walk.row.phase == RolloutPhase.ABORTED
    assert world.cluster.names("InferenceService") == ["detector-r1"]
    assert world.cluster.weights("vision", "detector") == {"detector-r1-predictor": 100}
    assert watched_walk.row.deployment.stable_revision.number == 1
    assert ChangeRequest.objects.get(kind="canary").state == "failed"
    assert not Alias.objects.exists()
    assert _once("rollout.aborted")
    assert (_notices("rollout.aborted"), _notices("rollout.finished")) == (1, 1)
    assert {
        ("deployments.rollouts.services.transitions.begin_abort", "watching"),
        ("deployments.serving.services.desired_state.swap", "aborting"),
    } <= watched_walk.deaths.by_phase


def _assert_all_died(deaths: Deaths, *, but: set[str]) -> None:
    """A point that is never reached would prove nothing."""
    for side in ("before", "after"):
        names = {name for name, its_side, *_ in deaths.died if its_side == side}
        expected = {f"{module.__name__}.{name}" for module, name in POINTS}
        # A promotion ends with `begin` or `to_all`, after which its worker has died already.
        tail_call = {f"{promote.__name__}.one_step"} if side == "after" else set()
        assert expected - names == but | tail_call
