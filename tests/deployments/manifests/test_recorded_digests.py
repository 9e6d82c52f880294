"""What a revision's pods compare is what was recorded of its versions: rendered the same every
time.
"""

from __future__ import annotations

import hashlib
from typing import Any

import pytest

from deployments.delivery.domain import progress
from deployments.manifests.domain.model_files import digest_check
from deployments.manifests.selectors import rendered
from deployments.manifests.selectors.rendered import RenderedRevision
from deployments.spec.domain.serving_spec import ServingSpec
from tests.deployments.manifests.test_manifests import CONTEXT
from tests.deployments.world import World

pytestmark = pytest.mark.django_db


def _record(world: World, **spec: Any) -> str:
    world.version1.refresh_from_db()
    return digest_check.record_of(_render(world, **spec).served)


def _render(world: World, **fields: Any) -> RenderedRevision:
    spec = ServingSpec.from_json({"instance_type": "g5.xlarge", "engine": "triton", **fields})
    return rendered.render(CONTEXT, number=1, version=world.version1, spec=spec)


def test_the_record_of_the_version_is_compared(world: World) -> None:
    rows = [dict(row) for row in world.version1.laid_out]
    for digest, row in zip(("12" * 32, "34" * 32), rows, strict=True):
        row["sha256"] = digest
    type(world.version1).objects.filter(pk=world.version1.pk).update(laid_out=rows)

    assert [row["key"].split("/", 4)[4][13:] for row in rows] == [
        "detector/1/model.onnx",
        "detector/config.pbtxt",
    ]
    assert _record(world) == (
        f"{'12' * 32}  detector/1/model.onnx\n{'34' * 32}  detector/config.pbtxt\n"
    )


def test_files_that_the_portal_renders_are_compared_too(world: World) -> None:
    spec = {"engine": "triton-vllm", "llm": {"hugging_face_id": "org/model"}}
    files = _render(world, **spec).files

    assert _record(world, **spec) == "".join(
        f"{hashlib.sha256(body).hexdigest()}  {key.removeprefix(files.prefix)}\n"
        for key, body in sorted(files.objects.items())
    )
    assert _record(world, **spec).count("\n") == 2


def test_a_difference_is_explained() -> None:
    ended = {"exitCode": 1, "reason": "Error", "message": "detector/1/model.onnx: FAILED\n"}
    pod = {
        "spec": {"nodeName": "n"},
        "status": {
            "initContainerStatuses": [{"name": "digest-check", "state": {"terminated": ended}}]
        },
    }

    pod_progress = progress.derive_pod_progress(pod)

    assert (pod_progress.stage, pod_progress.reason, pod_progress.is_failing) == (
        "download",
        "not what was approved",
        True,
    )
    assert pod_progress.message == (
        "the downloaded files differ from the approved ones, so nothing was started from them: a "
        "platform admin must restore the bucket: detector/1/model.onnx: FAILED"
    )


def test_a_running_comparison_and_one_that_fails_to_run_are_explained() -> None:
    def progress_in(state: dict[str, Any]) -> progress.WorkloadProgress:
        status = {"initContainerStatuses": [{"name": "digest-check", "state": state}]}
        return progress.derive_pod_progress({"spec": {"nodeName": "n"}, "status": status})

    assert progress_in({"running": {}}).reason == "compares digests"
    failed = progress_in({"terminated": {"exitCode": 127, "message": "sh: sha256sum: not found"}})
    assert (failed.reason, failed.is_failing) == ("digests not compared", True)
