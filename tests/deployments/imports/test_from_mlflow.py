"""Imports from a real MLflow 3 server: files of the served flavor, metadata, and what is refused."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from deployments.imports.services import imports
from deployments.models import Import, ImportedFile
from deployments.registry.gateways.object_store import S3Store
from deployments.registry.services import versions as registry_versions
from deployments.states import ImportState, VersionState
from portal.core.errors import Invalid
from tests.deployments.imports.conftest import (
    Death,
    SourceOfModels,
    Start,
    calls_of,
    forget_leases,
    run_until_over,
    worked,
)
from tests.deployments.imports.mlflow_registry import Registry
from tests.deployments.uploading import People

# The first run on a machine installs MLflow and fills its registry.
pytestmark = [pytest.mark.django_db]
BOXES = "models:/Boxes 2/1"


@pytest.fixture
def registry(mlflow_registry: Registry, settings: Any) -> Registry:
    settings.SLIPWAY_IMPORT_MLFLOW = {"lab": mlflow_registry.address}
    settings.SLIPWAY_IMPORT_MLFLOW_CREDENTIALS = {}
    return mlflow_registry


def test_an_onnx_model_with_external_weights_becomes_a_version_with_all_that_mlflow_knows(
    start: Start, registry: Registry, s3_store: S3Store
) -> None:
    job = worked(start("models:/Boxes 2@champion", metadata={"metrics": {"mAP": 0.75}}))

    assert (job.state, job.error, job.server, job.pin) == (ImportState.DONE, "", "lab", "1")
    version = run_until_over(job)
    assert (version.state, version.format) == (VersionState.READY, "onnx")
    paths = {file.path for file in version.files.all()}
    assert len(paths) == 2
    assert "model.onnx" in paths
    assert version.readme == "# Boxes\n\nFinds boxes."
    run_id, experiment = registry.facts["run_id"], registry.facts["experiment_id"]
    metadata = version.metadata
    # What the uploader enters goes before what MLflow says.
    assert metadata["metrics"] == {"mAP": 0.75}
    assert metadata["commit"] == "c0ffee" * 6 + "c0ff"
    assert metadata["run_url"] == f"{registry.address}/#/experiments/{experiment}/runs/{run_id}"
    assert metadata["framework"].startswith("onnx 1.")
    assert metadata["dataset_version"].startswith("train@")
    assert metadata["labels"] == {
        "mlflow": "Boxes 2/1",
        "stage": "gold",
        "reviewed": "yes",
        "param/depth": "3",
        "param/lr": "0.1",
    }


def test_what_metadata_does_not_take_is_kept_with_the_import(
    start: Start, registry: Registry
) -> None:
    facts = worked(start(BOXES)).facts

    assert (facts["flavor"], facts["flavors"]) == ("onnx", ["onnx", "python_function"])
    assert (facts["run_id"], facts["run_name"]) == (registry.facts["run_id"], "first try")
    assert facts["parameters"] == {"depth": "3", "lr": "0.1", "very long": "x" * 400}
    assert facts["signature"]["inputs"] == [{"name": "", "type": "float32", "shape": [-1, 64]}]
    assert facts["without_place"] == ["val loss", "param/very long"]
    assert "MLmodel" in facts["left_out"]
    assert "conda.yaml" in facts["left_out"]
    assert "model.onnx" not in facts["left_out"]


def test_trees_become_ready_and_a_pickle_waits_for_its_release(
    start: Start, registry: Registry, people: People
) -> None:
    trees = run_until_over(worked(start("models:/trees/1", model="trees")))
    assert (trees.state, trees.filename) == (VersionState.READY, "model.ubj")

    forest = run_until_over(worked(start("models:/forest/1", model="forest")))
    assert (forest.state, forest.filename) == (VersionState.QUARANTINED, "model.pkl")
    registry_versions.release(actor=people.admin, version_id=forest.pk, reason="ours", days=7)


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("models:/nothing/1", "MLflow server lab has no nothing/1."),
        ("models:/trees/9", "MLflow server lab has no trees/9."),
        ("models:/trees@nobody", "MLflow server lab has no trees@nobody."),
    ],
)
def test_what_does_not_exist_is_named(
    start: Start, registry: Registry, address: str, message: str
) -> None:
    job = worked(start(address))

    assert (job.state, job.error) == (ImportState.FAILED, message)
    assert job.version.files.count() == 0


def test_a_worker_that_dies_continues_with_the_version_that_the_alias_named(
    start: Start, registry: Registry, s3_store: S3Store
) -> None:
    job = start("models:/Boxes 2@champion")
    with calls_of(s3_store.client, dies_at=4), pytest.raises(Death):
        worked(job)
    job.refresh_from_db()
    assert (job.state, job.pin) == (ImportState.RUNNING, "1")
    Import.objects.update(address="models:/Boxes 2@gone")
    forget_leases()

    job = worked(job)

    assert (job.state, job.error) == (ImportState.DONE, "")
    assert ImportedFile.objects.count() == 2


def test_a_cancel_leaves_nothing(
    start: Start, registry: Registry, people: People, s3_store: S3Store
) -> None:
    job = start(BOXES)
    imports.cancel(actor=people.member, import_id=job.pk)

    job = worked(job)

    assert (job.state, job.version.state) == (ImportState.CANCELED, VersionState.FAILED)
    assert list(s3_store.list_keys(job.version.upload_prefix)) == []


def test_while_the_server_is_down_the_import_waits(
    start: Start, registry: Registry, settings: Any
) -> None:
    settings.SLIPWAY_IMPORT_MLFLOW = {"lab": "http://127.0.0.1:9"}
    job = worked(start("models:/trees/1"))
    assert (job.state, job.version.state) == (ImportState.RUNNING, VersionState.UPLOADING)
    assert job.error.startswith("127.0.0.1 does not answer")

    settings.SLIPWAY_IMPORT_MLFLOW = {"lab": registry.address}
    assert run_until_over(job).state == VersionState.READY


def test_artifacts_in_a_bucket_are_copied_inside_s3_where_the_team_may_import(
    start: Start,
    registry: Registry,
    source: SourceOfModels,
    settings: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The same folder, under an s3 root as MLflow names it."""
    folder = next(registry.artifacts.rglob("model.ubj")).parent
    for path in folder.iterdir():
        source.put(f"1/models/m-1/artifacts/{path.name}", path.read_bytes())
    monkeypatch.setattr(
        "deployments.imports.domain.mlflow.answers.artifact_uri",
        lambda _: f"s3://{source.name}/1/models/m-1/artifacts",
    )

    job = worked(start("models:/trees/1", model="trees"))

    assert (job.state, job.error) == (ImportState.DONE, "")
    origin = ImportedFile.objects.get()
    assert origin.locator == "1/models/m-1/artifacts/model.ubj"
    assert origin.version_id
    settings.SLIPWAY_IMPORT_S3 = []
    refused = worked(start("models:/trees/1", model="trees"))
    assert refused.state == ImportState.FAILED
    assert "not among the buckets that can be imported from" in refused.error


def test_the_credential_goes_to_the_server_and_nowhere_else(
    start: Start, registry: Registry, settings: Any, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    settings.SLIPWAY_IMPORT_MLFLOW_CREDENTIALS = {"lab": "reader:5ecret"}

    job = worked(start("models:/trees/1"))

    assert (job.state, job.error) == (ImportState.DONE, "")
    assert "5ecret" not in caplog.text
    assert "5ecret" not in str(Import.objects.values())


def test_the_server_is_one_of_the_settings(start: Start, registry: Registry, settings: Any) -> None:
    page = f"{registry.address}/#/models/Boxes%202/versions/1"
    assert start(page).address == BOXES
    with pytest.raises(Invalid, match="no MLflow server 'other' here"):
        start(BOXES, server="other")
    with pytest.raises(Invalid, match="Leave the server out"):
        start("https://models.example/m.onnx", server="lab")
    settings.SLIPWAY_IMPORT_MLFLOW = {"lab": registry.address, "prod": "https://mlflow.example"}
    with pytest.raises(Invalid, match="Choose the MLflow server: lab, prod"):
        start(BOXES)
    assert start(BOXES, server="lab").server == "lab"
    settings.SLIPWAY_IMPORT_MLFLOW = {}
    with pytest.raises(Invalid, match="SLIPWAY_IMPORT_MLFLOW"):
        start(BOXES)
