"""Revisions with an autoscaler on a cluster without kubelets, and how many replicas they get."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from deployments.manifests.domain import revision
from deployments.manifests.domain.metadata import Manifest, ManifestContext
from deployments.spec.domain import serving_spec
from deployments.spec.domain.serving_spec import ServingSpec
from tests.cluster.kubectl import Kubectl
from tests.contract.conftest import served
from tests.waiting import PATIENCE_SECONDS

TARGET = "detector-r1"


def spec_scaled_by(
    scaling: Mapping[str, Any], engine: str = serving_spec.TRITON, max_replicas: int = 5
) -> ServingSpec:
    """Raises Rejected where the engine cannot be scaled so."""
    is_language_model = engine in serving_spec.LLM_ENGINES
    data = {
        "engine": engine,
        "llm": {"hugging_face_id": "org/model"} if is_language_model else None,
        "instance_type": "g5.xlarge",
        "max_replicas": max_replicas,
        "scaling": {"cooldown_seconds": 0, **scaling},
    }
    return ServingSpec.from_json(data)


def revision_with(context: ManifestContext, spec: ServingSpec) -> list[Manifest]:
    context = replace(
        context,
        vllm_image="vllm/vllm-openai:v0.11.0",
        sglang_image="lmsysorg/sglang:v0.5.6",
        tensorrt_llm_image="nvcr.io/nvidia/tensorrt-llm/release:1.2.0",
    )
    one = replace(served(spec.engine), spec=spec)
    return [*revision.build_shared(context, one), *revision.build_own(context, one)]


def wait_for_replicas(
    admin: Kubectl, namespace: str, count: int, why: Callable[[], str] = str, target: str = TARGET
) -> None:
    wait_for_all(admin, namespace, {target: count}, why)


def wait_for_all(
    admin: Kubectl, namespace: str, counts: Mapping[str, int], why: Callable[[], str] = str
) -> None:
    """`counts`: of replicas by the name of their Deployment. Meanwhile every pod becomes ready, as a kubelet
    would report it. `why`: what a failure adds.
    """
    where = f"--namespace={namespace}"
    end = time.monotonic() + PATIENCE_SECONDS
    while left := _others(admin, where, counts):
        assert time.monotonic() < end, f"{left}\n{admin.run('describe', 'hpa', where)}\n{why()}"
        _make_ready(admin, where)
        time.sleep(0.3)  # bounded polling of real processes
    _make_ready(admin, where)


def _others(admin: Kubectl, where: str, counts: Mapping[str, int]) -> dict[str, int | None]:
    """The Deployments that have another number, with it."""
    items = admin.get("deployments", where)["items"]
    found = {item["metadata"]["name"]: item["spec"].get("replicas") for item in items}
    return {name: found.get(name) for name, count in counts.items() if found.get(name) != count}


def _make_ready(admin: Kubectl, where: str) -> None:
    ready = {"type": "Ready", "status": "True", "reason": "Test", "message": "No kubelet"}
    pending = [
        pod["metadata"]["name"]
        for pod in admin.get("pods", where)["items"]
        if pod["status"].get("phase") != "Running"
    ]
    if not pending:
        return
    status = {"status": {"phase": "Running", "conditions": [ready]}}
    options = ["--subresource=status", "--type=merge", f"--patch={json.dumps(status)}"]
    try:
        admin.run("patch", "pods", *pending, where, *options)
    except AssertionError as error:
        # Removed in the meantime.
        if "NotFound" not in str(error):
            raise
