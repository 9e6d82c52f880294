"""The Job of a load test is what an API server accepts, with the fields as they were sent."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from deployments.load_tests.domain import job
from deployments.load_tests.domain.choice import PodChoice
from deployments.manifests.domain.metadata import ManifestContext
from fleet.kube.domain.errors import ObjectInvalid
from fleet.kube.services import objects
from tests.contract.conftest import served

CHOICES = (PodChoice(), PodChoice(instance_type="g5.xlarge", gpu_resource="nvidia.com/mig-1g.10gb"))


def _job(context: ManifestContext, choice: PodChoice) -> Any:
    version = replace(served("triton"), storage_uri="s3://bucket/r/")
    return job.job(context, version, choice, name="load-test-1-abc", plan='{"model": "$(x)"}')


@pytest.mark.parametrize("choice", CHOICES, ids=["processor", "slice"])
def test_it_is_accepted_and_applying_it_again_changes_nothing(
    cluster_id: int, context: ManifestContext, choice: PodChoice
) -> None:
    manifest = _job(context, choice)
    # The namespace is the test's.
    shared = [item for item in job.build_shared(context) if item["kind"] != "Namespace"]
    objects.apply(cluster_id=cluster_id, manifests=shared)

    warnings = objects.dry_run(cluster_id=cluster_id, manifests=[manifest])
    (made,) = objects.apply(cluster_id=cluster_id, manifests=[manifest])
    (again,) = objects.apply(cluster_id=cluster_id, manifests=[manifest])

    assert warnings == []
    assert made["metadata"]["uid"] == again["metadata"]["uid"]
    pod, sent = made["spec"]["template"]["spec"], manifest["spec"]["template"]["spec"]
    assert pod["containers"][0]["command"] == sent["containers"][0]["command"]
    assert pod["containers"][0]["resources"] == sent["containers"][0]["resources"]
    assert (made["spec"]["backoffLimit"], made["spec"]["activeDeadlineSeconds"]) == (0, 1800)
    objects.delete(
        cluster_id=cluster_id,
        api_version=job.API_VERSION,
        kind=job.KIND,
        namespace=context.namespace,
        name="load-test-1-abc",
    )


def test_a_job_whose_pod_always_restarts_is_refused(
    cluster_id: int, context: ManifestContext
) -> None:
    manifest = _job(context, PodChoice())
    manifest["spec"]["template"]["spec"]["restartPolicy"] = "Always"

    with pytest.raises(ObjectInvalid) as refusal:
        objects.apply(cluster_id=cluster_id, manifests=[manifest])

    (cause,) = refusal.value.causes
    assert (cause.field, cause.reason) == (
        "spec.template.spec.restartPolicy",
        "FieldValueRequired",
    )
