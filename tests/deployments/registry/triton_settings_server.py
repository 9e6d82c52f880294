"""The real Triton of the local cluster with a folder of models, for tests of its settings."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from deployments.manifests.domain import triton_args
from deployments.manifests.domain.metadata import ServedRevision
from deployments.spec.domain.serving_spec import ServingSpec
from tests import plain_http
from tests.deployments import real_triton


@dataclass(frozen=True)
class Server:
    url: str
    log: Path

    def get(self, path: str) -> Any:
        return plain_http.client.get(f"{self.url}/v2/models/{path}").json()

    def infer(self, model: str, **parameters: Any) -> Any:
        item = {"name": "x", "shape": [1, 2], "datatype": "FP32", "data": [1.0, 1.0]}
        answer = plain_http.client.post(
            f"{self.url}/v2/models/{model}/infer", json={"inputs": [item], "parameters": parameters}
        )
        body = answer.json()
        return body["outputs"][0]["data"][0] if answer.status_code == 200 else body["error"]


def write(
    models: Path, name: str, text: str, content: bytes, *, copy_of: Path | None = None
) -> None:
    (models / name / "1").mkdir(parents=True)
    if copy_of is not None:
        shutil.copyfile(copy_of / "1" / "model.py", models / name / "1" / "model.py")
    (models / name / "1" / "model.onnx").write_bytes(content)
    (models / name / "config.pbtxt").write_text(text)


def run(root: Path, models: Path, *, needed: Sequence[str]) -> Iterator[Server]:
    spec = ServingSpec.from_json(
        {
            "engine": "triton",
            "instance_type": "g5.xlarge",
            "triton": {"response_cache_mib": 8, "instances": {"priority": 1}},
        }
    )
    served = ServedRevision(1, "cached", "cached:1", "", "", spec)
    arguments = [*triton_args.command(), *triton_args.settings_of(served)]
    readable = [item.replace("model-config,", "").replace("statistics,", "") for item in arguments]
    # Models for GPUs cannot load here; the others serve beside them.
    arguments = [*readable, "--exit-on-error=false", "--strict-readiness=false"]
    child, port = real_triton.start_with(root, models, arguments, needed=needed)
    try:
        yield Server(f"http://127.0.0.1:{port}", root / "log")
    finally:
        child.kill()


def at(value: Any, path: str) -> Any:
    for part in path.split("."):
        value = value[int(part)] if isinstance(value, list) else value[part]
    return value
