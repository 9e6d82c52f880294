"""What the portal renders, over all engines and options, past the admission of the API server and of
KServe: schemas, CEL rules, quota, Pod Security, defaulting and validating webhooks.
"""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings

from deployments.manifests.domain.metadata import ManifestContext, ServedRevision
from deployments.spec.domain import serving_spec
from fleet.kube.domain.errors import ClusterError
from fleet.kube.services import clients
from tests.deployments.manifest_strategies import placed
from tests.deployments.manifests.test_manifests import all_manifests

_EXAMPLES = 15
# Built into other products, whose kinds come with SLIPWAY_CRD_DIR.
_OPTIONAL = frozenset({"ServiceMonitor", "PodMonitor", "PeerAuthentication"})


@pytest.mark.parametrize("engine", serving_spec.ENGINES)
def test_the_cluster_accepts_every_manifest_of_an_engine(
    cluster_id: int, context: ManifestContext, engine: str
) -> None:
    client = clients.client_for(cluster_id)
    refusals: dict[str, str] = {}

    @settings(max_examples=_EXAMPLES, deadline=None, derandomize=True, database=None)
    @given(placed((engine,)))
    def check(pair: tuple[ManifestContext, ServedRevision]) -> None:
        drawn, served = pair
        here = replace(drawn, namespace=context.namespace, is_local_cluster=False)
        for manifest in all_manifests(here, served):
            try:
                client.apply(manifest, dry_run=True, force=True)
            except ClusterError as error:
                refusals[f"{manifest['kind']}: {error.message}"] = str(manifest)[:1500]

    check()

    assert {
        message: manifest
        for message, manifest in refusals.items()
        if message.partition(":")[0] not in _OPTIONAL
    } == {}
