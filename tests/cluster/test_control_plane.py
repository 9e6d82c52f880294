"""The cluster is what the run says that it is, and the portal's account is no administrator."""

from __future__ import annotations

import pytest

from deployments.manifests.domain import namespace as namespace_manifests
from deployments.manifests.domain.metadata import ManifestContext
from fleet.clusters.services import capabilities
from fleet.kube.domain import resource_types
from fleet.kube.domain.errors import NotAllowed
from fleet.kube.services import clients, objects
from tests.cluster import build


@pytest.mark.usefixtures("namespace")
def test_the_portal_reads_the_versions_that_were_built(cluster_id: int) -> None:
    from fleet.models import Cluster

    capabilities.probe(cluster_id=cluster_id)

    probed = Cluster.objects.get(pk=cluster_id)
    assert clients.client_for(cluster_id).version() == build.CONTROL_PLANE.release
    assert build.KSERVE.release in str(probed.capabilities)


def test_the_portal_may_write_in_the_namespaces_of_teams_only(
    cluster_id: int, context: ManifestContext
) -> None:
    account = namespace_manifests.service_account(context)
    elsewhere = {**account, "metadata": {**account["metadata"], "namespace": "default"}}

    objects.apply(cluster_id=cluster_id, manifests=[account])
    with pytest.raises(NotAllowed, match="serviceaccounts"):
        objects.apply(cluster_id=cluster_id, manifests=[elsewhere])


def test_the_portal_reads_no_secrets(cluster_id: int, context: ManifestContext) -> None:
    kind = resource_types.ResourceType("v1", "Secret", "secrets")

    for namespace in (None, context.namespace):
        with pytest.raises(NotAllowed, match="secrets"):
            clients.client_for(cluster_id).list_all(kind, namespace=namespace)
