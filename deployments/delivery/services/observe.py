"""Read the live objects of deployments from their cluster."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from deployments.delivery.domain import owned_kinds, progress
from deployments.delivery.domain.owned_kinds import Kind
from deployments.delivery.domain.progress import WorkloadProgress
from deployments.manifests.domain import http_route, route_paths
from deployments.manifests.domain import metadata as manifest_metadata
from deployments.manifests.domain.access import caller_keys, team_address
from deployments.manifests.selectors import team_members
from deployments.models import Deployment, Revision
from deployments.serving.domain.queue_state import QueueState
from deployments.spec.domain.serving_spec import ServingSpec
from fleet.clusters.domain.capabilities import Capabilities
from fleet.kube.domain.label_selectors import Labels
from fleet.kube.services import objects

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Workload:
    """The live workload of one revision, created by the portal."""

    number: int
    name: str
    object: Json

    @property
    def digest(self) -> str:
        annotations = self.object["metadata"].get("annotations", {})
        return str(annotations.get(manifest_metadata.DIGEST_ANNOTATION, ""))

    @property
    def is_terminating(self) -> bool:
        """Whether the object is deleted, but still kept by a finalizer."""
        return "deletionTimestamp" in self.object["metadata"]


@dataclass(frozen=True)
class DeploymentObservation:
    """The workloads and pods by revision number. `route` is None while there is none."""

    workloads: Mapping[int, Workload]
    pods: Mapping[int, list[Json]]
    route: Json | None
    # Deployments that a workload's controller made, by revision number.
    controlled: Mapping[int, list[Json]] = field(default_factory=dict)
    # By revision number, for those that name a queue.
    queues: Mapping[int, QueueState] = field(default_factory=dict)

    @cached_property
    def weights(self) -> dict[str, int] | None:
        return http_route.weights_in(self.route)

    @cached_property
    def mirrors(self) -> dict[str, int]:
        return http_route.mirrors_in(self.route)

    @cached_property
    def paths(self) -> frozenset[str]:
        return route_paths.paths_in(self.route)

    @cached_property
    def keys(self) -> str:
        return caller_keys.keys_in(self.route)

    @cached_property
    def route_problem(self) -> str | None:
        return None if self.route is None else http_route.problem_with(self.route)

    def after_push(self, answers: Sequence[Json]) -> DeploymentObservation:
        """Return the observation updated by a push: the cluster's response has the current objects."""
        workloads, route = dict(self.workloads), self.route
        for item in answers:
            if (item["apiVersion"], item["kind"]) in owned_kinds.WORKLOADS:
                workload = workload_of(item)
                workloads[workload.number] = workload
            elif item["kind"] == http_route.KIND:
                route = item
        return replace(self, workloads=workloads, route=route)

    def with_pods(self, pods: Mapping[int, list[Json]]) -> DeploymentObservation:
        return replace(self, pods=pods)

    def with_queues(self, queues: Mapping[int, QueueState]) -> DeploymentObservation:
        return replace(self, queues=queues)

    def weight_of(self, service: str) -> int | None:
        """Return the percent of requests sent to the Service. None while the gateway does not follow the route."""
        if self.weights is None or self.route_problem != "":
            return None
        return self.weights.get(service, 0)

    def mirror_of(self, service: str) -> int | None:
        """Return the percent of requests mirrored to the Service. None while the gateway does not follow the route."""
        if self.weights is None or self.route_problem != "":
            return None
        return self.mirrors.get(service, 0)

    def progress_of(self, revision: Revision, spec: ServingSpec) -> WorkloadProgress:
        workload = self.workloads.get(revision.number)
        return progress.derive_workload_progress(
            workload=workload.object if workload else None,
            pods=self.pods.get(revision.number, []),
            desired_pods=spec.floor_replicas * spec.nodes,
            controlled=self.controlled.get(revision.number, []),
        )


def observe(deployments: Sequence[Deployment]) -> dict[int, DeploymentObservation]:
    """Observe deployments of one cluster with one listing per kind. Returns observations by primary key.

    Raises ClusterError if the cluster does not answer: the state is then unknown, not absent.
    """
    kinds = [*owned_kinds.WORKLOADS, owned_kinds.ROUTE, owned_kinds.POD]
    *workloads, routes, pods = list_labelled(deployments, kinds)
    builders = {deployment.pk: _ObservationBuilder(deployment) for deployment in deployments}
    for item in itertools.chain(*workloads):
        # KServe copies labels to the Deployments that it owns; those are not the portal's.
        is_controlled = bool(item["metadata"].get("ownerReferences"))
        add = (
            _ObservationBuilder.add_controlled
            if is_controlled
            else _ObservationBuilder.add_workload
        )
        _add(builders, item, add)
    for item in routes:
        _add(builders, item, _ObservationBuilder.add_route)
    for item in pods:
        _add(builders, item, _ObservationBuilder.add_pod)
    return {pk: builder.build() for pk, builder in builders.items()}


def observe_dependents(deployments: Sequence[Deployment]) -> dict[int, list[Json]]:
    """Return the dependent objects that the portal created, by the deployment's primary key."""
    by_deployment: dict[int, list[Json]] = {deployment.pk: [] for deployment in deployments}
    by_label = {str(deployment.pk): deployment for deployment in deployments}
    listed = list_labelled(deployments, owned_kinds.DEPENDENT_OBJECTS, skip_refused=True)
    listed.append(_beside_gateway(deployments, owned_kinds.GATEWAY_ACCESS, _label_of(deployments)))
    for item in itertools.chain(*listed):
        labels = item["metadata"].get("labels", {})
        deployment = by_label.get(labels.get(manifest_metadata.DEPLOYMENT_ID_LABEL, ""))
        if deployment is None or not _is_named(item, deployment):
            continue
        if _is_created_by_portal(item, deployment):
            by_deployment[deployment.pk].append(item)
    shared = _beside_gateway(
        deployments, owned_kinds.GATEWAY_TOKENS, dict(manifest_metadata.MANAGED_BY)
    )
    for deployment in deployments:
        by_deployment[deployment.pk] += _of_team_address(deployment)
    return {pk: [*items, *shared] for pk, items in by_deployment.items()}


def _of_team_address(deployment: Deployment) -> list[Json]:
    """Return the objects that it shares with other deployments of the team. Empty if it does not serve at the
    team's address.
    """
    if not team_members.serves_there(deployment):
        return []
    listed = objects.list_several(
        cluster_id=deployment.cluster_id,
        kinds=owned_kinds.TEAM_ADDRESS,
        namespaces=[deployment.namespace],
        labels={team_address.LABEL: "true"},
        skip_refused=True,
    )
    return list(itertools.chain(*listed))


def _beside_gateway(deployments: Sequence[Deployment], kind: Kind, labels: Labels) -> list[Json]:
    """List the policies in the Gateway's namespace. Empty where policies lie beside routes."""
    cluster = deployments[0].cluster
    if not Capabilities.from_json(cluster.capabilities).verifies_tokens:
        return []
    (items,) = objects.list_several(
        cluster_id=cluster.pk,
        kinds=[kind],
        namespaces=[cluster.gateway_namespace],
        labels=labels,
        skip_refused=True,
    )
    return items


def is_own(item: Json) -> bool:
    """Whether the object belongs to one deployment. False for what several deployments share."""
    return manifest_metadata.DEPLOYMENT_ID_LABEL in item["metadata"].get("labels", {})


def _is_created_by_portal(item: Json, deployment: Deployment) -> bool:
    """Whether the portal created the object. False if a controller created it with copied labels, or if it is
    terminating.
    """
    metadata = item["metadata"]
    return (
        manifest_metadata.MANAGED_BY.items() <= metadata.get("labels", {}).items()
        and metadata.get("namespace") == _namespace_of(item, deployment)
        and not metadata.get("ownerReferences")
        and "deletionTimestamp" not in metadata
    )


def _namespace_of(item: Json, deployment: Deployment) -> str:
    """Return the namespace in which the portal creates objects of the kind."""
    is_beside_gateway = (item["apiVersion"], item["kind"]) == owned_kinds.GATEWAY_ACCESS
    return deployment.cluster.gateway_namespace if is_beside_gateway else deployment.namespace


def list_of_revision(deployment: Deployment, number: int) -> list[Json]:
    """List the dependent objects of a revision."""
    items = observe_dependents([deployment])[deployment.pk]
    return [item for item in items if number_of(item) == number]


def list_labelled(
    deployments: Sequence[Deployment], kinds: Sequence[Kind], *, skip_refused: bool = False
) -> list[list[Json]]:
    """List the objects with the label of one of the deployments, by kind. Other namespaces may be included."""
    return objects.list_several(
        cluster_id=deployments[0].cluster_id,
        kinds=kinds,
        namespaces=sorted({deployment.namespace for deployment in deployments}),
        labels=_label_of(deployments),
        skip_refused=skip_refused,
    )


def _label_of(deployments: Sequence[Deployment]) -> Labels:
    ids = [str(deployment.pk) for deployment in deployments]
    return {manifest_metadata.DEPLOYMENT_ID_LABEL: ids[0] if len(ids) == 1 else ids}


class _ObservationBuilder:
    def __init__(self, deployment: Deployment) -> None:
        self.deployment = deployment
        self._workloads: dict[int, Workload] = {}
        self._pods: dict[int, list[Json]] = {}
        self._controlled: dict[int, list[Json]] = {}
        self._route: Json | None = None

    def add_workload(self, item: Json) -> None:
        workload = workload_of(item)
        self._workloads[workload.number] = workload

    def add_controlled(self, item: Json) -> None:
        self._controlled.setdefault(number_of(item), []).append(item)

    def add_route(self, item: Json) -> None:
        if item["metadata"]["name"] == self.deployment.name:
            self._route = item

    def add_pod(self, item: Json) -> None:
        self._pods.setdefault(number_of(item), []).append(item)

    def build(self) -> DeploymentObservation:
        return DeploymentObservation(
            workloads=self._workloads,
            pods=self._pods,
            route=self._route,
            controlled=self._controlled,
        )


def _add(
    builders: Mapping[int, _ObservationBuilder],
    item: Json,
    add: Callable[[_ObservationBuilder, Json], None],
) -> None:
    """Add an object to its deployment's observation. Anyone can write labels, so one in another namespace is left
    out.
    """
    label = item["metadata"].get("labels", {}).get(manifest_metadata.DEPLOYMENT_ID_LABEL, "")
    builder = builders.get(int(label)) if label.isdecimal() else None
    if builder is None or not _is_named(item, builder.deployment):
        return
    if item["metadata"].get("namespace") == builder.deployment.namespace:
        add(builder, item)


def _is_named(item: Json, deployment: Deployment) -> bool:
    """Whether the object has the deployment's name too: another database has other rows with the same ids."""
    name = item["metadata"].get("labels", {}).get(manifest_metadata.DEPLOYMENT_LABEL)
    return name in (None, deployment.name)


def workload_of(item: Json) -> Workload:
    return Workload(number_of(item), item["metadata"]["name"], item)


def number_of(item: Json) -> int:
    return int(item["metadata"].get("labels", {}).get(manifest_metadata.REVISION_LABEL, 0))
