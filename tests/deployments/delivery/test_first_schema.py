"""Rows of the first spec schema render what they always did: nothing that runs is restarted."""

from __future__ import annotations

import hashlib
from typing import Any

import pytest

from deployments.domain import specs
from deployments.domain.manifests import revision
from deployments.domain.manifests.parts import DIGEST_ANNOTATION, Place, Served, to_yaml

_FIXED = {
    "engine": "kserve-triton",
    "instance_type": "g5.xlarge",
    "gpu_resource": "nvidia.com/gpu",
    "gpus": 1,
    "min_replicas": 1,
    "max_replicas": 1,
    "cpu": "2",
    "memory": "8Gi",
    "env": {},
    "image": "nvcr.io/nvidia/tritonserver:25.09-py3",
    "schema": 1,
}
_SCALED = {
    **_FIXED,
    "instance_type": "p4d.24xlarge",
    "gpu_resource": "nvidia.com/mig-1g.5gb",
    "min_replicas": 2,
    "max_replicas": 6,
    "cpu": "1500m",
    "memory": "4Gi",
    "env": {"B": "2", "A": "1"},
    "image": "",
}
_PLAIN = {
    **_FIXED,
    "engine": "triton",
    "instance_type": "g5.12xlarge",
    "gpus": 4,
    "min_replicas": 3,
    "max_replicas": 3,
    "cpu": "8",
    "memory": "64Gi",
    "env": {"CUDA_MODULE_LOADING": "LAZY"},
    "image": "nvcr.io/nvidia/tritonserver:26.07-py3",
}


# Written down by the portal before there was a second schema.
@pytest.mark.parametrize(
    ("row", "is_local", "text_digest", "workload_digest"),
    [
        (_FIXED, True, "46c94d73154085c4", "5dd3d80f237efdcc"),
        (_FIXED, False, "6e127d9b5b442a99", "5dd3d80f237efdcc"),
        (_SCALED, True, "5e8ff33a9da7872a", "3b6f7777c9e52132"),
        (_SCALED, False, "e0b3e14df35f48f6", "3b6f7777c9e52132"),
        (_PLAIN, True, "aa075ec3eff02149", "cef831110ad22253"),
        (_PLAIN, False, "0866a42c9b6d451b", "3107d5a99d9f084f"),
    ],
)
def test_a_row_of_the_first_schema_renders_the_same_bytes(
    row: dict[str, Any], is_local: bool, text_digest: str, workload_digest: str
) -> None:
    place = Place(
        team="vision",
        namespace="vision",
        deployment="detector",
        deployment_id=17,
        is_local_cluster=is_local,
        gateway_namespace="slipway-gateway",
        gateway_name="slipway",
        triton_image="nvcr.io/nvidia/tritonserver:26.07-py3",
        storage_image="kserve/storage-initializer:v0.20.0",
        s3_endpoint="http://127.0.0.1:9000" if is_local else "",
        s3_region="us-east-1",
        role_arn="" if is_local else "arn:aws:iam::1:role/models",
    )
    served = Served(
        number=3,
        model_name="detector",
        version_label="detector:4",
        sha256="ab" * 32,
        storage_uri="s3://bucket/repositories/vision/detector/4/abcdef/",
        spec=specs.from_json(row),
        size_mib=5000,
    )

    manifests = [*revision.shared(place, served), *revision.own(place, served)]

    text = to_yaml(manifests)
    assert hashlib.sha256(text.encode()).hexdigest()[:16] == text_digest
    annotations = revision.own(place, served)[0]["metadata"]["annotations"]
    assert annotations[DIGEST_ANNOTATION] == workload_digest
