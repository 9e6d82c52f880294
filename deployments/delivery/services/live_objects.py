"""Read a deployment's live objects for people: compared with the desired manifests, and pod logs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from deployments.manifests.domain import diff as manifest_diff
from deployments.manifests.domain.access import caller_keys
from deployments.manifests.domain.access.caller_keys import GatewayRefusal
from deployments.manifests.domain.diff import DiffLine
from deployments.manifests.domain.metadata import Manifest, to_yaml
from deployments.manifests.selectors.rendered import RenderedDeployment
from deployments.models import Deployment
from deployments.serving.selectors import deployments
from fleet.kube.domain.errors import ClusterError, ObjectNotFound
from fleet.kube.services import objects
from fleet.observation.selectors import pods
from portal.accounts.policy import Actor
from portal.core.errors import NotFound


@dataclass(frozen=True, slots=True)
class ObjectView:
    """An object next to its manifest. `is_live` is None while unknown. `diff` leads from the desired to the live
    object.
    """

    kind: str
    name: str
    text: str
    is_live: bool | None
    diff: Sequence[DiffLine] = ()


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
    deployment = deployments.get_visible_by_id(actor=actor, deployment_id=deployment_id)
    views: list[ObjectView] = []
    problem = ""
    for manifest in _desired(deployment):
        view = _unknown(manifest)
        if not problem:
            try:
                view = _view(deployment.cluster_id, manifest)
            except ClusterError as error:
                problem = error.message
        views.append(view)
    return LiveComparison(views, problem)


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


def _desired(deployment: Deployment) -> list[Manifest]:
    """Return the desired manifests: shared objects once, then each revision's own, then the route."""
    if deployment.is_retired:
        return []
    rendered = RenderedDeployment(deployment)
    by_name: dict[tuple[str, str], Manifest] = {}
    for revision in rendered.revisions:
        for manifest in rendered.render_revision(revision).manifests:
            by_name.setdefault((manifest["kind"], manifest["metadata"]["name"]), manifest)
    manifests = list(by_name.values())
    if deployment.stable_revision is None:
        return manifests
    policies = [
        *rendered.caller_policies,
        *rendered.gateway_policies,
        *rendered.team_policies,
    ]
    return [*manifests, *policies, rendered.route]


def _view(cluster_id: int, manifest: Manifest) -> ObjectView:
    meta = manifest["metadata"]
    live = _get(cluster_id, manifest)
    desired = to_yaml([manifest])
    if live is None:
        return ObjectView(manifest["kind"], meta["name"], desired, is_live=False)
    observed = to_yaml([manifest_diff.project(live, manifest)])
    diff = manifest_diff.diff_lines(desired, observed)
    return ObjectView(manifest["kind"], meta["name"], desired, is_live=True, diff=diff)


def _get(cluster_id: int, manifest: Manifest) -> dict[str, Any] | None:
    meta = manifest["metadata"]
    return objects.get(
        cluster_id=cluster_id,
        api_version=manifest["apiVersion"],
        kind=manifest["kind"],
        namespace=meta.get("namespace"),
        name=meta["name"],
    )


def _unknown(manifest: Manifest) -> ObjectView:
    name = manifest["metadata"]["name"]
    return ObjectView(manifest["kind"], name, to_yaml([manifest]), is_live=None)
