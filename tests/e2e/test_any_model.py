"""Models as people have them, from the upload page of the demo to answers: those of their own libraries."""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import tritonclient.http as triton_http
from playwright.sync_api import Page, expect

from tests.deployments.registry import test_onnx_external_data as external_data
from tests.deployments.registry import test_triton_code as code
from tests.e2e import browsers
from tests.e2e.browsers import Pages, browser, page_of
from tests.e2e.rest import Person
from tests.fixtures import forest_models, language_models
from tests.fixtures import triton_repositories as repositories

__all__ = ["browser", "page_of"]
pytestmark = browsers.marks


@dataclass(frozen=True)
class Served:
    """A model that the demo runs: its tensors on the wire, some rows and its library's answers."""

    tensors: tuple[str, str]
    rows: Any
    answers: Any


@dataclass(frozen=True)
class Model:
    """`choice` is the field of the upload page; a folder lies in a folder of its own."""

    name: str
    format: str
    choice: str
    files: Mapping[str, bytes]
    served: Served | None = None

    def write(self, folder: Path) -> Path:
        repositories.write(folder / self.name, dict(self.files))
        if self.choice == "#folder":
            return folder / self.name
        return folder / self.name / next(iter(self.files))


def rows_of(width: int) -> Any:
    return np.random.default_rng(5).standard_normal((6, width)).astype(np.float32)


def risk(folder: Path) -> Model:
    forest = forest_models.xgboost_model(
        "risk", "risk.ubj", folder, objective="multi:softprob", num_class=4
    )
    rows = forest_models.rows(50)
    served = Served(("input__0", "output__0"), rows, forest.predict(rows))
    return Model("risk", "XGBoost", "#file", {forest.filename: forest.content}, served)


def sorter() -> Model:
    rows = rows_of(repositories.WIDTH)
    served = Served(("raw", "centered"), rows, np.sort(rows) * 3)
    files = code.PYTHON | {"config.pbtxt": code.PYTHON_CONFIG.replace(b'"center"', b'"sorter"')}
    return Model("sorter", "Triton", "#folder", files, served)


def ensemble() -> Model:
    rows = rows_of(repositories.WIDTH)
    served = Served(("raw", "scores"), rows, repositories.answers_of_both(rows))
    return Model("pipeline", "Triton", "#folder", repositories.ensemble(), served)


def external(folder: Path) -> Model:
    files = external_data.folder()
    repositories.write(folder, files)
    session = onnxruntime.InferenceSession(folder / "net" / "graph.onnx")
    rows = rows_of(external_data.WIDTH)
    served = Served(("x", "y"), rows, session.run(None, {"x": rows})[0])
    return Model(
        "net", "ONNX", "#folder", {k.partition("/")[2]: v for k, v in files.items()}, served
    )


def zipped() -> Model:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("score/config.pbtxt", repositories.SCORE_CONFIG)
        archive.writestr("score/1/model.onnx", repositories.score())
    rows = rows_of(repositories.WIDTH)
    session = onnxruntime.InferenceSession(repositories.score())
    served = Served(("features", "scores"), rows, session.run(None, {"features": rows})[0])
    return Model("score", "Triton", "#file", {"score.zip": packed.getvalue()}, served)


def safetensors() -> Model:
    """What would answer in its place in the demo has weights of its own (test_language_models.py)."""
    files = {k.partition("/")[2]: v for k, v in language_models.folder(shards=2).items()}
    return Model("llama", "Hugging Face", "#folder", files)


def upload(page: Page, model: Model, path: Path) -> None:
    page.goto("/vision/upload")
    page.set_input_files(model.choice, path)
    page.locator("[name=model]").fill(model.name)
    page.locator("#send").click()
    expect(page.locator("#verification")).to_be_visible()


def release(page: Page, name: str) -> None:
    page.goto(f"/vision/models/{name}/1")
    page.get_by_label("Reason this is safe").fill("It sorts rows; we read it.")
    page.get_by_role("button", name="Release").click()


def wait_for_version(page: Page, model: Model, state: str = "ready") -> None:
    page.goto(f"/vision/models/{model.name}/1")
    expect(page.locator("#verification")).to_have_attribute("data-state", state)
    expect(page.locator("main")).to_contain_text(re.compile(model.format))


def assert_answers_as_its_library(url: str, model: Model) -> None:
    served = model.served
    assert served
    given_name, answer_name = served.tensors
    with triton_http.InferenceServerClient(url.removeprefix("http://")) as client:
        halves = []
        for half in np.split(served.rows, 2):
            given = triton_http.InferInput(given_name, list(half.shape), "FP32")
            given.set_data_from_numpy(half)
            halves.append(client.infer(model.name, [given]).as_numpy(answer_name))
    np.testing.assert_allclose(np.concatenate(halves), served.answers, rtol=2e-6, atol=2e-6)


def deploy(models: Sequence[Model], member: Person, lead: Person) -> dict[str, Any]:
    """In one Triton, because each start costs seconds; an ensemble has to be alone in its own."""
    first, *others = [model.name for model in models]
    version = member.get(f"models/vision/{first}/versions")["results"][0]
    packed = [{"model": name, "version": 1} for name in others]
    change = member.request_deployment(version, f"any-{first}", additional_models=packed)
    lead.approve(change)
    return member.wait_until_ready(change["deployment_id"])


def test_any_model_becomes_a_version_in_the_browser_and_answers_as_its_library_does(
    page_of: Pages, member: Person, lead: Person, tmp_path: Path
) -> None:
    made: list[Callable[[], Model]] = [
        ensemble,
        lambda: risk(tmp_path),
        sorter,
        lambda: external(tmp_path / "external"),
        zipped,
        safetensors,
    ]
    models = [make() for make in made]
    page = page_of("member")
    for model in models:
        upload(page, model, model.write(tmp_path / "chosen"))
    for model in models:
        wait_for_version(page, model, "quarantined" if model.name == "sorter" else "ready")
    release(page_of("admin"), "sorter")
    wait_for_version(page, models[2])

    alone, *together = [model for model in models if model.served]
    for served in ([alone], together):
        deployment = deploy(served, member, lead)
        for model in served:
            assert_answers_as_its_library(deployment["url"], model)
        member.retire(deployment["id"], approved_by=lead)
