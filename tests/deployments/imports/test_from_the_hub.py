"""Imports from a server with the API of Hugging Face's hub, at one commit."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import pytest

from deployments.models import ImportedFile
from deployments.registry.gateways.object_store import S3Store
from deployments.states import ImportState, VersionState
from portal.core.errors import Invalid
from tests.deployments import onnx_models
from tests.deployments.imports.conftest import Start, forget_leases, run_until_over, worked
from tests.deployments.imports.model_server import ModelServer, ServedFile

pytestmark = pytest.mark.django_db
MODEL = onnx_models.linear()
CARD = b"---\nlicense: mit\n---\n# Boxes\n"
COMMIT = "c" * 40
API = "/api/models/org/boxes"
TREE = f"{API}/tree/{COMMIT}"


def answer(value: Any, **headers: str) -> ServedFile:
    return ServedFile(json.dumps(value).encode(), etag="", has_ranges=False, headers=headers)


@pytest.fixture
def hub(model_server: ModelServer, settings: Any) -> ModelServer:
    """As huggingface_hub documents it: a revision, pages of the tree, files behind a redirect."""
    settings.SLIPWAY_IMPORT_HUGGINGFACE = model_server.address
    settings.SLIPWAY_IMPORT_HUGGINGFACE_TOKEN = "hf_token"
    large = {"oid": hashlib.sha256(MODEL).hexdigest(), "size": len(MODEL), "pointerSize": 134}
    pages: tuple[list[dict[str, Any]], ...] = (
        [
            {"type": "file", "oid": "1" * 40, "size": 10, "path": ".gitattributes"},
            {"type": "directory", "oid": "2" * 40, "size": 0, "path": "onnx"},
            {"type": "file", "oid": "3" * 40, "size": 130, "path": "onnx/model.onnx", "lfs": large},
        ],
        [{"type": "file", "oid": "4" * 40, "size": len(CARD), "path": "README.md"}],
    )
    about = {
        "sha": COMMIT,
        "library_name": "onnx",
        "pipeline_tag": "object-detection",
        "cardData": {"license": "mit"},
    }
    following = f'<{model_server.address}{TREE}?page=2>; rel="next"'
    resolve = f"/org/boxes/resolve/{COMMIT}"
    model_server.files |= {
        f"{API}/revision/main": answer(about),
        f"{TREE}?recursive=true&expand=false": answer(pages[0], Link=following),
        f"{TREE}?page=2": answer(pages[1]),
        f"{resolve}/onnx/model.onnx": ServedFile(MODEL),
        f"{resolve}/README.md": ServedFile(CARD),
    }
    return model_server


def test_a_branch_becomes_a_version_at_its_commit(
    start: Start, hub: ModelServer, s3_store: S3Store
) -> None:
    job = worked(start("hf://org/boxes", metadata={"licence": "apache-2.0"}))

    assert (job.state, job.error, job.pin) == (ImportState.DONE, "", COMMIT)
    files = {file.path: file for file in job.version.files.all()}
    assert set(files) == {"onnx/model.onnx", "README.md"}
    model = files["onnx/model.onnx"]
    assert model.declared_sha256 == hashlib.sha256(MODEL).hexdigest()
    assert b"".join(s3_store.read(model.key, model.s3_version_id)) == MODEL
    assert job.version.readme == CARD.decode().strip()
    assert job.version.metadata == {
        "licence": "apache-2.0",
        "framework": "onnx",
        "run_url": f"{hub.address}/org/boxes/tree/{COMMIT}",
        "labels": {"huggingface": "org/boxes", "pipeline": "object-detection"},
    }
    assert ImportedFile.objects.count() == 2
    assert {headers["Authorization"] for _, headers in hub.requests} == {"Bearer hf_token"}


def test_the_token_does_not_follow_a_redirect_to_another_server(
    start: Start, hub: ModelServer, settings: Any
) -> None:
    settings.SLIPWAY_IMPORT_PRIVATE_HOSTS = ["localhost"]
    path = f"/org/boxes/resolve/{COMMIT}/onnx/model.onnx"
    elsewhere = hub.address.replace("127.0.0.1", "localhost")
    hub.files["/cdn/model"] = hub.files[path]
    hub.files[path] = ServedFile(b"", redirects_to=f"{elsewhere}/cdn/model?sig=1")

    job = worked(start("hf://org/boxes"))

    assert (job.state, job.error) == (ImportState.DONE, "")
    of_cdn = [headers for path, headers in hub.requests if path.startswith("/cdn")]
    assert of_cdn
    assert not any("Authorization" in headers for headers in of_cdn)


def test_the_commit_that_was_listed_is_copied_after_the_branch_moved(
    start: Start, hub: ModelServer
) -> None:
    path = f"/org/boxes/resolve/{COMMIT}/onnx/model.onnx"
    hub.files[path].status = 503
    job = worked(start("hf://org/boxes"))
    assert (job.state, job.pin) == (ImportState.RUNNING, COMMIT)
    hub.files[path].status = 200
    hub.files[f"{API}/revision/main"] = answer({"sha": "d" * 40})
    forget_leases()

    job = worked(job)

    assert (job.state, job.pin) == (ImportState.DONE, COMMIT)


def test_other_bytes_than_the_hub_promised_are_never_ready(start: Start, hub: ModelServer) -> None:
    other = onnx_models.linear(scale=3)
    assert len(other) == len(MODEL)
    hub.files[f"/org/boxes/resolve/{COMMIT}/onnx/model.onnx"].body = other
    hub.files[f"{TREE}?page=2"] = answer([])

    version = run_until_over(worked(start("hf://org/boxes")))

    assert version.state == VersionState.FAILED
    assert "expected" in version.state_reason


@pytest.mark.parametrize("status", [401, 403, 404])
def test_a_gated_repository_says_what_to_do(start: Start, hub: ModelServer, status: int) -> None:
    hub.files[f"{API}/revision/main"].status = status

    job = worked(start("hf://org/boxes"))

    assert job.state == ImportState.FAILED
    assert job.error.startswith("org/boxes at main is gated, private or does not exist.")
    assert "hf_token" not in job.error


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (f"{API}/revision/main", {"sha": "main"}),
        (f"{API}/revision/main", [1]),
        (f"{TREE}?recursive=true&expand=false", {"error": "x"}),
        (f"{TREE}?recursive=true&expand=false", [{"type": "file", "path": "a", "size": "1"}]),
        (f"{TREE}?recursive=true&expand=false", [{"type": "file", "path": "../a", "size": 1}]),
        (f"{TREE}?recursive=true&expand=false", []),
    ],
)
def test_answers_of_another_kind_fail_the_import(
    start: Start, hub: ModelServer, path: str, value: Any
) -> None:
    hub.files[path] = answer(value)

    job = worked(start("hf://org/boxes"))

    assert (job.state, job.version.files.count()) == (ImportState.FAILED, 0)
    assert not job.error.startswith("The import stopped on an unexpected error")


def test_a_page_of_the_hub_names_its_repository(start: Start, hub: ModelServer) -> None:
    job = start(f"{hub.address}/org/boxes/tree/main")

    assert (job.kind, job.address, job.sealed_url) == ("huggingface", "hf://org/boxes:main", "")


def test_without_a_hub_nothing_is_imported_from_it(start: Start, settings: Any) -> None:
    settings.SLIPWAY_IMPORT_HUGGINGFACE = ""

    with pytest.raises(Invalid, match="SLIPWAY_IMPORT_HUGGINGFACE"):
        start("hf://org/boxes")
