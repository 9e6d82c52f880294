"""A data scientist brings what XGBoost or LightGBM saved: it is read, and served by Triton with the
library's own answers.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tritonclient.http as triton_http

from deployments.registry.domain import signatures, triton_config
from deployments.registry.domain.formats import catalogue
from deployments.registry.services import verification
from deployments.spec.domain.serving_spec import Batching, ServingSpec
from deployments.states import VersionState
from tests.artifacts import MemoryArtifact
from tests.deployments import real_triton
from tests.deployments.uploading import Upload
from tests.fixtures import forest_models
from tests.fixtures.forest_models import ForestModel

pytestmark = [pytest.mark.django_db]

REQUESTS = 100
AT_ONCE = 8


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, ForestModel]:
    folder = tmp_path_factory.mktemp("forests")
    return {model.name: model for model in forest_models.all_kinds(folder)}


@pytest.mark.parametrize(
    ("name", "kind", "model_file"),
    [
        ("binary", "xgboost_json", "xgboost.json"),
        ("regression", "xgboost_ubj", "xgboost.ubj"),
        ("lightclasses", "lightgbm", "model.txt"),
    ],
)
def test_a_saved_model_becomes_a_version_with_the_files_of_the_backend(
    models: dict[str, ForestModel],
    verified: Upload,
    s3_store: Any,
    name: str,
    kind: str,
    model_file: str,
) -> None:
    model = models[name]

    version = verified(
        model.content, model=name, filename=model.filename, head=model.content[:4096]
    )

    assert (version.state, version.state_reason) == (VersionState.READY, "")
    assert version.format == kind
    signature = signatures.from_json(version.signature)
    assert [(t.name, t.dtype, t.dims) for t in signature.inputs] == [("input__0", "FP32", (-1, 6))]
    assert [(t.name, t.dtype, t.dims) for t in signature.outputs] == [
        ("output__0", "FP32", (-1, model.outputs))
    ]
    assert signature.max_batch_size == 32
    objects = sorted(version.laid_out, key=lambda item: str(item["key"]))
    assert [item["key"] for item in objects] == [
        f"{version.repository_prefix}{name}/1/{model_file}",
        f"{version.repository_prefix}{name}/config.pbtxt",
    ]
    served = s3_store.read(objects[0]["key"], objects[0]["version_id"])
    assert b"".join(served) == model.content
    assert f'key: "model_type" value {{ string_value: "{kind}" }}' in version.config_pbtxt
    # The runtime's 450 MiB and 1 MiB each for nodes and rows, rounded up to 16.
    assert version.vram_estimate_mib == 464


def test_a_deployment_may_batch_but_not_convert_to_tensorrt(
    models: dict[str, ForestModel], verified: Upload
) -> None:
    version = verified(models["binary"].content, filename="model.json")
    signature = signatures.from_json(version.signature)
    base: dict[str, Any] = {
        "engine": "triton",
        "instance_type": "g5.xlarge",
        "cpu": "1",
        "memory": "1Gi",
    }

    batched = ServingSpec(**base, batching=Batching(preferred_batch_sizes=(8,)))

    assert triton_config.problem_with(signature, batched) == ""
    assert triton_config.problem_with(signature, ServingSpec(**base, precision="fp16")) == (
        "Only ONNX models can be converted to TensorRT. Set precision to original."
    )


def test_triton_answers_as_the_library_does(
    models: dict[str, ForestModel], verified: Upload, tmp_path: Path
) -> None:
    for model in models.values():
        version = verified(
            model.content, model=model.name, filename=model.filename, head=model.content[:4096]
        )
        assert version.state == VersionState.READY, (model.name, version.state_reason)
        file = signatures.from_json(version.signature).backend.model_file
        folder = tmp_path / "models" / model.name
        (folder / "1").mkdir(parents=True)
        (folder / "1" / file).write_bytes(model.content)
        (folder / "config.pbtxt").write_text(version.config_pbtxt)
    child, port = real_triton.start(tmp_path)
    try:
        answers = {name: _ask(port, model) for name, model in models.items()}
    finally:
        child.kill()

    for name, model in models.items():
        expected = model.predict(forest_models.rows(REQUESTS)).reshape(REQUESTS, -1)
        np.testing.assert_allclose(answers[name], expected, rtol=2e-6, atol=2e-6, err_msg=name)


def _ask(port: int, model: ForestModel) -> Any:
    """One row a request, several at a time, so that Triton batches them."""

    def ask(row: Any) -> Any:
        client = triton_http.InferenceServerClient(f"127.0.0.1:{port}")
        try:
            given = triton_http.InferInput("input__0", [1, forest_models.FEATURES], "FP32")
            given.set_data_from_numpy(row.reshape(1, -1))
            return client.infer(model.name, [given]).as_numpy("output__0")[0]
        finally:
            client.close()

    with ThreadPoolExecutor(AT_ONCE) as pool:
        return np.stack(list(pool.map(ask, forest_models.rows(REQUESTS))))


def _broken(models: dict[str, ForestModel]) -> Iterator[tuple[str, str, bytes]]:
    """A case, a file name and its bytes."""
    saved = models["binary"].content
    yield "truncated", "model.json", saved[: len(saved) // 2]
    yield "truncated UBJSON", "model.ubj", models["regression"].content[:-40]
    yield "truncated LightGBM", "model.txt", models["light"].content[:900]
    yield "no trees", "model.json", b'{"learner": {}, "version": [3, 2, 0]}'
    deep = b'{"learner": ' + b"[" * 200_000
    yield "nested lists", "model.json", deep
    tree = json.loads(saved)
    tree["learner"]["learner_model_param"]["num_feature"] = "999999999999"
    yield "features", "model.json", json.dumps(tree).encode()
    tree = json.loads(saved)
    tree["learner"]["gradient_booster"]["model"]["trees"][0]["left_children"][0] = 2**30
    yield "a child that is not there", "model.json", json.dumps(tree).encode()
    tree = json.loads(saved)
    tree["learner"]["gradient_booster"]["model"]["trees"][0]["left_children"][0] = 0
    yield "a node that is its own child", "model.json", json.dumps(tree).encode()
    tree = json.loads(saved)
    tree["learner"]["gradient_booster"]["model"]["trees"][-1]["split_indices"][1] = 10**6
    yield "a split by a feature that is not there", "model.json", json.dumps(tree).encode()
    light = models["light"].content
    yield (
        "a child out of range",
        "model.txt",
        light.replace(b"left_child=", b"left_child=99999 ", 1),
    )


def test_a_broken_file_fails_with_the_reason_and_nothing_is_served(
    models: dict[str, ForestModel], verified: Upload
) -> None:
    for case, filename, content in _broken(models):
        version = verified(
            content, filename=filename, is_duplicate_allowed=True, head=content[:4096]
        )
        if version.state == VersionState.VERIFYING:  # the reader died, and is tried once more
            verification.advance(version.pk)
            version.refresh_from_db()

        assert version.state == VersionState.FAILED, case
        assert version.state_reason, case
        assert version.repository_prefix == "", case


@pytest.mark.parametrize(
    ("head", "kind"),
    [
        (b'{"learner":{"attributes":{}', "xgboost_json"),
        (b'{\n  "version": [1, 7, 4],\n  "learner": {', "xgboost_json"),
        (b"{L\0\0\0\0\0\0\0\x07learner{L", "xgboost_ubj"),
        (b"{i\x07version[", "xgboost_ubj"),
        (b"tree\nversion=v4\nnum_class=1", "lightgbm"),
        (b"binf\0\0\0?", "xgboost"),
        (b"bs64\tYmluZg==", "xgboost"),
        (b"{L\0\0\0\0\0\0\0\x06Config{L", "xgboost_snapshot"),
        (b'{"name": "learner"}', "unknown"),
        (b"trees are green", "unknown"),
    ],
)
def test_the_first_bytes_tell_the_format(head: bytes, kind: str) -> None:
    artifact = MemoryArtifact({"model.any": head}, {"model.any": len(head)})
    assert catalogue.detect(artifact).format.key == kind


def test_formats_have_the_names_that_people_write() -> None:
    assert [
        catalogue.describe(kind) for kind in ("onnx", "xgboost_ubj", "lightgbm", "hdf5", "")
    ] == [
        "ONNX",
        "XGBoost (UBJSON)",
        "LightGBM",
        "HDF5 (Keras)",
        "",
    ]


def _old_binary(objective: str, booster: str, *, mark: bytes) -> bytes:
    """As XGBoost 2.1 wrote it with save_raw("deprecated")."""
    parameters = struct.pack("<fIiiiIIi", 0.5, 3, 0, 1, 0, 2, 1, 1).ljust(136, b"\0")
    names = (len(text).to_bytes(8, "little") + text.encode() for text in (objective, booster))
    return mark + parameters + b"".join(names) + bytes(160)


@pytest.mark.parametrize("filename", ["model.bin", "model.model", "0042", "model.xgb", "m.pkl"])
@pytest.mark.parametrize("mark", [b"binf", b""])
@pytest.mark.parametrize(
    ("objective", "booster"),
    [("binary:logistic", "gbtree"), ("reg:squarederror", "gblinear"), ("rank:ndcg", "dart")],
)
def test_the_old_binary_of_xgboost_is_named_with_the_call_that_converts_it(
    filename: str, mark: bytes, objective: str, booster: str
) -> None:
    content = _old_binary(objective, booster, mark=mark)

    found = catalogue.detect(MemoryArtifact({filename: content}, {filename: len(content)}))

    assert found.format.key == "xgboost"
    refusal = found.describe_refusal(filename)
    assert "an XGBoost model in the old binary format" in refusal
    assert "pip install 'xgboost<3.1'" in refusal
    assert "save_model('model.json')" in refusal
