"""The objects of a batch job are valid Kubernetes, pass Pod Security *restricted*, and are stored as they were sent."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deployments.batch.domain import job
from deployments.batch.domain.settings import MAX_WORKERS, BatchSettings
from deployments.manifests.domain.metadata import Manifest, ManifestContext
from fleet.kube.domain.errors import ObjectInvalid
from fleet.kube.services import objects
from tests.contract import pod_security, schemas
from tests.contract.conftest import served
from tests.deployments.manifests.test_manifests import CONTEXT

NAME = "batch-1-1"
SETTINGS = st.builds(
    BatchSettings,
    instance_type=st.sampled_from(["g5.xlarge", "p4d.24xlarge"]),
    gpu_resource=st.sampled_from(["nvidia.com/gpu", "nvidia.com/mig-1g.10gb"]),
    capacity=st.sampled_from(["spot", "on-demand", "any"]),
    workers=st.integers(1, MAX_WORKERS),
    hours=st.integers(1, 72),
)


def _manifests(context: ManifestContext, settings: BatchSettings) -> list[Manifest]:
    version = replace(served("triton"), spec=job.spec_of(settings))
    return [
        *job.build_shared(context),
        job.links(context, name=NAME, urls={0: "https://s3/list?a=$(B)&c=d", 12: "x"}),
        job.job(context, version, settings, name=NAME, workers=settings.workers),
    ]


@given(SETTINGS)
def test_they_are_valid_and_restricted_takes_the_pods(settings: BatchSettings) -> None:
    manifests = _manifests(CONTEXT, settings)

    for manifest in filter(schemas.is_built_in, manifests):
        schemas.check_built_in(manifest)
    pod = manifests[-1]["spec"]["template"]["spec"]
    assert pod_security.violations(pod) == []
    # Nothing of the pod can write but its links, which no other pod has.
    (container,) = pod["containers"]
    assert container["envFrom"] == [{"secretRef": {"name": NAME}}]
    assert pod["automountServiceAccountToken"] is False
    (policy,) = [m for m in manifests if m["metadata"]["name"] == "slipway-batch"]
    assert policy["spec"]["ingress"] == [{"ports": [{"port": 8002, "protocol": "TCP"}]}]


def test_spot_is_placed_as_deployments_are_and_reclaims_do_not_count() -> None:
    settings = BatchSettings(instance_type="g5.xlarge", workers=3)
    spec = _manifests(CONTEXT, settings)[-1]["spec"]
    pod = spec["template"]["spec"]

    assert (spec["completionMode"], spec["completions"], spec["parallelism"]) == ("Indexed", 3, 3)
    terms = pod["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    assert terms["nodeSelectorTerms"][0]["matchExpressions"] == [
        {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["spot"]}
    ]
    assert {"key": "karpenter.sh/capacity-type", "value": "spot"}.items() <= pod["tolerations"][
        1
    ].items()
    first = spec["podFailurePolicy"]["rules"][0]
    assert (first["action"], first["onPodConditions"][0]["type"]) == ("Ignore", "DisruptionTarget")
    assert pod["terminationGracePeriodSeconds"] < 120


@pytest.mark.parametrize("capacity", ["spot", "any"])
def test_the_cluster_stores_them_and_applying_again_changes_nothing(
    cluster_id: int, context: ManifestContext, capacity: Any
) -> None:
    settings = BatchSettings(instance_type="g5.xlarge", capacity=capacity, workers=2)
    # The namespace is the test's.
    *others, manifest = [m for m in _manifests(context, settings) if m["kind"] != "Namespace"]
    objects.apply(cluster_id=cluster_id, manifests=others)

    warnings = objects.dry_run(cluster_id=cluster_id, manifests=[manifest])
    (made,) = objects.apply(cluster_id=cluster_id, manifests=[manifest])
    (again,) = objects.apply(cluster_id=cluster_id, manifests=[manifest])

    assert warnings == []
    assert made["metadata"]["uid"] == again["metadata"]["uid"]
    for name in ("completionMode", "completions", "backoffLimitPerIndex"):
        assert made["spec"][name] == manifest["spec"][name]
    rules = [rule["action"] for rule in made["spec"]["podFailurePolicy"]["rules"]]
    assert rules == ["Ignore", "Ignore", "FailJob"]
    objects.delete(
        cluster_id=cluster_id,
        api_version=job.API_VERSION,
        kind=job.KIND,
        namespace=context.namespace,
        name=NAME,
    )


@pytest.mark.parametrize(
    ("field", "value"), [("completions", None), ("completionMode", "NonIndexed")]
)
def test_indexes_need_their_mode_and_number(
    cluster_id: int, context: ManifestContext, field: str, value: Any
) -> None:
    manifest = _manifests(context, BatchSettings(instance_type="g5.xlarge"))[-1]
    manifest["spec"] |= {field: value}
    if value is None:
        del manifest["spec"][field]

    with pytest.raises(ObjectInvalid):
        objects.dry_run(cluster_id=cluster_id, manifests=[manifest])
