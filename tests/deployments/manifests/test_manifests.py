"""Manifests are deterministic and match the request. Their schemas: tests/contract."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import yaml
from hypothesis import given, settings

from deployments.manifests.domain import http_route, namespace, resource_limits, revision
from deployments.manifests.domain.metadata import Manifest, ManifestContext, ServedRevision, to_yaml
from deployments.spec.domain import serving_spec
from deployments.spec.domain.serving_spec import ServingSpec
from portal.core.definitions import Rejected
from tests.deployments.manifest_strategies import placed, serving_specs

CONTEXT = ManifestContext("t", "t", "d", 1, False, "gw", "gw", "i", "s", cache_node_group="gpu")


def all_manifests(context: ManifestContext, served: ServedRevision) -> list[Manifest]:
    model, spec = served.model_name, served.spec
    backend = http_route.backend_for(served.number, spec, 100, model=model)
    shadow = http_route.backend_for(served.number + 1, spec, 0, model=model, mirror=25)
    made = [
        *revision.build_shared(context, served),
        *revision.build_own(context, served),
        http_route.http_route(context, [backend]),
        http_route.http_route(context, [backend, shadow]),
    ]
    made += resource_limits.limit_namespace(context, quota_gpus=4)
    if context.is_local_cluster:
        made.append(namespace.s3_secret(context, access_key_id="id", secret_access_key="key"))
    return made


@settings(max_examples=30)
@given(placed())
def test_equal_input_gives_byte_identical_yaml(
    pair: tuple[ManifestContext, ServedRevision],
) -> None:
    context, served = pair

    first, second = (to_yaml(all_manifests(context, served)) for _ in range(2))

    assert first == second
    assert list(yaml.load_all(first, Loader=yaml.CSafeLoader)) == all_manifests(context, served)


def _resources(manifest: Any) -> Iterator[dict[str, Any]]:
    if isinstance(manifest, dict):
        for key, value in manifest.items():
            if key == "resources" and "limits" in value:
                yield value
            else:
                yield from _resources(value)
    elif isinstance(manifest, list):
        for item in manifest:
            yield from _resources(item)


@given(placed())
def test_gpu_requests_equal_limits_and_are_integers(
    pair: tuple[ManifestContext, ServedRevision],
) -> None:
    context, served = pair
    rows = list(_resources(revision.build_own(context, served)[0]))
    gpus = [row["limits"][served.spec.gpu_resource] for row in rows if _is_gpu(row, served)]

    assert all(row["requests"] == row["limits"] for row in rows)
    # The leader and, over several nodes, what each worker is made of.
    assert gpus == [str(served.spec.gpus)] * (2 if served.spec.nodes > 1 else 1)


def _is_gpu(resources: dict[str, Any], served: ServedRevision) -> bool:
    return served.spec.gpu_resource in resources["limits"]


@given(placed())
def test_a_secret_is_rendered_for_local_clusters_only(
    pair: tuple[ManifestContext, ServedRevision],
) -> None:
    context, served = pair
    text = to_yaml(revision.build_shared(context, served) + revision.build_own(context, served))

    assert ("slipway-s3" in text) == context.is_local_cluster
    assert ("eks.amazonaws.com/role-arn" in text) == (
        bool(context.role_arn) and not context.is_local_cluster
    )


@given(serving_specs())
def test_a_spec_survives_json(spec: ServingSpec) -> None:
    assert ServingSpec.from_json(spec.to_json()) == spec


@pytest.mark.parametrize(
    ("changed", "field"),
    [
        ({"gpus": 0}, "gpus"),
        ({"gpus": 0.5}, "gpus"),
        ({"gpu_resource": "nvidia.com/mig-1g.5gb", "gpus": 2}, "gpus"),
        ({"gpu_resource": "amd.com/gpu"}, "gpu_resource"),
        ({"min_replicas": 0}, "min_replicas"),
        ({"min_replicas": 3, "max_replicas": 2}, "max_replicas"),
        ({"engine": "vllm"}, "engine"),
        ({"cpu": "0.5"}, "cpu"),
        ({"memory": "8G"}, "memory"),
        ({"env": {"PYTHONPATH": "/x"}}, "env"),
        ({"env": {"LD_PRELOAD": "/models/x.so"}}, "env"),
        ({"env": {"PATH": "/models"}}, "env"),
        ({"env": {"1": "x"}}, "env"),
        ({"cpu": "1025"}, "cpu"),
        ({"cpu": "1024001m"}, "cpu"),
        ({"cpu": "9" * 5000}, "cpu"),
        ({"memory": "32769Gi"}, "memory"),
        ({"memory": "33554433Mi"}, "memory"),
        ({"storage": {"shm_size": "32769Gi"}}, "storage.shm_size"),
        ({"instance_type": "../x"}, "instance_type"),
        ({"schema": 3}, "schema"),
        ({"replicas": 2}, "replicas"),
        ({"engine": ""}, "engine"),
    ],
)
def test_a_wrong_spec_is_refused_at_its_field(changed: dict[str, Any], field: str) -> None:
    good = {"engine": "kserve-triton", "instance_type": "g5.xlarge"}

    with pytest.raises(Rejected) as refusal:
        ServingSpec.from_json({**good, **changed})

    assert field in refusal.value.fields


def _backend(number: int, engine: Any, weight: int, mirror: int = 0) -> http_route.RouteBackend:
    spec = ServingSpec(engine=engine, instance_type="g5.xlarge")
    return http_route.backend_for(number, spec, weight, model="m", mirror=mirror)


def test_a_revision_without_weight_is_not_in_the_route() -> None:
    backends = [_backend(1, serving_spec.TRITON, 0), _backend(2, serving_spec.KSERVE_TRITON, 100)]

    route = http_route.http_route(CONTEXT, backends)

    assert (
        http_route.weights_in(route)
        == {"d-r2-predictor": 100}
        == http_route.weights_of(CONTEXT, backends)
    )
    assert http_route.problem_with({**route, "metadata": {"generation": 1}}) is None


def test_a_shadow_is_a_mirror_and_no_backend() -> None:
    backends = [
        _backend(1, serving_spec.TRITON, 100),
        _backend(2, serving_spec.KSERVE_TRITON, 0, mirror=25),
    ]

    route = http_route.http_route(CONTEXT, backends)

    rule = route["spec"]["rules"][0]
    assert [ref["name"] for ref in rule["backendRefs"]] == ["d-r1"]
    assert rule["filters"][1] == {
        "type": "RequestMirror",
        "requestMirror": {"backendRef": {"name": "d-r2-predictor", "port": 80}, "percent": 25},
    }
    assert http_route.weights_in(route) == {"d-r1": 100} == http_route.weights_of(CONTEXT, backends)
    assert (
        http_route.mirrors_in(route)
        == {"d-r2-predictor": 25}
        == http_route.mirrors_of(CONTEXT, backends)
    )
    assert http_route.mirrors_in(None) == {}
