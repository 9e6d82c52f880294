"""A real MLflow 3 server, against the demo: the notebook that imports from it, and `mlflow deployments …
-t slipway://…` from its registry to answers, a canary and the end.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from slipway_client import Client
from tests.client import mlflow_environment
from tests.deployments.imports import mlflow_registry
from tests.deployments.imports.mlflow_registry import Registry
from tests.e2e.demo_process import ROOT, DemoProcess
from tests.e2e.notebooks import run_notebook
from tests.e2e.rest import Classifier, Person
from tests.waiting import wait_for

pytestmark = pytest.mark.timeout(1200)
NAME = "vision/from-mlflow"
DRIVER = Path(__file__).with_name("mlflow_driver.py")


class Terminal:
    """MLflow's command line with the registry of `address` and the member's token."""

    def __init__(self, process: subprocess.Popen[str], target: str) -> None:
        self._process = process
        self._target = target

    def run(self, *arguments: str) -> tuple[int, str]:
        """Exit code and output."""
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(json.dumps(arguments) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        assert line, f"MLflow ended: {self._process.wait(60)}"
        code, output = json.loads(line)
        return code, output

    def succeed(self, *arguments: str) -> str:
        code, output = self.run(*arguments)
        assert code == 0, output
        return output

    def deployments(self, command: str, *arguments: str) -> str:
        return self.succeed("deployments", command, "-t", self._target, *arguments)

    def refused(self, command: str, *arguments: str) -> str:
        code, output = self.run("deployments", command, "-t", self._target, *arguments)
        assert code != 0, output
        return output


@contextmanager
def terminal_of(
    folder: Path, demo: DemoProcess, member: Person, registry: str
) -> Iterator[Terminal]:
    environment = mlflow_registry.environment(
        folder,
        MLFLOW_TRACKING_URI=registry,
        PYTHONPATH=str(mlflow_environment.build_client(folder)),
        SLIPWAY_TOKEN=member.token,
    )
    process = subprocess.Popen(
        [mlflow_environment.programs() / "python", DRIVER],
        cwd=folder,
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        yield Terminal(process, demo.url.replace("http://", "slipway://"))
    finally:
        process.kill()
        process.wait(60)


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory, demo: DemoProcess) -> Iterator[Registry]:
    with mlflow_registry.filled_registry(tmp_path_factory, port=demo.mlflow_port) as registry:
        yield registry


@pytest.fixture(scope="module")
def terminal(
    tmp_path_factory: pytest.TempPathFactory, demo: DemoProcess, member: Person, registry: Registry
) -> Iterator[Terminal]:
    folder = tmp_path_factory.mktemp("terminal")
    with terminal_of(folder, demo, member, registry.address) as terminal:
        files = [str(demo.samples / name) for name in ("filetype.onnx", "filetype-int8.onnx")]
        terminal.succeed("register", "filetype", *files)
        yield terminal


def test_the_import_notebook_runs_from_top_to_bottom(
    demo: DemoProcess, member: Person, lead: Person, registry: Registry
) -> None:
    output = run_notebook(
        ROOT / "docs" / "notebooks" / "import-from-mlflow.ipynb",
        SLIPWAY_URL=demo.url,
        SLIPWAY_TOKEN=member.token,
        SLIPWAY_LEAD_TOKEN=lead.token,
        SLIPWAY_NAME="trees-of-mlflow",
    )

    assert "flavor: xgboost of ['python_function', 'xgboost']" in output
    assert "not imported: MLmodel" in output
    with Client(demo.url, member.token) as client:
        version = client.versions.get("vision/trees-of-mlflow:1")
        assert version.signature is not None
        (tensor,) = version.signature.inputs
        rows = np.array(registry.facts["rows"], dtype=np.float32)
        (scores,) = client.call("vision/trees-of-mlflow", {tensor.name: rows}).values()
    np.testing.assert_allclose(scores.ravel(), registry.facts["scores"], rtol=1e-5)
    deployment = member.deployment_named("trees-of-mlflow")
    member.retire(deployment["id"], approved_by=lead)


def test_a_registered_model_is_deployed_called_and_retired(
    terminal: Terminal, demo: DemoProcess, member: Person, lead: Person, tmp_path: Path
) -> None:
    settings = (
        "-C",
        "instance_type=g4dn.12xlarge",
        "-C",
        "memory=2Gi",
        "-C",
        "network.access=open",
    )
    assert "-C model=team/model" in terminal.refused(
        "create", "--name", "from-mlflow", "-m", "models:/filetype/1"
    )
    terminal.deployments(
        *("create", "--name", "from-mlflow", "-m", "models:/filetype/1"),
        *("-C", "model=vision/from-mlflow", *settings),
    )
    (change,) = [
        row for row in member.get("changes")["results"] if row["deployment"] == "from-mlflow"
    ]
    lead.approve(change)
    deployment = member.wait_until_ready(change["deployment_id"])

    version = member.get("models/vision/from-mlflow/versions/1")
    assert version["metadata"]["labels"]["mlflow_model_uri"] == "models:/filetype/1"
    assert NAME in terminal.deployments("list")
    assert "ready" in terminal.deployments("get", "--name", NAME)
    classifier = Classifier(demo, deployment["url"], "from-mlflow")
    inputs = tmp_path / "inputs.json"
    features = classifier.features(b"#!/usr/bin/env python\nimport os\nprint(os.getcwd())\n" * 3)
    inputs.write_text(json.dumps([features]))
    answered = tmp_path / "answer.json"
    terminal.deployments("predict", "--name", NAME, "-I", str(inputs), "-O", str(answered))
    answer: dict[str, Any] = json.loads(answered.read_text())
    scores = answer["target_label"][0]
    assert classifier.labels[scores.index(max(scores))] == "python"

    terminal.deployments("update", "--name", NAME, "-m", "models:/filetype/2", "-C", "cpu=1")
    canary = member.get("changes")["results"][0]
    assert (canary["kind"], canary["state"]) == ("canary", "submitted")
    assert canary["revision"]["version"] == "from-mlflow:2"
    assert canary["revision"]["spec"]["cpu"] == "1"
    assert canary["revision"]["spec"]["memory"] == "2Gi"
    member.post(f"changes/{canary['id']}/withdraw")

    terminal.deployments("delete", "--name", NAME)
    (retirement,) = [
        row
        for row in member.get("changes")["results"]
        if row["deployment"] == "from-mlflow" and row["kind"] == "retire"
    ]
    assert retirement["state"] == "submitted"
    lead.approve(retirement)
    wait_for(
        "end of the deployment",
        lambda: member.get(f"deployments/{deployment['id']}")["state"] == "retired",
    )


def test_a_deployment_that_does_not_exist_is_named(terminal: Terminal) -> None:
    assert "is not a deployment of yours" in terminal.refused("get", "--name", "vision/nothing")
