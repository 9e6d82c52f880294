"""What the cluster shows of one deployment, read live."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from deployments.delivery.domain import owned_kinds, progress
from deployments.delivery.domain.owned_kinds import Kind
from deployments.delivery.domain.progress import Progress
from deployments.manifests.domain import http_route
from deployments.manifests.domain import metadata as manifest_metadata
from deployments.models import Deployment, Revision
from deployments.spec.domain import serving_spec
from deployments.spec.domain.serving_spec import ServingSpec
from fleet.kube.services import objects

Json = dict[str, Any]

_FEW_NAMESPACES: Final = 8


@dataclass(frozen=True, slots=True)
class Workload:
    """A live object of one revision that the portal made."""

    number: int
    name: str
    object: Json

    @property
    def digest(self) -> str:
        annotations = self.object["metadata"].get("annotations", {})
        return str(annotations.get(manifest_metadata.DIGEST_ANNOTATION, ""))

    @property
    def is_going(self) -> bool:
        """Deleted, but kept by a finalizer for a while."""
        return "deletionTimestamp" in self.object["metadata"]


@dataclass(frozen=True, slots=True)
class Observation:
    workloads: Mapping[int, Workload]
    pods: Mapping[int, list[Json]]
    route: Json | None

    @property
    def weights(self) -> dict[str, int] | None:
        return http_route.weights_in(self.route)

    @property
    def mirrors(self) -> dict[str, int]:
        return http_route.mirrors_in(self.route)

    @property
    def route_problem(self) -> str | None:
        return None if self.route is None else http_route.problem_with(self.route)

    def after_push(self, answers: Sequence[Json]) -> Observation:
        """With what the cluster answered to a push: the objects as it holds them now."""
        workloads, route = dict(self.workloads), self.route
        for item in answers:
            if (item["apiVersion"], item["kind"]) in owned_kinds.WORKLOADS:
                made = workload_of(item)
                workloads[made.number] = made
            elif item["kind"] == http_route.KIND:
                route = item
        return replace(self, workloads=workloads, route=route)

    def with_pods(self, pods: Mapping[int, list[Json]]) -> Observation:
        return replace(self, pods=pods)

    def weight_of(self, deployment: Deployment, revision: Revision) -> int | None:
        """What the gateway sends it; None while the gateway does not follow the route as it is."""
        if self.weights is None or self.route_problem != "":
            return None
        return self.weights.get(_service_of(deployment, revision), 0)

    def mirror_of(self, deployment: Deployment, revision: Revision) -> int | None:
        """What the gateway copies to it; None as above."""
        if self.weights is None or self.route_problem != "":
            return None
        return self.mirrors.get(_service_of(deployment, revision), 0)

    def progress_of(self, revision: Revision, spec: ServingSpec) -> Progress:
        workload = self.workloads.get(revision.number)
        return progress.of_workload(
            workload=workload.object if workload else None,
            pods=self.pods.get(revision.number, []),
            wanted_pods=spec.floor_replicas * spec.nodes,
        )


def _service_of(deployment: Deployment, revision: Revision) -> str:
    spec = serving_spec.stored(revision.spec)
    return http_route.service_name(deployment.name, revision.number, spec)


def observe(deployments: Sequence[Deployment]) -> dict[int, Observation]:
    """By primary key, for deployments of one cluster: one listing per kind, however many they are.

    Raises ClusterError when the cluster cannot be asked: that is "not known", not "gone".
    """
    kinds = [*owned_kinds.WORKLOADS, owned_kinds.ROUTE, owned_kinds.POD]
    *workloads, live_routes, pods = list_labelled(deployments, kinds)
    found = {deployment.pk: _Found(deployment) for deployment in deployments}
    for item in itertools.chain(*workloads):
        # KServe copies labels to the Deployments that it owns; those are not the portal's.
        if not item["metadata"].get("ownerReferences"):
            _put(found, item, lambda one, its: one.workloads.append(workload_of(its)))
    for item in live_routes:
        _put(found, item, _Found.put_route)
    for item in pods:
        _put(found, item, _Found.put_pod)
    return {pk: one.observation() for pk, one in found.items()}


def observe_objects(deployments: Sequence[Deployment]) -> dict[int, list[Json]]:
    """What stands beside workloads and routes, made by the portal, by the deployment's key."""
    found: dict[int, list[Json]] = {deployment.pk: [] for deployment in deployments}
    by_key = {str(deployment.pk): deployment for deployment in deployments}
    listed = list_labelled(deployments, owned_kinds.DEPENDENT_OBJECTS, skip_refused=True)
    for item in itertools.chain(*listed):
        labels = item["metadata"].get("labels", {})
        deployment = by_key.get(labels.get(manifest_metadata.DEPLOYMENT_ID_LABEL, ""))
        if deployment is not None and _is_written(item, deployment):
            found[deployment.pk].append(item)
    return found


def _is_written(item: Json, deployment: Deployment) -> bool:
    """Not what a controller made of it with copied labels, nor what is going already."""
    metadata = item["metadata"]
    return (
        manifest_metadata.MANAGED_BY.items() <= metadata.get("labels", {}).items()
        and metadata.get("namespace") == deployment.namespace
        and not metadata.get("ownerReferences")
        and "deletionTimestamp" not in metadata
    )


def list_of_revision(deployment: Deployment, number: int) -> list[Json]:
    """What stands beside a revision's workload."""
    found = observe_objects([deployment])[deployment.pk]
    return [item for item in found if number_of(item) == number]


def list_labelled(
    deployments: Sequence[Deployment], kinds: Sequence[Kind], *, skip_refused: bool = False
) -> list[list[Json]]:
    """What carries the label of one of the deployments, by kind; other namespaces may be included.

    An API server has no index of labels: a listing costs it as much as there is in the namespace, or
    in the whole cluster. So few namespaces are asked one by one, and many all at once.
    """
    ids = [str(deployment.pk) for deployment in deployments]
    namespaces = sorted({deployment.namespace for deployment in deployments})
    listed = [
        objects.list_several(
            cluster_id=deployments[0].cluster_id,
            kinds=kinds,
            namespace=namespace,
            labels={manifest_metadata.DEPLOYMENT_ID_LABEL: ids[0] if len(ids) == 1 else ids},
            skip_refused=skip_refused,
        )
        for namespace in (namespaces if len(namespaces) <= _FEW_NAMESPACES else [None])
    ]
    return [list(itertools.chain(*of_kind)) for of_kind in zip(*listed, strict=True)]


class _Found:
    def __init__(self, deployment: Deployment) -> None:
        self.deployment = deployment
        self.workloads: list[Workload] = []
        self.pods: dict[int, list[Json]] = {}
        self.route: Json | None = None

    def put_route(self, item: Json) -> None:
        if item["metadata"]["name"] == self.deployment.name:
            self.route = item

    def put_pod(self, item: Json) -> None:
        self.pods.setdefault(number_of(item), []).append(item)

    def observation(self) -> Observation:
        by_number = {one.number: one for one in self.workloads}
        return Observation(workloads=by_number, pods=self.pods, route=self.route)


def _put(found: Mapping[int, _Found], item: Json, put: Callable[[_Found, Json], None]) -> None:
    """Labels can be written by anyone: what is in another namespace is not the deployment's."""
    label = item["metadata"].get("labels", {}).get(manifest_metadata.DEPLOYMENT_ID_LABEL, "")
    one = found.get(int(label)) if label.isdecimal() else None
    if one is not None and item["metadata"].get("namespace") == one.deployment.namespace:
        put(one, item)


def workload_of(item: Json) -> Workload:
    return Workload(number_of(item), item["metadata"]["name"], item)


def number_of(item: Json) -> int:
    return int(item["metadata"].get("labels", {}).get(manifest_metadata.REVISION_LABEL, 0))
