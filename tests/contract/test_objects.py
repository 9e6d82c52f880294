"""What the portal does to a cluster, through the gateway that it uses, on a real API server."""

from __future__ import annotations

from typing import Any

import pytest

from deployments.manifests.domain import http_route, namespace, revision
from deployments.manifests.domain.metadata import DEPLOYMENT_ID_LABEL, ManifestContext
from deployments.spec.domain import serving_spec
from fleet.kube.domain.errors import NotAllowed, ObjectConflict, ObjectInvalid, ObjectNotFound
from fleet.kube.services import objects
from tests.contract import schemas
from tests.contract.conftest import named_cluster, served


def _everything(context: ManifestContext, engine: str) -> list[Any]:
    one = served(engine)
    backend = http_route.backend_for(one.number, one.spec, 100, model=one.model_name)
    return [
        *revision.build_shared(context, one)[1:],
        *revision.build_own(context, one),
        http_route.http_route(context, [backend]),
    ]


def _backend(number: int, share: int) -> http_route.RouteBackend:
    one = served(serving_spec.TRITON, number)
    return http_route.backend_for(number, one.spec, share, model=one.model_name)


def _version_of(item: Any) -> str:
    return item["metadata"]["resourceVersion"]


@pytest.mark.parametrize("engine", serving_spec.ONNX_ENGINES)
def test_all_manifests_are_accepted_strictly(
    cluster_id: int, context: ManifestContext, engine: str
) -> None:
    made = objects.apply(cluster_id=cluster_id, manifests=_everything(context, engine))

    kinds = {item["kind"] for item in made}
    assert {"ServiceAccount", "HTTPRoute"} < kinds


@pytest.mark.parametrize("engine", serving_spec.ONNX_ENGINES)
def test_applying_again_changes_nothing(
    cluster_id: int, context: ManifestContext, engine: str
) -> None:
    manifests = [m for m in _everything(context, engine) if m["kind"] in _QUIET]
    first = objects.apply(cluster_id=cluster_id, manifests=manifests)

    second = objects.apply(cluster_id=cluster_id, manifests=manifests)

    assert list(map(_version_of, second)) == list(map(_version_of, first))


# Controllers of a real cluster write to the others in the meantime.
_QUIET = ("ServiceAccount", "ServingRuntime")


@pytest.mark.skipif(named_cluster() is not None, reason="only local clusters get keys as a Secret")
def test_a_secret_can_be_written(cluster_id: int, context: ManifestContext) -> None:
    secret = namespace.s3_secret(context, access_key_id="id", secret_access_key="key")

    made = objects.apply(cluster_id=cluster_id, manifests=[secret])

    assert set(made[0]["data"]) == {"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"}


@pytest.mark.parametrize("engine", serving_spec.ONNX_ENGINES)
def test_a_dry_run_writes_nothing(cluster_id: int, context: ManifestContext, engine: str) -> None:
    manifests = revision.build_own(context, served(engine))

    objects.dry_run(cluster_id=cluster_id, manifests=manifests)

    for manifest in manifests:
        assert _get(cluster_id, manifest) is None


def _get(cluster_id: int, manifest: Any) -> Any:
    return objects.get(
        cluster_id=cluster_id,
        api_version=manifest["apiVersion"],
        kind=manifest["kind"],
        namespace=manifest["metadata"]["namespace"],
        name=manifest["metadata"]["name"],
    )


@pytest.mark.parametrize("engine", serving_spec.ONNX_ENGINES)
def test_an_unknown_field_is_refused_by_name(
    cluster_id: int, context: ManifestContext, engine: str
) -> None:
    if engine == serving_spec.KSERVE_TRITON and named_cluster() is None:
        # The local cluster knows custom kinds by the same files.
        schemas.require_custom()
    manifest = revision.build_own(context, served(engine))[0]
    wrong = {**manifest, "spec": {**manifest["spec"], "replicaz": 2}}

    with pytest.raises(ObjectInvalid, match="replicaz"):
        objects.dry_run(cluster_id=cluster_id, manifests=[wrong])


def test_a_fraction_of_a_gpu_is_refused(cluster_id: int, context: ManifestContext) -> None:
    manifest = revision.build_own(context, served(serving_spec.TRITON))[0]
    resources = manifest["spec"]["template"]["spec"]["containers"][0]["resources"]
    resources["limits"]["nvidia.com/gpu"] = resources["requests"]["nvidia.com/gpu"] = "0.5"

    with pytest.raises(ObjectInvalid, match="integer"):
        objects.dry_run(cluster_id=cluster_id, manifests=[manifest])


def test_a_missing_namespace_is_refused(cluster_id: int, context: ManifestContext) -> None:
    manifest = revision.build_own(context, served(serving_spec.TRITON))[1]
    metadata = {**manifest["metadata"], "namespace": "slipway-nowhere"}

    # Where access is granted in the namespaces of teams, any other is forbidden.
    with pytest.raises((ObjectNotFound, NotAllowed), match="slipway-nowhere"):
        objects.dry_run(cluster_id=cluster_id, manifests=[{**manifest, "metadata": metadata}])


def test_weights_move_and_a_revision_leaves_the_route(
    cluster_id: int, context: ManifestContext
) -> None:
    def push(*shares: int) -> Any:
        backends = [_backend(number, share) for number, share in enumerate(shares, 1)]
        manifest = http_route.http_route(context, backends)
        objects.apply(cluster_id=cluster_id, manifests=[manifest], force=True)
        return http_route.weights_in(_get(cluster_id, manifest))

    assert push(100) == {"detector-r1": 100}
    assert push(75, 25) == {"detector-r1": 75, "detector-r2": 25}
    assert push(0, 100) == {"detector-r2": 100}


def test_a_field_of_someone_else_is_a_conflict_unless_forced(
    cluster_id: int, context: ManifestContext
) -> None:
    from fleet.kube.domain.resource_types import HTTP_ROUTE
    from fleet.kube.services import clients

    manifest = http_route.http_route(context, [_backend(1, 100)])
    objects.apply(cluster_id=cluster_id, manifests=[manifest])
    theirs = {"spec": {"parentRefs": [{"name": "their-gateway"}]}}
    clients.client_for(cluster_id).merge_patch(
        HTTP_ROUTE, context.namespace, context.deployment, theirs
    )
    assert _has_other_manager(_get(cluster_id, manifest))

    with pytest.raises(ObjectConflict):
        objects.apply(cluster_id=cluster_id, manifests=[manifest])
    objects.apply(cluster_id=cluster_id, manifests=[manifest], force=True)

    assert _get(cluster_id, manifest)["spec"]["parentRefs"][0]["name"] == "slipway"


def _has_other_manager(item: Any) -> bool:
    owners = item["metadata"].get("managedFields", [])
    return any(owner["manager"] != "slipway" or owner["operation"] != "Apply" for owner in owners)


@pytest.mark.parametrize("engine", serving_spec.ONNX_ENGINES)
def test_all_objects_of_a_deployment_are_listed_by_label(
    cluster_id: int, context: ManifestContext, engine: str
) -> None:
    manifest = revision.build_own(context, served(engine))[0]
    objects.apply(cluster_id=cluster_id, manifests=[manifest])

    def named(label: str) -> list[str]:
        items = objects.list_objects(
            cluster_id=cluster_id,
            api_version=manifest["apiVersion"],
            kind=manifest["kind"],
            namespace=context.namespace,
            labels={DEPLOYMENT_ID_LABEL: label},
        )
        return [i["metadata"]["name"] for i in items if not i["metadata"].get("ownerReferences")]

    assert named("4711") == ["detector-r1"]
    assert named("4712") == []


def test_deleting_twice_is_fine(cluster_id: int, context: ManifestContext) -> None:
    manifest = revision.build_own(context, served(serving_spec.TRITON))[1]
    objects.apply(cluster_id=cluster_id, manifests=[manifest])

    for _ in range(2):
        objects.delete(
            cluster_id=cluster_id,
            api_version="v1",
            kind="Service",
            namespace=context.namespace,
            name="detector-r1",
        )

    assert _get(cluster_id, manifest) is None
