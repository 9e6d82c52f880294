"""Read a deployment's live objects for people: compared with the desired manifests, and pod logs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from deployments.delivery.domain import object_comparison
from deployments.delivery.domain.drift import Drift, DriftOutcome
from deployments.delivery.domain.object_comparison import (
    ApplyStatus,
    ObjectComparison,
    ObjectState,
)
from deployments.delivery.services import git_backend
from deployments.manifests.domain import metadata
from deployments.manifests.domain.access import caller_keys
from deployments.manifests.domain.access.caller_keys import GatewayRefusal
from deployments.manifests.domain.metadata import Manifest, to_yaml
from deployments.manifests.selectors.rendered import RenderedDeployment
from deployments.models import Deployment
from deployments.serving.selectors import deployments
from fleet.kube.domain.errors import ClusterError, ObjectNotFound
from fleet.kube.services import objects
from fleet.kube.services.objects import LiveObject
from fleet.observation.selectors import pods
from portal.accounts.policy import Actor
from portal.core.errors import NotFound

# Objects of the team's address change with other deployments: what differs there is nobody's edit.
_CHANGING: Final = ApplyStatus(is_current=False, is_direct=False)


@dataclass(frozen=True, slots=True)
class ObjectView:
    """An object next to its manifest, with the manifest as YAML. `is_shared` means that other deployments of the
    namespace use it too; it is written with each change, and its edits are not reverted in between.
    """

    kind: str
    name: str
    text: str
    is_shared: bool
    comparison: ObjectComparison


@dataclass(frozen=True, slots=True)
class LiveComparison:
    """The objects of a deployment. `problem` says why the cluster did not answer, empty if it did."""

    objects: Sequence[ObjectView]
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Log:
    text: str
    problem: str = ""


def compare(*, actor: Actor, deployment_id: int) -> LiveComparison:
    """Read each object once. After the first that the cluster does not return, the others are what the last check
    found.
    """
    deployment = deployments.get_visible_by_id(actor=actor, deployment_id=deployment_id)
    if deployment.is_retired:
        return LiveComparison([])
    rendered = RenderedDeployment(deployment)
    status = _status_of(deployment)
    drift = Drift.from_json(deployment.drift)
    pending = drift.edits if drift.outcome == DriftOutcome.PENDING else ()
    views: list[ObjectView] = []
    problem = ""
    for manifest in _desired(rendered):
        is_changing = manifest in rendered.team_policies
        comparison = object_comparison.recall(manifest, pending)
        if not problem:
            try:
                comparison = _compare(
                    deployment.cluster_id, manifest, _CHANGING if is_changing else status
                )
            except ClusterError as error:
                problem = error.message
        views.append(_view(manifest, comparison))
    return LiveComparison(views, problem)


def _status_of(deployment: Deployment) -> ApplyStatus:
    is_current = deployments.is_current(deployment)
    return ApplyStatus(
        is_current=is_current,
        is_removed=deployment.is_stopped or deployment.is_retiring,
        is_direct=is_current or git_backend.backend_for(deployment) is None,
    )


def _compare(cluster_id: int, manifest: Manifest, status: ApplyStatus) -> ObjectComparison:
    live = _read(cluster_id, manifest)
    if live.is_foreign:
        return ObjectComparison(ObjectState.NOT_OURS)
    return object_comparison.compare_object(manifest, live.item, status)


def refused_policies(deployment: Deployment) -> list[GatewayRefusal]:
    """Return the policies of callers that the gateway does not follow. Raises ClusterError."""
    rendered = RenderedDeployment(deployment)
    refusals = []
    for manifest in (*rendered.caller_policies, *rendered.team_policies):
        live = _get(deployment.cluster_id, manifest)
        is_shared = manifest in rendered.team_policies
        if live is not None:
            refusals.append(caller_keys.refusal_of(live, is_shared=is_shared))
        elif is_shared:
            refusals.append(caller_keys.missing(manifest["kind"]))
    return [refusal for refusal in refusals if refusal is not None]


def read_log(*, actor: Actor, deployment_id: int, pod: str, lines: int) -> Log:
    """Read the last lines of a pod's log. Empty without a pod. Raises NotFound for a pod of another deployment."""
    deployment = deployments.get_visible_by_id(actor=actor, deployment_id=deployment_id)
    if not pod:
        return Log("")
    if pod not in {info.name for info in pods_of(deployment)}:
        raise NotFound(f"{deployment} has no pod {pod}.")
    try:
        text = objects.pod_log(
            cluster_id=deployment.cluster_id,
            namespace=deployment.namespace,
            pod=pod,
            tail_lines=lines,
        )
    except ObjectNotFound:
        return Log("", "The pod is gone. Choose another pod.")
    except ClusterError as error:
        return Log("", f"The cluster did not return the log: {error.message}")
    return Log(text)


def pods_of(deployment: Deployment) -> list[pods.PodInfo]:
    """Return the pods of every revision that may still run, the newest revision first."""
    numbers = deployment.revisions.values_list("number", flat=True).order_by("-number")[:5]
    return [
        pod
        for number in numbers
        for pod in pods.list_pods(
            cluster_id=deployment.cluster_id,
            namespace=deployment.namespace,
            name=f"{deployment.name}-r{number}",
        )
    ]


def _desired(rendered: RenderedDeployment) -> list[Manifest]:
    """Return the desired manifests: shared objects once, then each revision's own, then the route."""
    by_name: dict[tuple[str, str], Manifest] = {}
    for revision in rendered.revisions:
        for manifest in rendered.render_revision(revision).manifests:
            by_name.setdefault((manifest["kind"], manifest["metadata"]["name"]), manifest)
    manifests = list(by_name.values())
    if rendered.deployment.stable_revision is None:
        return manifests
    policies = [
        *rendered.caller_policies,
        *rendered.gateway_policies,
        *rendered.team_policies,
    ]
    return [*manifests, *policies, rendered.route]


def _view(manifest: Manifest, comparison: ObjectComparison) -> ObjectView:
    return ObjectView(
        manifest["kind"],
        manifest["metadata"]["name"],
        to_yaml([manifest]),
        is_shared=not metadata.is_of_deployment(manifest),
        comparison=comparison,
    )


def _get(cluster_id: int, manifest: Manifest) -> dict[str, Any] | None:
    return _read(cluster_id, manifest).item


def _read(cluster_id: int, manifest: Manifest) -> LiveObject:
    meta = manifest["metadata"]
    return objects.read(
        cluster_id=cluster_id,
        api_version=manifest["apiVersion"],
        kind=manifest["kind"],
        namespace=meta.get("namespace"),
        name=meta["name"],
    )
