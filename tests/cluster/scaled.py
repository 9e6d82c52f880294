"""A revision with an autoscaler on a cluster without kubelets, and how many replicas it gets."""

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


def revision_scaled_by(
    context: ManifestContext, scaling: Mapping[str, Any], engine: str = serving_spec.TRITON
) -> list[Manifest]:
    is_language_model = engine in serving_spec.LLM_ENGINES
    data = {
        "engine": engine,
        "llm": {"hugging_face_id": "org/model"} if is_language_model else None,
        "instance_type": "g5.xlarge",
        "max_replicas": 5,
        "scaling": {"cooldown_seconds": 0, **scaling},
    }
    one = replace(served(engine), spec=ServingSpec.from_json(data))
    return [*revision.shared(context, one), *revision.own(context, one)]


def wait_for_replicas(
    admin: Kubectl, namespace: str, count: int, why: Callable[[], str] = str
) -> None:
    """Meanwhile every pod becomes ready, as a kubelet would report it. `why`: what a failure adds."""
    where = f"--namespace={namespace}"
    end = time.monotonic() + PATIENCE_SECONDS
    while admin.get("deployment", TARGET, where)["spec"].get("replicas") != count:
        assert time.monotonic() < end, f"{admin.run('describe', 'hpa', where)}\n{why()}"
        _make_ready(admin, where)
        time.sleep(0.3)  # bounded polling of real processes
    _make_ready(admin, where)


def _make_ready(admin: Kubectl, where: str) -> None:
    ready = {"type": "Ready", "status": "True", "reason": "Test", "message": "No kubelet"}
    for pod in admin.get("pods", where)["items"]:
        if pod["status"].get("phase") != "Running":
            status = {"status": {"phase": "Running", "conditions": [ready]}}
            patch = f"--patch={json.dumps(status)}"
            name = pod["metadata"]["name"]
            command = ["patch", "pod", name, where, "--subresource=status", "--type=merge", patch]
            try:
                admin.run(*command)
            except AssertionError as error:
                # Removed in the meantime.
                if "NotFound" not in str(error):
                    raise
