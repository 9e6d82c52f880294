"""What keeps a deployment true, against a real API server: watching, pruning, edits, logs, batches."""

from __future__ import annotations

import threading

import pytest

from deployments.delivery.domain import edits
from deployments.manifests.domain import http_route, revision
from deployments.manifests.domain.metadata import DEPLOYMENT_ID_LABEL, Manifest, ManifestContext
from deployments.spec.domain.serving_spec import TRITON
from fleet.kube.domain import resource_types
from fleet.kube.domain.errors import ObjectNotFound, WatchExpired
from fleet.kube.services import clients, objects
from fleet.kube.services.objects import Group
from tests.contract.conftest import named_cluster, served

SERVICES = [("v1", "Service"), ("policy/v1", "PodDisruptionBudget")]


def _service(context: ManifestContext, name: str, deployment: str = "4711") -> Manifest:
    manifest = next(
        manifest
        for manifest in revision.build_own(context, served(TRITON))
        if manifest["kind"] == "Service"
    )
    labels = {**manifest["metadata"]["labels"], DEPLOYMENT_ID_LABEL: deployment}
    return {**manifest, "metadata": {**manifest["metadata"], "name": name, "labels": labels}}


def test_a_change_reaches_a_watch_that_began_earlier(
    cluster_id: int, context: ManifestContext
) -> None:
    client = clients.client_for(cluster_id)
    kind = resource_types.HTTP_ROUTE
    version = client.list_all(kind).resource_version
    spec = served(TRITON).spec
    manifest = http_route.http_route(context, [http_route.backend_for(1, spec, 100, model="m")])
    later = threading.Timer(0.2, lambda: client.apply(manifest))
    later.start()

    names = [
        event.object["metadata"]["name"]
        for event in client.watch(kind, resource_version=version, seconds=5)
        if event.type == "ADDED" and event.object["metadata"]["namespace"] == context.namespace
    ]
    later.join()

    assert names == [context.deployment]


@pytest.mark.skipif(
    named_cluster() is not None, reason="a real server forgets versions after minutes only"
)
def test_a_version_that_the_server_does_not_know_is_expired(cluster_id: int) -> None:
    client = clients.client_for(cluster_id)

    with pytest.raises(WatchExpired):
        list(client.watch(resource_types.NODE, resource_version="99999999999", seconds=1))


def test_of_several_groups_one_that_is_refused_leaves_the_others(
    cluster_id: int, context: ManifestContext
) -> None:
    good, bad = _service(context, "good"), _service(context, "bad")
    bad = {**bad, "spec": {**bad["spec"], "portz": []}}

    one, two = objects.apply_groups(cluster_id=cluster_id, groups=[Group([bad]), Group([good])])

    assert isinstance(one, Exception)
    assert "portz" in str(one)
    assert [item["metadata"]["name"] for item in two] == ["good"]


def test_several_deployments_are_listed_at_once_and_no_others(
    cluster_id: int, context: ManifestContext
) -> None:
    mine = [_service(context, "a", "1"), _service(context, "b", "2"), _service(context, "c", "3")]
    objects.apply(cluster_id=cluster_id, manifests=mine)

    services, budgets = objects.list_several(
        cluster_id=cluster_id,
        kinds=SERVICES,
        namespaces=[context.namespace],
        labels={DEPLOYMENT_ID_LABEL: ["1", "3"]},
    )

    assert sorted(item["metadata"]["name"] for item in services) == ["a", "c"]
    assert budgets == []


def test_a_kind_that_the_cluster_lacks_holds_nothing(
    cluster_id: int, context: ManifestContext
) -> None:
    (listings,) = objects.list_several(
        cluster_id=cluster_id,
        kinds=[("nowhere.slipway.dev/v1", "Nothing")],
        namespaces=[context.namespace],
        labels={},
    )

    assert listings == []


def test_an_edit_is_detected_with_its_manager_and_reverted_by_a_forced_apply(
    cluster_id: int, context: ManifestContext
) -> None:
    manifest = _service(context, "edited")
    (made,) = objects.apply(cluster_id=cluster_id, manifests=[manifest])
    assert edits.find_edits(manifest, made) == []
    theirs = {**manifest, "spec": {"selector": {"slipway.dev/workload": "theirs"}}}
    clients.client_for(cluster_id).merge_patch(
        resource_types.ResourceType("v1", "Service", "services"),
        context.namespace,
        "edited",
        theirs,
    )

    live = objects.get(
        cluster_id=cluster_id,
        api_version="v1",
        kind="Service",
        namespace=context.namespace,
        name="edited",
    )
    assert live is not None
    assert live["spec"]["selector"] == {"slipway.dev/workload": "theirs"}
    (applied,) = objects.apply(cluster_id=cluster_id, manifests=[manifest], force=True)

    assert edits.find_edits(manifest, applied) == []
    assert applied["spec"]["selector"] == manifest["spec"]["selector"]


def test_the_log_of_a_pod_that_is_not_there_is_not_found(
    cluster_id: int, context: ManifestContext
) -> None:
    with pytest.raises(ObjectNotFound):
        objects.pod_log(
            cluster_id=cluster_id, namespace=context.namespace, pod="nobody", tail_lines=5
        )
