"""The objects of a job that drains a queue: the pods pass *restricted*, and a cluster with KEDA stores them."""

from __future__ import annotations

from dataclasses import replace

from deployments.batch.domain import job, queues, scaled_job
from deployments.batch.domain.settings import BatchSettings
from deployments.manifests.domain.metadata import Manifest, ManifestContext
from fleet.kube.services import objects
from tests.contract import pod_security, schemas
from tests.contract.conftest import served
from tests.deployments.manifests.test_manifests import CONTEXT

NAME = "batch-7-1"


def _manifests(context: ManifestContext) -> list[Manifest]:
    settings = BatchSettings(instance_type="g5.xlarge", workers=3, secret="queue-auth")
    version = replace(served("triton"), spec=job.spec_of(settings))
    queue = queues.read("redis://redis.vision.svc:6379/in", "s3://b/batch/vision/out/", settings)
    return scaled_job.objects_of(
        context, version, settings, queue, name=NAME, columns=None, until=1.0
    )


def test_restricted_takes_the_pods_and_two_triggers_count_all_messages() -> None:
    *others, scaled = _manifests(CONTEXT)

    assert [made["kind"] for made in others] == ["NetworkPolicy", "TriggerAuthentication"]
    schemas.check_built_in(others[0])
    pod = scaled["spec"]["jobTargetRef"]["template"]["spec"]
    assert pod_security.violations(pod) == []
    assert pod["restartPolicy"] == "Never"
    assert len(pod["containers"][0]["command"][2]) < 128 * 1024, "the most of one argument in Linux"
    counted = [set(trigger["metadata"]) for trigger in scaled["spec"]["triggers"]]
    assert ["lagCount" in names for names in counted] == [True, False]
    assert ["pendingEntriesCount" in names for names in counted] == [False, True]


def test_the_cluster_stores_them_and_applying_again_changes_nothing(
    cluster_id: int, context: ManifestContext
) -> None:
    manifests = _manifests(context)

    made = objects.apply(cluster_id=cluster_id, manifests=manifests)
    again = objects.apply(cluster_id=cluster_id, manifests=manifests)

    assert [item["metadata"]["uid"] for item in made] == [item["metadata"]["uid"] for item in again]
    assert made[-1]["spec"]["maxReplicaCount"] == 3
    for item in manifests:
        objects.delete(
            cluster_id=cluster_id,
            api_version=item["apiVersion"],
            kind=item["kind"],
            namespace=context.namespace,
            name=NAME,
        )
