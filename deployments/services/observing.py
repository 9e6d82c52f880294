"""What the cluster shows of one deployment, read live."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from deployments.domain import progress, specs
from deployments.domain.manifests import kserve, parts, routes, triton
from deployments.domain.progress import Progress
from deployments.domain.specs import ServingSpec
from deployments.models import Deployment, Revision
from fleet.domain.cluster_errors import ObjectNotFound
from fleet.services import objects

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Workload:
    """A live object of one revision that the portal made."""

    number: int
    engine: str
    name: str
    object: Json

    @property
    def digest(self) -> str:
        annotations = self.object["metadata"].get("annotations", {})
        return str(annotations.get(parts.DIGEST_ANNOTATION, ""))

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
        return routes.weights_in(self.route)

    @property
    def route_problem(self) -> str | None:
        return None if self.route is None else routes.problem_with(self.route)

    def weight_of(self, deployment: Deployment, revision: Revision) -> int | None:
        """What the gateway sends it; None while the gateway does not follow the route as it is."""
        if self.weights is None or self.route_problem != "":
            return None
        name = routes.service_name(deployment.name, revision.number, revision.spec["engine"])
        return self.weights.get(name, 0)

    def progress_of(self, revision: Revision, spec: ServingSpec) -> Progress:
        workload = self.workloads.get(revision.number)
        return progress.of_workload(
            engine=spec.engine,
            workload=workload.object if workload else None,
            pods=self.pods.get(revision.number, []),
            wanted_pods=spec.min_replicas,
        )


def observe(deployment: Deployment) -> Observation:
    """Raises ClusterError when the cluster cannot be asked: that is "not known", not "gone"."""
    labels = {parts.DEPLOYMENT_ID_LABEL: str(deployment.pk)}
    found = [
        *_workloads(deployment, labels, specs.KSERVE_TRITON, kserve.API_VERSION, kserve.KIND),
        *_workloads(deployment, labels, specs.TRITON, triton.API_VERSION, triton.KIND),
    ]
    pods: dict[int, list[Json]] = {}
    for pod in _list(deployment, "v1", "Pod", labels):
        pods.setdefault(_number_of(pod), []).append(pod)
    route = objects.get(
        cluster_id=deployment.cluster_id,
        api_version=routes.API_VERSION,
        kind=routes.KIND,
        namespace=deployment.namespace,
        name=deployment.name,
    )
    if route is not None and not _is_mine(route, labels):
        route = None
    return Observation(workloads={one.number: one for one in found}, pods=pods, route=route)


def _workloads(
    deployment: Deployment, labels: Mapping[str, str], engine: str, api_version: str, kind: str
) -> list[Workload]:
    """KServe copies labels to the Deployments that it owns; those are not the portal's."""
    return [
        Workload(_number_of(item), engine, item["metadata"]["name"], item)
        for item in _list(deployment, api_version, kind, labels)
        if not item["metadata"].get("ownerReferences")
    ]


def _list(
    deployment: Deployment, api_version: str, kind: str, labels: Mapping[str, str]
) -> list[Json]:
    try:
        return objects.list_objects(
            cluster_id=deployment.cluster_id,
            api_version=api_version,
            kind=kind,
            namespace=deployment.namespace,
            labels=labels,
        )
    except ObjectNotFound:
        # The cluster does not serve the kind (no KServe here), so it holds none.
        return []


def _number_of(item: Json) -> int:
    return int(item["metadata"].get("labels", {}).get(parts.REVISION_LABEL, 0))


def _is_mine(item: Json, labels: Mapping[str, str]) -> bool:
    found = item["metadata"].get("labels", {})
    return all(found.get(name) == value for name, value in labels.items())
