"""A namespace with language models of the portal under KServe's own controllers."""

from __future__ import annotations

import dataclasses
import json
import time
from collections.abc import Callable, Mapping
from typing import Any, Final

from deployments.manifests.domain import http_route, revision
from deployments.manifests.domain.metadata import ManifestContext, ServedRevision
from deployments.spec.domain import serving_spec
from deployments.spec.domain.serving_spec import Llm
from fleet.kube.services import objects
from tests.cluster.kubectl import Kubectl
from tests.contract import conftest
from tests.waiting import PATIENCE_SECONDS

_READY: Final = {"type": "Ready", "status": "True", "reason": "Test", "message": "No kubelet"}
_LONG_AGO: Final = "2026-01-01T00:00:00Z"
_RUNNING: Final = {"phase": "Running", "conditions": [_READY]}


def until(read: Callable[[], Any], why: Callable[[], object]) -> Any:
    """The first true answer."""
    end = time.monotonic() + PATIENCE_SECONDS
    while not (answer := read()):
        assert time.monotonic() < end, why()
        time.sleep(0.2)  # bounded polling of real processes
    return answer


def language_model(
    number: int, engine: str = serving_spec.LLM_SERVICE, **llm: Any
) -> ServedRevision:
    one = conftest.served(engine, number)
    if "artifact" not in llm:
        llm["hugging_face_id"] = "org/model"
    settings = Llm(**llm)
    spec = one.spec.replace(llm=settings, gpus=settings.gpus_of_pod)
    return dataclasses.replace(one, spec=spec)


def has(labels: Mapping[str, str], expected: Mapping[str, str]) -> bool:
    return expected.items() <= labels.items()


class World:
    """One namespace of the cluster, read as an administrator."""

    def __init__(self, cluster_id: int, context: ManifestContext, admin: Kubectl) -> None:
        self._cluster_id = cluster_id
        self.context = context
        self._admin = admin

    def push(self, served: ServedRevision) -> None:
        manifests = [
            *revision.build_shared(self.context, served),
            *revision.build_own(self.context, served),
        ]
        objects.apply(cluster_id=self._cluster_id, manifests=manifests)

    def wait_for(self, kind: str, name: str) -> dict[str, Any]:
        found: dict[str, Any] = until(
            lambda: next(
                (one for one in self.list_all(kind) if one["metadata"]["name"] == name), None
            ),
            lambda: self.describe(kind, name),
        )
        return found

    def list_all(self, kind: str) -> list[dict[str, Any]]:
        items: list[dict[str, Any]] = self._admin.get(kind, self._where)["items"]
        return items

    def service(self, name: str) -> dict[str, Any]:
        return self._admin.get("llminferenceservices.serving.kserve.io", name, self._where)

    def start_pods(self) -> bool:
        """As a kubelet reports them, once the scheduler has bound both."""
        pods = self.list_all("pods")
        bound = [pod["metadata"]["name"] for pod in pods if pod["spec"].get("nodeName")]
        for name in bound:
            self._admin.patch(
                "pod", name, self._where, "--subresource=status", patch={"status": _RUNNING}
            )
        return len(bound) == 2

    def report_groups_as_available(self, name: str) -> None:
        """As the controller of LeaderWorkerSets does, which does not run here."""
        status = {"conditions": [{**_READY, "type": "Available", "lastTransitionTime": _LONG_AGO}]}
        self._admin.patch(
            "leaderworkersets", name, self._where, "--subresource=status", patch={"status": status}
        )

    def admit_pod(self, name: str, template: Mapping[str, Any]) -> None:
        """A dry run: Pod Security, quota and limits of the namespace. Raises AssertionError."""
        pod = {"apiVersion": "v1", "kind": "Pod", **template}
        pod["metadata"] = {**template["metadata"], "name": name}
        self._admin.run(
            "create", self._where, "--dry-run=server", "--filename=-", stdin=json.dumps(pod)
        )

    def describe(self, kind: str, name: str) -> str:
        services = self._admin.run("get", "llminferenceservices", self._where, "--output=yaml")
        names = [one["metadata"]["name"] for one in self.list_all(kind)]
        return f"{kind} {name} is not among {names}\n{services[-4000:]}"

    def apply_route(self, backends: list[http_route.RouteBackend]) -> dict[str, Any]:
        route = http_route.http_route(self.context, backends)
        (stored,) = objects.apply(cluster_id=self._cluster_id, manifests=[route])
        return dict(stored)

    @property
    def _where(self) -> str:
        return f"--namespace={self.context.namespace}"
