"""The state of one deployment within a reconcile pass: desired manifests and observed objects."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from deployments.delivery.domain import drift, edits, reconcile
from deployments.delivery.domain.drift import Drift, DriftOutcome
from deployments.delivery.domain.edits import Edit
from deployments.delivery.domain.reconcile import Desired, NextStep, ObservedDeployment
from deployments.delivery.services import observe
from deployments.delivery.services.caller_keys import PolicyRefusal
from deployments.delivery.services.effects import Push
from deployments.delivery.services.observe import DeploymentObservation, number_of
from deployments.manifests.domain import metadata
from deployments.manifests.domain.access import caller_keys
from deployments.manifests.domain.metadata import Manifest
from deployments.manifests.selectors.rendered import RenderedDeployment
from deployments.models import Deployment, Revision
from deployments.serving.domain.observed_revision import ObservedRevision
from deployments.states import DriftPolicy
from portal.core import tracing

Json = dict[str, Any]

# Only deletions of a few dependent kinds are watched; compare the others every few minutes.
_CHECK_EVERY: Final = timedelta(minutes=4)


@dataclass(frozen=True, slots=True)
class DriftReport:
    """The drift recorded before and after this pass, the orphans that it removed, and whether dependent objects
    were compared.
    """

    before: Drift
    drift: Drift
    pruned: Sequence[str]
    is_checked: bool


class ReconcileState:
    """The state of a deployment in a pass. `refusals` are the revisions that the cluster rejected in this pass, by
    number.

    `drifted`, `is_route_drifted` and `orphans` are still to be reverted or removed. If a team delivers through Git
    (`is_direct` false), its GitOps operator reverts drift.
    """

    def __init__(self, deployment: Deployment, *, is_direct: bool) -> None:
        self.deployment = deployment
        self.rendered = RenderedDeployment(deployment)
        self._is_direct = is_direct
        self.observation = DeploymentObservation({}, {}, None)
        self.refusals: dict[int, str] = {}
        self.drifted: set[int] = set()
        self.is_route_drifted = False
        # Why the cluster rejected the route in this pass.
        self.route_refusal = ""
        self.orphans: list[Json] = []
        # Of the callers' policies, in this pass.
        self.policy_refusal: PolicyRefusal | None = None
        self.pruned: list[str] = []
        self._recorded_drift = self._drift = Drift.from_json(deployment.drift)
        self._reverted: list[Edit] = []
        self._objects: dict[tuple[str, str], Json] | None = None

    @property
    def traced(self) -> tuple[str, tracing.Attributes]:
        deployment = self.deployment
        named = {"slipway.deployment": str(deployment), "slipway.cluster": deployment.cluster.name}
        return deployment.trace, named

    def decide(self) -> NextStep:
        return reconcile.decide(*self.compare())

    def observe(self, observation: DeploymentObservation, at: datetime) -> None:
        self.observation = observation
        self._assess_drift(at)

    def needs_check(self, at: datetime) -> bool:
        """Whether dependent objects must be compared. False in the pass that wrote them: the response to a push has
        the current objects.
        """
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

    def observe_dependents(self, items: Sequence[Json], at: datetime) -> None:
        """Take all objects with the deployment's label, besides workloads, route and pods, and find orphans and
        drift.
        """
        self._objects = {(item["kind"], item["metadata"]["name"]): item for item in items}
        desired = {
            (manifest["kind"], manifest["metadata"]["name"])
            for revision in self._desired_revisions()
            for manifest in self.rendered.render_revision(revision).manifests
        }
        desired |= {_key(policy) for policy in self._desired_policies()}
        refused = set(self.refusals)
        self.orphans = [
            item
            for key, item in self._objects.items()
            if key not in desired and number_of(item) not in refused and observe.is_own(item)
        ]
        self._assess_drift(at)

    def drift_report(self) -> DriftReport:
        is_checked = self._objects is not None
        return DriftReport(self._recorded_drift, self._drift, tuple(self.pruned), is_checked)

    def desired_manifests(self) -> list[Manifest]:
        """Return the desired manifests: shared objects once, the route last."""
        manifests: list[Manifest] = []
        for revision in self._desired_revisions():
            rendered = self.rendered.render_revision(revision).manifests
            manifests += [manifest for manifest in rendered if manifest not in manifests]
        if manifests and self.rendered.has_route:
            # First: a route without its policy would be open.
            manifests += [*self.rendered.caller_policies, self.rendered.route]
        return manifests

    def push_of(self, number: int) -> Push:
        revision = self.rendered.row_of(number)
        is_known = number in self.observation.workloads
        return Push(
            revision,
            self.rendered.render_revision(revision),
            self.rendered.context,
            is_known=is_known,
        )

    def _desired_revisions(self) -> list[Revision]:
        """Return the desired revisions without those that the cluster rejected in this pass, so that the pass goes
        on with the others.
        """
        if self.deployment.is_retiring or self.deployment.is_stopped:
            return []
        revisions = self.rendered.revisions
        return [revision for revision in revisions if revision.number not in self.refusals]

    def compare(self) -> tuple[Desired, ObservedDeployment]:
        """Return what is desired and what was observed."""
        rendered, workloads = self.rendered, self.observation.workloads
        desired = Desired(
            digests={
                revision.number: rendered.render_revision(revision).workload_digest
                for revision in self._desired_revisions()
            },
            weights=rendered.weights,
            mirrors=rendered.mirrors,
            paths=rendered.paths,
            keys=rendered.keys,
            is_retiring=self.deployment.is_retiring,
            is_stopped=self.deployment.is_stopped,
        )
        digests = {
            number: workload.digest
            for number, workload in workloads.items()
            if number not in self.refusals
            and (number in desired.digests or not workload.is_terminating)
        }
        return desired, ObservedDeployment(
            digests=digests,
            weights=self.observation.weights,
            mirrors=self.observation.mirrors,
            paths=self.observation.paths,
            # Tried in this pass already: the next one tries again.
            keys=rendered.keys if self.policy_refusal else self.observation.keys,
            has_terminating=any(workload.is_terminating for workload in workloads.values()),
            drifted=frozenset(self.drifted),
            is_route_drifted=self.is_route_drifted,
            has_orphans=bool(self.orphans),
        )

    def _assess_drift(self, at: datetime) -> None:
        """Find the edits of others and decide whether to revert them now. The route is always
        reverted: traffic goes where it was approved to go.
        """
        if not self._is_direct:
            return
        deployment = self.deployment
        by_revision = {
            revision.number: self._edits_of(revision) for revision in self._desired_revisions()
        }
        route_edits = self._route_edits()
        revision_edits = [edit for of_revision in by_revision.values() for edit in of_revision]
        policy = DriftPolicy(deployment.drift_policy) if revision_edits else DriftPolicy.RE_APPLY
        new_edits = [*revision_edits, *route_edits]
        if not new_edits and self._reverted:
            # The drift reverted earlier in this pass is what gets recorded.
            return
        self._drift = drift.assess_drift(
            self._recorded_drift,
            [*self._reverted, *(edit for edit in new_edits if edit not in self._reverted)],
            policy=policy,
            is_revert_requested=deployment.is_revert_requested,
            at=at,
        )
        is_pending = self._drift.outcome == DriftOutcome.PENDING
        edited = {number for number, of_revision in by_revision.items() if of_revision}
        self.drifted = set() if is_pending else edited
        self.is_route_drifted = bool(route_edits) or self._is_policy_wrong()
        self._reverted = [] if is_pending or not new_edits else list(self._drift.edits)

    def _edits_of(self, revision: Revision) -> list[Edit]:
        """Return the edits of a revision's objects. Empty while the workload has another digest: the push that
        follows reverts all edits.
        """
        workload = self.observation.workloads.get(revision.number)
        rendered = self.rendered.render_revision(revision)
        if workload is None:
            before = ObservedRevision.from_column(self.deployment.observed, revision.number)
            return edits.find_edits(rendered.workload, None) if before.exists else []
        if workload.digest != rendered.workload_digest:
            return []
        revision_edits = edits.find_edits(rendered.workload, workload.object)
        if self._objects is None:
            return revision_edits
        for manifest in rendered.manifests:
            if metadata.is_of_revision(manifest) and not metadata.is_workload(manifest):
                key = (manifest["kind"], manifest["metadata"]["name"])
                revision_edits += edits.find_edits(manifest, self._objects.get(key))
        return revision_edits

    def _route_edits(self) -> list[Edit]:
        if not self._desired_revisions() or self.deployment.first_ready_at is None:
            return []
        # The state of the keys is compared by itself.
        route = self.rendered.route_with(self.observation.keys)
        route_edits = edits.find_edits(route, self.observation.route)
        if self._objects is not None and self.policy_refusal is None:
            for policy in self._desired_policies():
                route_edits += edits.find_edits(policy, self._objects.get(_key(policy)))
        return route_edits

    def _is_policy_wrong(self) -> bool:
        """Whether a policy of callers must be written again.

        Either the gateway refuses it, because its Secret, which the portal may not read, was deleted, so both are
        written again; or it is one of the team's address, which changes with other deployments and is no edit of
        anybody.
        """
        if self.policy_refusal is not None:
            return False
        live = self._objects or {}
        shared = self.rendered.team_policies if live and self._desired_revisions() else ()
        refused = [live.get(_key(policy)) for policy in [*self._desired_policies(), *shared]]
        return any(caller_keys.refusal_of(item) for item in refused if item is not None) or any(
            edits.find_edits(policy, live.get(_key(policy))) for policy in shared
        )

    def _desired_policies(self) -> Sequence[Manifest]:
        if not self._desired_revisions():
            return ()
        return [*self.rendered.caller_policies, *self.rendered.gateway_policies]


def _key(item: Mapping[str, Any]) -> tuple[str, str]:
    return item["kind"], item["metadata"]["name"]
