"""One deployment within a look: what is wanted of it beside what the cluster shows of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from deployments.delivery.domain import drift as delivery_drift
from deployments.delivery.domain import edits, reconcile
from deployments.delivery.domain.drift import Drift, Outcome
from deployments.delivery.domain.edits import Edit
from deployments.delivery.domain.reconcile import Next, Seen, Wanted
from deployments.delivery.services import effects
from deployments.delivery.services.effects import Push
from deployments.delivery.services.observe import Observation, number_of
from deployments.manifests.domain import http_route, metadata
from deployments.manifests.domain.metadata import Manifest
from deployments.manifests.selectors import rendering
from deployments.models import Deployment, Revision
from deployments.states import DriftPolicy

Json = dict[str, Any]

# Nobody tells of a change to what stands beside a workload, so it is looked at now and then.
_CHECK_EVERY: Final = timedelta(minutes=4)


@dataclass(frozen=True, slots=True)
class Found:
    """What a look found beside the state: edits of others, leftovers, whether it looked at all."""

    drift: Drift
    pruned: Sequence[str]
    is_checked: bool


class ReconcileState:
    """`refusals` are what the cluster refused in this look, by revision number. `to_heal`,
    `is_route_edited` and `strays` are what is still to be put right. Where a team delivers through
    Git (`is_direct` false), an operator puts edits right.
    """

    def __init__(self, deployment: Deployment, *, is_direct: bool) -> None:
        self.deployment = deployment
        self._is_direct = is_direct
        self.observation = Observation({}, {}, None)
        self.refusals: dict[int, str] = {}
        self.to_heal: set[int] = set()
        self.is_route_edited = False
        self.strays: list[Json] = []
        self.pruned: list[str] = []
        self._drift = delivery_drift.from_json(deployment.drift)
        self._healed: list[Edit] = []
        self._objects: dict[tuple[str, str], Json] | None = None
        self._manifests: dict[int, list[Manifest]] = {}

    @property
    def revisions(self) -> list[Revision]:
        found = [self.deployment.stable_revision, self.deployment.candidate_revision]
        revisions = [revision for revision in found if revision is not None]
        for revision in revisions:
            # The same row, already loaded with its team and cluster.
            revision.deployment = self.deployment
        return revisions

    def manifests_of(self, revision: Revision) -> list[Manifest]:
        if revision.number not in self._manifests:
            self._manifests[revision.number] = rendering.manifests_of(revision)
        return self._manifests[revision.number]

    def decide(self) -> Next:
        return reconcile.decide(*self._compare())

    def see(self, observation: Observation, at: datetime) -> None:
        self.observation = observation
        self._judge(at)

    def must_check(self, at: datetime) -> bool:
        """Not in the look that wrote them: what the cluster answered then is what it holds."""
        deployment = self.deployment
        if self._objects is not None or not self._is_direct:
            return False
        if deployment.is_retiring:
            return True
        checked_at = deployment.objects_checked_at
        is_old = checked_at is None or at - checked_at >= _CHECK_EVERY
        is_written = deployment.observed_generation == deployment.desired_generation
        is_new = deployment.objects_checked_generation != deployment.desired_generation
        return is_written and (is_old or is_new)

    def see_objects(self, items: Sequence[Json], at: datetime) -> None:
        """All that carries the deployment's label, beside workloads, route and pods."""
        self._objects = {(item["kind"], item["metadata"]["name"]): item for item in items}
        wanted = {
            (one["kind"], one["metadata"]["name"])
            for revision in self._wanted_revisions()
            for one in self.manifests_of(revision)
        }
        refused = set(self.refusals)
        self.strays = [
            item
            for key, item in self._objects.items()
            if key not in wanted and number_of(item) not in refused
        ]
        self._judge(at)

    def found(self) -> Found:
        return Found(self._drift, tuple(self.pruned), self._objects is not None)

    def wanted_manifests(self) -> list[Manifest]:
        """All objects as they are to be, shared ones once, the route last."""
        found: list[Manifest] = []
        for revision in self._wanted_revisions():
            found += [one for one in self.manifests_of(revision) if one not in found]
        has_route = any(backend.weight for backend in rendering.backends_of(self.deployment))
        return [*found, rendering.route_of(self.deployment)] if found and has_route else found

    def push_of(self, number: int) -> Push:
        revision = next(one for one in self.revisions if one.number == number)
        is_known = number in self.observation.workloads
        return Push(revision, self.manifests_of(revision), is_known=is_known)

    def _wanted_revisions(self) -> list[Revision]:
        """A revision that the cluster refused in this look counts as pushed, so that the rest goes
        on.
        """
        if self.deployment.is_retiring or self.deployment.is_stopped:
            return []
        return [one for one in self.revisions if one.number not in self.refusals]

    def _compare(self) -> tuple[Wanted, Seen]:
        deployment = self.deployment
        context, backends = rendering.context_of(deployment), rendering.backends_of(deployment)
        wanted = Wanted(
            digests={
                one.number: effects.main_digest(self.manifests_of(one))
                for one in self._wanted_revisions()
            },
            weights=http_route.weights_of(context, backends),
            mirrors=http_route.mirrors_of(context, backends),
            paths=http_route.paths_of(context, backends),
            is_retiring=deployment.is_retiring,
            is_stopped=deployment.is_stopped,
        )
        workloads = self.observation.workloads
        digests = {
            number: workload.digest
            for number, workload in workloads.items()
            if number not in self.refusals and (number in wanted.digests or not workload.is_going)
        }
        return wanted, Seen(
            digests=digests,
            weights=self.observation.weights,
            mirrors=self.observation.mirrors,
            paths=http_route.paths_in(self.observation.route),
            is_going=any(workload.is_going for workload in workloads.values()),
            edited=frozenset(self.to_heal),
            is_route_edited=self.is_route_edited,
            has_strays=bool(self.strays),
        )

    def _judge(self, at: datetime) -> None:
        """What others changed, and whether it is put right now. The route always is: traffic goes
        where it was approved to go.
        """
        if not self._is_direct:
            return
        deployment = self.deployment
        by_revision = {one.number: self._edits_of(one) for one in self._wanted_revisions()}
        of_route = self._route_edits()
        others = [edit for found in by_revision.values() for edit in found]
        policy = DriftPolicy(deployment.drift_policy) if others else DriftPolicy.RE_APPLY
        found = [*others, *of_route]
        if not found and self._healed:
            # Put right in this look, which is what is told of it.
            return
        self._drift = delivery_drift.judge(
            delivery_drift.from_json(deployment.drift),
            [*self._healed, *(one for one in found if one not in self._healed)],
            policy=policy,
            is_heal_wanted=deployment.is_heal_wanted,
            at=at,
        )
        is_held = self._drift.outcome == Outcome.HELD
        self.to_heal = set() if is_held else {n for n, found in by_revision.items() if found}
        self.is_route_edited = bool(of_route)
        self._healed = [] if is_held else list(self._drift.edits) if found else []

    def _edits_of(self, revision: Revision) -> list[Edit]:
        """None while something else is to be pushed anyway: that takes all edits back."""
        workload = self.observation.workloads.get(revision.number)
        manifests = self.manifests_of(revision)
        if workload is None:
            before = self.deployment.observed.get(f"r{revision.number}", {})
            was_there = before.get("stage", "missing") != "missing"
            return edits.find(_main_of(manifests), None) if was_there else []
        if workload.digest != effects.main_digest(manifests):
            return []
        found = edits.find(_main_of(manifests), workload.object)
        if self._objects is None:
            return found
        for one in manifests:
            if metadata.REVISION_LABEL in one["metadata"].get("labels", {}) and not _is_main(one):
                key = (one["kind"], one["metadata"]["name"])
                found += edits.find(one, self._objects.get(key))
        return found

    def _route_edits(self) -> list[Edit]:
        deployment, route = self.deployment, self.observation.route
        if not self._wanted_revisions() or deployment.first_ready_at is None:
            return []
        return edits.find(rendering.route_of(deployment), route)


def _is_main(manifest: Mapping[str, Any]) -> bool:
    return metadata.DIGEST_ANNOTATION in manifest["metadata"].get("annotations", {})


def _main_of(manifests: Sequence[Manifest]) -> Manifest:
    return next(one for one in manifests if _is_main(one))
