"""`client.imports` and `slipway import`, on the real application."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import pytest

from deployments.imports.services import advance
from deployments.models import Import, ModelVersion
from deployments.registry.services import verification
from slipway_client import Client, errors
from slipway_client.cli import exit_codes, main
from slipway_client.cli.context import Context
from tests.client.conftest import ClientOf
from tests.deployments import onnx_models
from tests.deployments.imports.conftest import SourceOfModels, forget_leases, source, start
from tests.deployments.imports.mlflow_registry import Registry, mlflow_registry
from tests.deployments.uploading import People

__all__ = ["mlflow_registry", "source", "start"]
pytestmark = [pytest.mark.django_db]


def run_workers(*_: Any) -> None:
    """In place of a pause: what the sweeps do."""
    forget_leases()
    for pk in Import.objects.filter(state="running").values_list("pk", flat=True):
        advance.advance(pk)
    for pk in ModelVersion.objects.filter(state="verifying").values_list("pk", flat=True):
        verification.advance(pk)


@pytest.fixture
def client(people: People, start: object, client_of: ClientOf) -> Client:
    client = client_of(people.member)
    client._connection.sleep = run_workers
    return client


@pytest.fixture
def slipway(client: Client) -> Callable[..., tuple[int, str]]:
    def run(*arguments: str) -> tuple[int, str]:
        out = io.StringIO()
        context = Context(is_json=False, connect=lambda: client, out=out, err=out)
        return main.main(arguments, lambda **_: context), out.getvalue()

    return run


def test_a_model_is_imported_in_one_command(
    slipway: Callable[..., tuple[int, str]], source: SourceOfModels
) -> None:
    source.put("m.onnx", onnx_models.linear())

    code, output = slipway("import", f"s3://{source.name}/m.onnx", "vision/detector")

    assert (code, "vision/detector:1 is ready." in output) == (exit_codes.OK, True), output
    assert "1 of 1 files" in output


def test_a_failed_import_says_why_and_is_resumed(
    slipway: Callable[..., tuple[int, str]], client: Client, source: SourceOfModels
) -> None:
    code, output = slipway("import", f"s3://{source.name}/m.onnx", "vision/detector")
    assert (code, "There is nothing at" in output) == (exit_codes.FAILED, True), output

    source.put("m.onnx", onnx_models.linear())
    (failed,) = client.imports.list(state="failed")
    assert client.imports.resume(failed.id).state == "running"
    assert client.imports.wait(failed.id).state == "done"
    with pytest.raises(errors.Conflict):
        client.imports.cancel(failed.id)


def test_a_version_of_mlflow_is_chosen_and_imported(
    client: Client, mlflow_registry: Registry, settings: Any
) -> None:
    settings.SLIPWAY_IMPORT_MLFLOW = {"lab": mlflow_registry.address}
    (server,) = client.imports.mlflow_servers()
    names = [model.name for model in client.imports.mlflow_models(server.name, search="tree")]
    (version,) = client.imports.mlflow_versions(server.name, names[0])

    job = client.imports.start(version.address, "vision/trees", server=server.name)
    job = client.imports.wait(job.id)

    assert (names, job.facts["flavor"], job.pin) == (["trees"], "xgboost", "1")
    assert client.versions.wait(job.version_id).state == "ready"
