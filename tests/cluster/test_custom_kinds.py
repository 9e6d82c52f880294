"""Custom objects that the portal writes, over all engines and options, past the schemas and CEL rules of their kinds.

Runs without Kubernetes, on the API server of custom kinds alone (tests/cluster/custom_kinds.py). On a whole cluster
test_manifests.py sends the same and every other object.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest
from hypothesis import given, settings

from deployments.manifests.domain.metadata import Manifest, ManifestContext, ServedRevision
from deployments.spec.domain import serving_spec
from fleet.kube.domain.errors import ClusterError, ObjectInvalid
from fleet.kube.gateways.kube_client import KubeClient
from fleet.kube.services import clients
from fleet.models import Cluster
from portal.core import clock
from tests.cluster import custom_kinds
from tests.cluster.kubectl import Kubectl
from tests.cluster.sent_and_stored import dropped_fields
from tests.deployments.manifest_strategies import CONTEXT, placed
from tests.deployments.manifests.test_manifests import all_manifests

pytestmark = pytest.mark.skipif(
    custom_kinds.IS_ALONE not in os.environ, reason="test_manifests.py sends these and all others"
)
_EXAMPLES = 15


@pytest.fixture
def served(admin: Kubectl) -> set[tuple[str, str]]:
    """Groups and kinds."""
    specs = [item["spec"] for item in admin.get("customresourcedefinitions")["items"]]
    return {(spec["group"], spec["names"]["kind"]) for spec in specs}


@pytest.fixture
def client(db: None, admin: Kubectl) -> Iterator[KubeClient]:
    clients.forget()
    cluster = Cluster.objects.create(
        name="custom-kinds",
        kind="kubeconfig",
        kubeconfig_path=str(admin.kubeconfig),
        gateway_url="http://gateway.example",
        created_at=clock.now(),
    )
    yield clients.client_for(cluster.pk)
    clients.forget()


def _kind_of(manifest: Manifest) -> tuple[str, str]:
    return manifest["apiVersion"].rpartition("/")[0], manifest["kind"]


def test_every_custom_object_is_taken_whole(
    client: KubeClient, served: set[tuple[str, str]], journey: Callable[[str], None]
) -> None:
    problems: dict[str, str] = {}
    sent: Counter[str] = Counter()

    def check(pair: tuple[ManifestContext, ServedRevision]) -> None:
        drawn, revision = pair
        here = replace(drawn, namespace="default", is_local_cluster=False)
        for manifest in all_manifests(here, revision):
            if _kind_of(manifest) not in served:
                continue
            sent[manifest["kind"]] += 1
            try:
                stored = client.apply(manifest, dry_run=True, force=True)
            except ClusterError as error:
                problems[f"{manifest['kind']}: {error.message}"] = str(manifest)[:1500]
                continue
            for path in dropped_fields(manifest, stored):
                problems[f"{manifest['kind']} drops {path}"] = str(manifest)[:1500]

    bounds = settings(max_examples=_EXAMPLES, deadline=None, derandomize=True, database=None)
    for engine in serving_spec.ENGINES:
        bounds(given(placed((engine,)))(check))()

    assert problems == {}
    assert {"InferenceService", "HTTPRoute", "ScaledObject", "LLMInferenceService"} <= set(sent)
    kinds = ", ".join(f"{count} {kind}" for kind, count in sent.most_common())
    journey(f"without Kubernetes: {kinds} taken whole by the schemas of their kinds")


def test_it_is_strict(client: KubeClient, served: set[tuple[str, str]]) -> None:
    """What passes here has passed something: an unknown field is refused, and so is a wrong type."""
    route: Manifest = {
        "apiVersion": "gateway.networking.k8s.io/v1",
        "kind": "HTTPRoute",
        "metadata": {"name": "strict", "namespace": CONTEXT.namespace},
        "spec": {"hostnames": ["a.example"]},
    }

    client.apply(route, dry_run=True, force=True)
    for field, value in (("hostnamez", ["a.example"]), ("hostnames", "a.example")):
        with pytest.raises(ObjectInvalid, match=field):
            client.apply({**route, "spec": {field: value}}, dry_run=True, force=True)
