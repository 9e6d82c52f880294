"""One reconcile pass over deployments of one cluster, with the effects that it calls for."""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Final

from deployments.delivery.domain import refusals
from deployments.delivery.domain.reconcile import NextStep, ReconcileStep
from deployments.delivery.services import (
    crash_logs,
    effects,
    git_backend,
    observe_apart,
    queue_states,
    record,
    start_logs,
    waits,
)
from deployments.delivery.services.effects import Result
from deployments.delivery.services.git_backend import CommitResult
from deployments.delivery.services.observe import observe_dependents
from deployments.delivery.services.reconcile_state import ReconcileState
from deployments.delivery.services.snapshot import DeploymentSnapshot
from deployments.manifests.services.serving_bytes import NotAsApproved
from deployments.models import Deployment
from fleet.kube.domain.errors import ClusterError
from portal.core import clock, tracing
from portal.core.leases import Lease

logger = logging.getLogger(__name__)

_MAX_EFFECTS = 12
# Credentials that expired between two calls (Refused) say nothing about the revision.
_PERMANENT = (*refusals.REFUSALS, NotAsApproved)
_PUSHES: Final = (ReconcileStep.PUSH_REVISION, ReconcileStep.PUSH_ROUTE)
_ENDS: Final = (ReconcileStep.NONE, ReconcileStep.FINISH_RETIRING)
_RELATED = (
    "team",
    "cluster",
    "stable_revision__version__model__team",
    "candidate_revision__version__model__team",
    "baseline_revision",
)


class Batch:
    """A reconcile pass. After `run` each leased deployment is in `waits` (seconds until its next pass, None for
    never) or in `failures`, unless its lease was lost.
    """

    def __init__(self, leases: Mapping[int, Lease]) -> None:
        self._leases = leases
        self._at = clock.now()
        self._states: dict[int, ReconcileState] = {}
        self._committed: list[ReconcileState] = []
        self.waits: dict[int, float | None] = {}
        self.failures: dict[int, ClusterError] = {}

    def run(self) -> None:
        """Run the pass. Raises ClusterError if the cluster does not answer at all."""
        self._load(list(self._leases))
        self._observe(list(self._states))
        for _ in range(_MAX_EFFECTS):
            if not self._states:
                return
            self._refresh()
            by_step: dict[ReconcileStep, list[tuple[ReconcileState, NextStep]]] = defaultdict(list)
            for state in self._states.values():
                decision = state.decide()
                by_step[decision.step].append((state, decision))
            ends = [state for step in _ENDS for state, _ in by_step.get(step, [])]
            unchecked = [state for state in ends if state.needs_check(self._at)]
            self._check_dependents(unchecked)
            self._settle(_without(by_step.pop(ReconcileStep.NONE, []), unchecked))
            self._finish(_without(by_step.pop(ReconcileStep.FINISH_RETIRING, []), unchecked))
            self._act(by_step)
            self._record_committed()
        for pk in self._states:
            self.waits[pk] = waits.MOVING_SECONDS

    def _load(self, pks: Sequence[int]) -> None:
        if not pks:
            return
        rows = list(Deployment.objects.select_related(*_RELATED).filter(pk__in=pks).order_by())
        through_git = git_backend.backends_for(rows)
        for row in rows:
            if row.is_retired:
                self._end(row.pk, None)
                continue
            before = self._states.get(row.pk)
            state = ReconcileState(row, is_direct=row.pk not in through_git)
            if before is not None:
                state.refusals = before.refusals
                state.observe(before.observation, self._at)
            self._states[row.pk] = state

    def _refresh(self) -> None:
        """Drop deployments that another worker leased meanwhile, and reload those that people changed."""
        token = next(iter(self._leases.values())).token
        leased = Deployment.objects.filter(
            pk__in=list(self._states), lease_token=token, lease_until__gt=clock.now()
        )
        generations = dict(leased.order_by().values_list("pk", "desired_generation"))
        for pk in self._states.keys() - generations.keys():
            del self._states[pk]
        changed = [
            pk
            for pk, state in self._states.items()
            if state.deployment.desired_generation != generations[pk]
        ]
        self._load(changed)

    def _observe(self, pks: Sequence[int]) -> None:
        if not pks:
            return
        rows = [self._states[pk].deployment for pk in pks]
        observations, refused = observe_apart.observe_all(rows)
        for pk, observation in observations.items():
            self._states[pk].observe(observation, self._at)
        for pk, error in refused.items():
            self._fail(self._states[pk], error)

    def _check_dependents(self, states: Sequence[ReconcileState]) -> None:
        """Compare all objects that the portal may have written, not only workloads and routes."""
        if states:
            items = observe_dependents([state.deployment for state in states])
            for state in states:
                state.observe_dependents(items[state.deployment.pk], self._at)

    def _act(
        self, by_step: Mapping[ReconcileStep, Sequence[tuple[ReconcileState, NextStep]]]
    ) -> None:
        for step, items in by_step.items():
            revisions = [f"{state.deployment.pk}/r{item.revision_number}" for state, item in items]
            logger.info("%s deployments=%s", step, ",".join(revisions))
        self._push_revisions(by_step.get(ReconcileStep.PUSH_REVISION, []))
        self._push_routes([state for state, _ in by_step.get(ReconcileStep.PUSH_ROUTE, [])])
        for step, items in by_step.items():
            if step not in _PUSHES:
                self._delete(step, items)

    def _push_revisions(self, items: Sequence[tuple[ReconcileState, NextStep]]) -> None:
        if not items:
            return
        pushes = [state.push_of(decision.revision_number) for state, decision in items]
        with tracing.span_for_each("push revision", [state.traced for state, _ in items]):
            results = effects.push_revisions(pushes)
        for (state, decision), result in zip(items, results, strict=True):
            if isinstance(result, _PERMANENT):
                self._refuse(state, decision.revision_number, result)
            else:
                state.drifted.discard(decision.revision_number)
                self._take_result(state, result)

    def _push_routes(self, states: Sequence[ReconcileState]) -> None:
        if not states:
            return
        with tracing.span_for_each("push route", [state.traced for state in states]):
            closed = {state.deployment.pk for state in states if state.observation.keys}
            pushes = effects.push_routes([state.rendered for state in states], closed=closed)
        for state, push in zip(states, pushes, strict=True):
            state.is_route_drifted = False
            state.policy_refusal = push.refusal
            self._take_route(state, push.result)

    def _take_route(self, state: ReconcileState, result: Result) -> None:
        """Take the result of a route. A refused one ends the pass: nothing is removed that requests may still reach."""
        if not isinstance(result, refusals.REFUSALS):
            self._take_result(state, result)
            return
        state.route_refusal = refusals.describe_refusal(result, what="the route")
        self._record([state])
        self.waits[state.deployment.pk] = waits.REFUSED_SECONDS

    def _take_result(self, state: ReconcileState, result: Result) -> None:
        """Take the result of a push. The cluster's answer is what it holds, so there is no need to list again."""
        if isinstance(result, ClusterError):
            self._fail(state, result)
        elif isinstance(result, CommitResult):
            self._committed.append(state)
        else:
            state.observation = state.observation.after_push(result)

    def _refuse(self, state: ReconcileState, number: int, error: ClusterError) -> None:
        is_own_check = isinstance(error, NotAsApproved)
        state.refusals[number] = (
            error.message if is_own_check else refusals.describe_refusal(error, what="it")
        )
        state.drifted.discard(number)
        if number not in state.observation.workloads:
            effects.forget_revision(state.deployment, state.rendered.row_of(number))

    def _delete(
        self, step: ReconcileStep, items: Sequence[tuple[ReconcileState, NextStep]]
    ) -> None:
        for state, decision in items:
            try:
                committed = self._remove(state, step, decision.revision_number)
            except ClusterError as error:
                self._fail(state, error)
            else:
                self._committed += [state] if committed is not None else []
        pks = [state.deployment.pk for state, _ in items]
        self._observe([pk for pk in pks if pk in self._states])

    def _remove(
        self, state: ReconcileState, step: ReconcileStep, number: int
    ) -> CommitResult | None:
        if step == ReconcileStep.DELETE_ROUTE:
            return effects.delete_route(state.deployment)
        if step == ReconcileStep.DELETE_REVISION:
            workload = state.observation.workloads[number]
            return effects.delete_revision(state.deployment, workload)
        self._prune(state)
        return None

    def _settle(self, states: Sequence[ReconcileState]) -> None:
        """Record deployments whose cluster matches. If a team delivers through Git, its repository must match too."""
        if not states:
            return
        backends = git_backend.backends_for([state.deployment for state in states])
        for state in states:
            if state.deployment.pk in backends:
                backends[state.deployment.pk].sync(state.desired_manifests())
        self._record(states)

    def _record_committed(self) -> None:
        """Record committed deployments. A GitOps operator applies what is committed; the next pass observes the
        outcome.
        """
        committed, self._committed = self._committed, []
        self._record(committed)
        for state in committed:
            self.waits[state.deployment.pk] = waits.COMMITTED_SECONDS

    def _prune(self, state: ReconcileState) -> None:
        """Delete the orphans. Not called for Git, where a commit replaces the whole folder."""
        while state.orphans:
            effects.delete(state.deployment, state.orphans[0])
            orphan = state.orphans.pop(0)
            state.pruned.append(f"{orphan['kind']} {orphan['metadata']['name']}")

    def _record(self, states: Sequence[ReconcileState]) -> None:
        if not states:
            return
        for state in states:
            explained = crash_logs.explain(state.deployment, state.observation)
            explained = start_logs.explain(state.deployment, explained)
            state.observation = queue_states.explain(state.deployment, explained)
        snapshots = [DeploymentSnapshot.from_state(state) for state in states]
        settled = record.record(snapshots, self._leases)
        for state in states:
            pk = state.deployment.pk
            self._end(pk, waits.after(state, is_settled=settled.get(pk, False)))

    def _finish(self, states: Sequence[ReconcileState]) -> None:
        for state in states:
            record.record_retired(state.deployment, self._leases[state.deployment.pk])
            self._end(state.deployment.pk, None)

    def _fail(self, state: ReconcileState, error: ClusterError) -> None:
        self.failures[state.deployment.pk] = error
        del self._states[state.deployment.pk]

    def _end(self, pk: int, wait: float | None) -> None:
        self.waits[pk] = wait
        self._states.pop(pk, None)


def _without(
    items: Sequence[tuple[ReconcileState, NextStep]], unchecked: Sequence[ReconcileState]
) -> list[ReconcileState]:
    return [state for state, _ in items if state not in unchecked]
