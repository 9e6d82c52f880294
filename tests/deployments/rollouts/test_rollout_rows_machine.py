"""The same machine on real rows: services, database and cluster, with crashes in between."""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Iterator
from typing import Any, ClassVar

import pytest
from django.db import transaction
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)

from deployments.changes.services import requests
from deployments.models import ChangeRequest, Deployment, Rollout, RolloutVerdict
from deployments.rollouts.services import actions, reconcile, transitions
from deployments.states import ROLLOUT, ChangeState, RolloutPhase
from fleet.kube.domain.errors import Unreachable
from portal.audit.models import AuditEvent
from portal.core import leases
from portal.core.errors import Conflict
from tests.deployments.canaries import send
from tests.deployments.rollouts.test_shadow import MIRRORING, let_mirror
from tests.deployments.world import World
from tests.rollout_plans import AT_ONCE, OF_SERVERS

STEPS = [
    {"weight": 10, "soak_seconds": 5, "min_requests": 20},
    {"weight": 50, "soak_seconds": 5, "min_requests": 20, "auto_promote": True},
]
# The last step of a shadow is for people; the one before may be promoted automatically.
MIRRORED = [
    {"weight": 10, "soak_seconds": 5, "min_requests": 20, "auto_promote": True},
    {"weight": 50, "soak_seconds": 5, "min_requests": 20},
]
PROMOTED = ("rollout.promoted", "rollout.promoted_fully")


class _CrashError(Exception):
    """A worker that ends where it stands."""


@contextlib.contextmanager
def _dying(module: object, name: str) -> Iterator[None]:
    """Whoever calls it next is gone."""
    original = getattr(module, name)

    def die(*_arguments: object, **_named: Any) -> None:
        raise _CrashError

    setattr(module, name, die)
    try:
        yield
    except _CrashError:
        pass
    finally:
        setattr(module, name, original)


class Rows(RuleBasedStateMachine):
    """A canary that was just approved; each example begins from the same rows."""

    world: ClassVar[World]
    deployment: ClassVar[Deployment]

    @initialize()
    def begin(self) -> None:
        world = type(self).world
        self.objects = copy.deepcopy(world.cluster.objects)
        self.began_at = world.clock.at
        self.savepoint = transaction.savepoint()
        self.rollout = Rollout.objects.get()

    @property
    def row(self) -> Rollout:
        return Rollout.objects.get(pk=self.rollout.pk)

    # What the workers do, and how they die.

    @rule()
    def reconcile_now(self) -> None:
        self.world.reconcile_now(self.deployment)

    @rule()
    def the_candidate_comes_up(self) -> None:
        if "detector-r2" in self.world.cluster.names("InferenceService"):
            self.world.cluster.make_ready("detector-r2")
        self.reconcile_now()

    @rule(where=st.sampled_from([(transitions, "reload"), (leases, "release")]))
    def a_worker_dies(self, where: tuple[object, str]) -> None:
        """In the middle of a transaction, or after an effect while it holds the lease."""
        with _dying(*where), transaction.atomic():
            reconcile.advance(rollout_id=self.rollout.pk)
        self.world.clock.move(31)

    @rule(is_silent=st.booleans())
    def the_cluster(self, *, is_silent: bool) -> None:
        self.world.cluster.fail_with = Unreachable("no route") if is_silent else None

    @rule(seconds=st.sampled_from([3, 20, 3600]))
    def wait(self, seconds: int) -> None:
        self.world.clock.move(seconds)

    # What requests show.

    @rule(failure=st.sampled_from([0, 0, 0, 40]))
    def requests_come(self, failure: int) -> None:
        self.world.clock.move(12)
        row = self.deployment_row
        share = row.candidate_weight or row.candidate_mirror
        send(self.world, "detector-r1", 9 * (100 - row.candidate_weight))
        if share:
            send(self.world, "detector-r2", 9 * share, failure=failure)
        self.reconcile_now()

    @property
    def deployment_row(self) -> Deployment:
        return Deployment.objects.get(pk=self.deployment.pk)

    # What people do.

    @rule(is_fully=st.booleans())
    def a_lead_clicks(self, *, is_fully: bool) -> None:
        act = actions.promote_fully if is_fully else actions.promote
        with contextlib.suppress(Conflict):
            act(
                actor=self.world.lead,
                rollout_id=self.rollout.pk,
                evidence_hash=self.row.evidence_hash,
            )

    @rule()
    def someone_pauses_or_carries_on(self) -> None:
        act = actions.unpause if self.row.phase == RolloutPhase.PAUSED else actions.pause
        with contextlib.suppress(Conflict):
            act(actor=self.world.member, rollout_id=self.rollout.pk)

    @rule()
    def someone_aborts(self) -> None:
        """Legal from wherever it is, until it has ended."""
        phase = RolloutPhase(self.row.phase)
        if not ROLLOUT[phase]:
            return
        actions.abort(actor=self.world.member, rollout_id=self.rollout.pk, reason="enough")
        deployment = self.deployment_row
        assert self.row.phase == RolloutPhase.ABORTING
        assert (deployment.candidate_weight, deployment.candidate_mirror) == (0, 0)
        assert deployment.stable_revision.number == 1

    # Invariants.

    @invariant()
    def nothing_was_promoted_without_evidence_that_is_kept(self) -> None:
        for event in AuditEvent.objects.filter(action__in=PROMOTED):
            kept = RolloutVerdict.objects.filter(evidence_hash=event.evidence).first()
            assert kept is not None
            assert "fail" not in {guard["verdict"] for guard in kept.guards}

    @invariant()
    def traffic_is_where_the_phase_says(self) -> None:
        row, deployment = self.row, self.deployment_row
        if row.phase in (RolloutPhase.PREPARING, RolloutPhase.ABORTING, RolloutPhase.ABORTED):
            assert (deployment.candidate_weight, deployment.candidate_mirror) == (0, 0)
            assert deployment.stable_revision.number == 1
        if row.phase == RolloutPhase.RUNNING:
            share = row.steps[row.step_index]["weight"]
            requested = (0, share) if row.plan["kind"] == "shadow" else (share, 0)
            assert (deployment.candidate_weight, deployment.candidate_mirror) == requested
        if row.phase == RolloutPhase.WATCHING:
            assert (deployment.candidate_weight, deployment.candidate_mirror) == (0, 0)
            assert deployment.stable_revision.number == 2
            assert deployment.candidate_revision.number == 1
        if row.phase == RolloutPhase.COMPLETED:
            assert deployment.stable_revision.number == 2
            assert deployment.candidate_revision is None

    @invariant()
    def its_replicas_come_before_its_traffic(self) -> None:
        deployment = self.deployment_row
        if deployment.candidate_weight == 50 or deployment.stable_revision.number == 2:
            assert deployment.candidate_replicas is None, "all that was approved"

    def teardown(self) -> None:
        """Left alone with a cluster that answers, it ends, and the cluster is what the rows say."""
        if not hasattr(self, "savepoint"):
            return
        try:
            self._end()
        finally:
            transaction.savepoint_rollback(self.savepoint)
            self.world.cluster.objects = self.objects
            self.world.cluster.fail_with = None
            self.world.clock.at = self.began_at

    def _end(self) -> None:
        self.world.cluster.fail_with = None
        for _ in range(12):
            if not ROLLOUT[RolloutPhase(self.row.phase)]:
                break
            self.world.clock.move(8 * 24 * 3600)
            self.the_candidate_comes_up()
        assert not ROLLOUT[RolloutPhase(self.row.phase)]
        self.reconcile_now()
        is_done = self.row.phase == RolloutPhase.COMPLETED
        left = "detector-r2" if is_done else "detector-r1"
        assert self.world.cluster.names("InferenceService") == [left]
        assert self.world.cluster.weights("vision", "detector") == {f"{left}-predictor": 100}
        assert self.world.cluster.mirrors("vision", "detector") == {}
        state = ChangeRequest.objects.get(kind="canary").state
        assert state == (ChangeState.DONE if is_done else ChangeState.FAILED)


@pytest.mark.django_db
@pytest.mark.parametrize(("kind", "steps"), [("canary", STEPS), ("shadow", MIRRORED)])
def test_every_path_on_real_rows_ends_well(
    world: World, kind: str, steps: list[dict[str, Any]]
) -> None:
    let_mirror(*MIRRORING)
    deployment = world.serving(min_replicas=4, max_replicas=4)
    change = requests.request_canary(
        actor=world.member,
        deployment_id=deployment.pk,
        version_id=world.version2.pk,
        steps=steps,
        plan={**AT_ONCE, "watch_seconds": 60, "kind": kind, "guards": OF_SERVERS},
    )
    world.approved(change)
    Rows.world, Rows.deployment = world, deployment

    run_state_machine_as_test(
        Rows,
        settings=settings(
            max_examples=5 if kind == "canary" else 3,
            stateful_step_count=12,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
