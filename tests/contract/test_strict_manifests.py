"""Every manifest that the portal can write, all engines and options, against the published schemas and
against the API server itself, unknown fields refused.
"""

from __future__ import annotations

import functools
from dataclasses import replace

from hypothesis import given, settings

from deployments.manifests.domain.metadata import ManifestContext, ServedRevision
from deployments.spec.domain.serving_spec import ServingSpec
from fleet.kube.domain.errors import ObjectNotFound
from fleet.kube.services import clients
from tests.contract import schemas
from tests.contract.conftest import named_cluster
from tests.deployments.manifest_strategies import placed
from tests.deployments.manifests.test_manifests import CONTEXT, all_manifests

# Together these make every custom kind there is a schema for.
_ALL_KINDS = (
    {
        "engine": "kserve-triton",
        "scaling": {
            "kind": "keda",
            "sqs": {"queue_url": "https://sqs.eu-west-1.amazonaws.com/111122223333/q"},
        },
        "storage": {"model_cache": "cluster"},
    },
    {"engine": "llm-inference-service", "llm": {"hugging_face_id": "org/model"}},
)


@settings(max_examples=30)
@given(placed())
def test_built_in_kinds_are_valid_kubernetes(pair: tuple[ManifestContext, ServedRevision]) -> None:
    for manifest in filter(schemas.is_built_in, all_manifests(*pair)):
        schemas.check_built_in(manifest)


def test_custom_kinds_match_the_published_schemas() -> None:
    published = schemas.require_custom()
    checked = set()

    def check(context: ManifestContext, served: ServedRevision) -> None:
        for manifest in all_manifests(context, served):
            key = (manifest["apiVersion"], manifest["kind"])
            if key not in published:
                continue
            errors = list(published[key].iter_errors(manifest))
            assert not errors, [(list(e.path), e.message) for e in errors]
            checked.add(manifest["kind"])

    for data in _ALL_KINDS:
        spec = ServingSpec.from_json({"instance_type": "g5.xlarge", **data})
        check(CONTEXT, ServedRevision(1, "m", "m:1", "ab" * 32, "s3://b/p/", spec))
    settings(max_examples=30)(given(placed())(lambda pair: check(*pair)))()

    assert checked == {
        "InferenceService",
        "LLMInferenceService",
        "ServingRuntime",
        "LocalModelCache",
        "ScaledObject",
        "TriggerAuthentication",
        "HTTPRoute",
    }


def test_the_server_takes_all_of_them_of_the_kinds_that_it_serves(
    cluster_id: int, context: ManifestContext
) -> None:
    client = clients.client_for(cluster_id)
    groups = client.groups()
    taken: set[str] = set()

    @functools.cache
    def is_served(api_version: str, name: str) -> bool:
        group, _, version = api_version.rpartition("/")
        if not group:
            return True
        if version not in groups.get(group, ()):
            return False
        try:
            plural = client.resource_type(api_version, name).plural
        except ObjectNotFound:
            return False
        return plural in client.resources(api_version)

    @settings(max_examples=10, deadline=None)
    @given(placed())
    def check(pair: tuple[ManifestContext, ServedRevision]) -> None:
        drawn, served = pair
        is_local = drawn.is_local_cluster and named_cluster() is None
        here = replace(drawn, namespace=context.namespace, is_local_cluster=is_local)
        for manifest in all_manifests(here, served):
            if is_served(manifest["apiVersion"], manifest["kind"]):
                client.apply(manifest, dry_run=True, force=True)
                taken.add(manifest["kind"])

    check()

    assert {"Namespace", "ServiceAccount", "HTTPRoute", "NetworkPolicy"} <= taken
