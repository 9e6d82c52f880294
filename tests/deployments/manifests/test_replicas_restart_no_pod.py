"""Another number of replicas replaces no pod: the pod template stays as it was."""

from __future__ import annotations

from typing import Any

import pytest

from deployments.manifests.domain import metadata, revision
from deployments.manifests.domain.metadata import ServedRevision
from deployments.spec.domain import serving_spec
from deployments.spec.domain.engines import Engine
from deployments.spec.domain.serving_spec import ServingSpec
from tests.deployments.manifest_strategies import CONTEXT

_ENGINES: tuple[Engine, ...] = (serving_spec.KSERVE_TRITON, serving_spec.TRITON)


def workload(engine: Engine, replicas: int) -> dict[str, Any]:
    spec = ServingSpec(
        engine=engine, instance_type="g5.xlarge", min_replicas=replicas, max_replicas=replicas
    )
    served = ServedRevision(1, "m", "m:1", "ab" * 32, "s3://b/p/", spec, size_mib=100)
    return dict(revision.build_own(CONTEXT, served)[0])


def pod_template(manifest: dict[str, Any]) -> Any:
    """What KServe 0.20 makes of an InferenceService (pkg/controller/v1beta1/inferenceservice/components/predictor.go,
    buildObjectMeta): its annotations, over which those of the predictor win; else the Deployment's own.
    """
    if manifest["kind"] == "Deployment":
        return manifest["spec"]["template"]
    predictor = dict(manifest["spec"]["predictor"])
    annotations = {**manifest["metadata"]["annotations"], **predictor.pop("annotations")}
    for replicas in ("minReplicas", "maxReplicas"):
        del predictor[replicas]
    return annotations, manifest["metadata"]["labels"], predictor


@pytest.mark.parametrize("engine", _ENGINES)
def test_another_number_of_replicas_has_another_digest_and_the_same_pods(engine: Engine) -> None:
    one, three = workload(engine, 1), workload(engine, 3)

    digests = {made["metadata"]["annotations"][metadata.DIGEST_ANNOTATION] for made in (one, three)}
    assert len(digests) == 2
    assert pod_template(one) == pod_template(three)
