"""A data scientist brings a Triton repository: it is checked, and served as it was for them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tritonclient.http as triton_http

from deployments.registry.domain import signatures, triton_config
from deployments.registry.domain.formats import catalogue, triton
from deployments.registry.domain.formats.format import Context
from deployments.registry.domain.not_servable import NotServable
from deployments.registry.domain.signatures import Signature
from deployments.registry.domain.triton_repository import reading
from deployments.spec.domain.serving_spec import AdditionalModel, Batching, ServingSpec
from deployments.states import VersionState
from tests.artifacts import MemoryArtifact
from tests.deployments import real_triton
from tests.deployments.uploading import Upload
from tests.fixtures import triton_repositories as repositories

BASE: dict[str, Any] = {
    "engine": "triton",
    "instance_type": "g5.xlarge",
    "cpu": "1",
    "memory": "1Gi",
}
ONE = {"config.pbtxt": repositories.CENTER_CONFIG, "1/model.onnx": repositories.center()}
FLAT = {"config.pbtxt": repositories.CENTER_CONFIG, "model.onnx": repositories.center()}


def read(files: dict[str, bytes], model: str = "served") -> dict[str, Any]:
    artifact = MemoryArtifact(files, {path: len(body) for path, body in files.items()})
    assert catalogue.detect(artifact).format.key == "triton"
    return reading.read({"model": model}, artifact)


def _concluded(files: dict[str, bytes]) -> Any:
    """The signature of a version as it is stored."""
    context = Context(model="served", main="", paths=tuple(files), max_batch_size=32)
    assert triton.TRITON.reading is not None
    return triton.TRITON.reading.conclude(read(files), context).signature.to_json()


def below(folder: str, files: dict[str, bytes]) -> dict[str, bytes]:
    return {f"{folder}{path}": body for path, body in files.items()}


@pytest.mark.parametrize("folder", ["", "center/", "repository/center/", "2024/a b/center/"])
@pytest.mark.parametrize("files", [ONE, FLAT])
def test_a_model_is_recognised_with_and_without_folders(
    folder: str, files: dict[str, bytes]
) -> None:
    facts = read(below(folder, files))

    (model,) = facts["models"]
    assert (model["name"], model["backend"], model["versions"]) == ("served", "onnxruntime", [1])
    (source,) = (f"{folder}{path}" for path in files if path.endswith("model.onnx"))
    assert model["files"] == {"1/model.onnx": source}


def test_what_archivers_leave_is_no_part_of_a_model() -> None:
    facts = read(
        below("m/", ONE)
        | {"__MACOSX/m/._config.pbtxt": b"", "m/.DS_Store": b"", "m/configs/slipway-x.pbtxt": b""}
    )

    assert list(facts["models"][0]["files"]) == ["1/model.onnx"]
    assert facts["outside"] == [
        "__MACOSX/m/._config.pbtxt",
        "m/.DS_Store",
        "m/configs/slipway-x.pbtxt",
    ]


@pytest.mark.parametrize(
    ("policy", "served"),
    [
        ("", [10]),
        ("version_policy { latest { num_versions: 2 } }", [2, 10]),
        ("version_policy { all { } }", [1, 2, 10]),
        ("version_policy { specific { versions: [ 2 ] } }", [2]),
    ],
)
def test_the_highest_version_is_served_unless_the_policy_says_otherwise(
    policy: str, served: list[int]
) -> None:
    config = repositories.CENTER_CONFIG + f"\n{policy}".encode()
    files = {f"{number}/model.onnx": repositories.center() for number in (1, 2, 10)}

    facts = read({"config.pbtxt": config, **files, "0010/model.onnx": b"ignored by Triton"})

    assert facts["models"][0]["versions"] == served


def _changed(old: bytes, new: bytes, config: bytes = repositories.CENTER_CONFIG) -> bytes:
    assert old in config
    return config.replace(old, new)


REFUSED = {
    "no configuration": (
        {"center/1/model.onnx": b"\x08\x08"},
        "Model served: config.pbtxt is missing. Write one with name, backend",
    ),
    "not a text of the schema": (
        {**ONE, "config.pbtxt": _changed(b"max_batch_size", b"max_batchsize")},
        'Model served: config.pbtxt is not valid. Line 3, column 1: There is no "max_batchsize" in '
        'ModelConfig. Did you mean "max_batch_size"?',
    ),
    "another encoding": (
        {**ONE, "config.pbtxt": "name: “x”".encode("utf-16")},
        "Model served: config.pbtxt is not UTF-8 text. Save it again.",
    ),
    "an unknown backend": (
        {**ONE, "config.pbtxt": _changed(b"onnxruntime", b"keras")},
        "Triton's image has no backend “keras”. Use one of dali, ensemble, fil",
    ),
    "TensorFlow": (
        {
            **ONE,
            "config.pbtxt": _changed(
                b'backend: "onnxruntime"', b'platform: "tensorflow_savedmodel"'
            ),
        },
        "The backend is tensorflow. Triton's image has no TensorFlow since 25.03.",
    ),
    "another file": (
        {"config.pbtxt": repositories.CENTER_CONFIG, "1/net.onnx": b""},
        "The backend onnxruntime needs model.onnx in the directory of the version, which has net.onnx.",
    ),
    "a file outside": (
        {
            **ONE,
            "config.pbtxt": repositories.CENTER_CONFIG + b'\ndefault_model_filename: "../../x"',
        },
        "The backend onnxruntime needs ../../x in the directory",
    ),
    "a version that is not there": (
        {
            **ONE,
            "config.pbtxt": repositories.CENTER_CONFIG
            + b"\nversion_policy { specific { versions: [ 3 ] } }",
        },
        "version_policy names version 3, which has no directory. There is 1.",
    ),
    "no inputs": (
        {**ONE, "config.pbtxt": b'backend: "onnxruntime"'},
        "config.pbtxt states no input. Add it",
    ),
    "a negative dimension": (
        {**ONE, "config.pbtxt": _changed(b"[ 4 ] } ]\noutput", b"[ -4 ] } ]\noutput")},
        "The input “raw” has the dimension -4.",
    ),
    "a library": (
        {**ONE, "1/plugin.so": b"\x7fELF"},
        "“1/plugin.so” is a library that Triton would load into the server.",
    ),
    "a library by name": (
        {
            **ONE,
            "config.pbtxt": repositories.CENTER_CONFIG
            + b'\nmodel_operations { op_library_filename: "/tmp/x" }',
        },
        "model_operations or runtime is a library",
    ),
}


@pytest.mark.parametrize(("files", "message"), REFUSED.values(), ids=REFUSED)
def test_what_triton_could_not_serve_is_refused_with_the_fix(
    files: dict[str, bytes], message: str
) -> None:
    artifact = MemoryArtifact(files, {path: len(body) for path, body in files.items()})

    with pytest.raises(NotServable) as refusal:
        reading.read({"model": "served"}, artifact)

    assert message in str(refusal.value)


def test_settings_of_a_deployment_change_only_what_they_state() -> None:
    own = repositories.CENTER_CONFIG + (
        b"\ndynamic_batching { max_queue_delay_microseconds: 700 }"
        b'\ninstance_group [ { kind: KIND_CPU count: 3 } ]\nparameters { key: "intra_op_thread_count" '
        b'value { string_value: "2" } }\noptimization { priority: PRIORITY_MAX }'
    )
    signature = signatures.from_json(read({**ONE, "config.pbtxt": own})["signature"])

    same = triton_config.parse(triton_config.render(model="m", signature=signature))
    tuned = triton_config.parse(
        triton_config.render(
            model="m", signature=signature, spec=ServingSpec(**BASE, instances_per_gpu=2)
        )
    )

    expected = triton_config.parse(own.decode())
    expected.name = "m"
    assert same == expected
    assert [(group.count, group.kind) for group in tuned.instance_group] == [(2, 1)]
    tuned.ClearField("instance_group")
    expected.ClearField("instance_group")
    assert tuned == expected


def test_settings_do_not_replace_sequence_batching_or_tune_an_ensemble() -> None:
    own = repositories.CENTER_CONFIG + b"\nsequence_batching { direct { } }"
    sequences = signatures.from_json(read({**ONE, "config.pbtxt": own})["signature"])
    ensemble = signatures.from_json(_concluded(repositories.ensemble()))
    delayed = ServingSpec(**BASE, batching=Batching(max_queue_delay_us=500))

    assert triton_config.problem_with(sequences, ServingSpec(**BASE)) == ""
    assert triton_config.problem_with(sequences, delayed) == (
        "The model's config.pbtxt batches sequences. Leave dynamic batching at its defaults."
    )
    assert triton_config.problem_with(ensemble, ServingSpec(**BASE)) == ""
    additional = AdditionalModel(model="classes", version=1)
    assert triton_config.problem_with(ensemble, additional) == (
        "The version brings further models (center, score), which multi-model serving would not load. "
        "Deploy it alone."
    )
    assert triton_config.problem_with(ensemble, delayed) == (
        "An ensemble has no batching, instances or warm-up of its own. Leave these settings at their "
        "defaults, and state them in the config.pbtxt of its models."
    )


@pytest.mark.django_db
def test_a_model_directory_becomes_a_version_with_its_own_configuration(verified: Upload) -> None:
    own = repositories.CENTER_CONFIG + b"\ndynamic_batching { max_queue_delay_microseconds: 700 }"

    version = verified(below("center/", {**ONE, "config.pbtxt": own}), model="rows")

    assert (version.state, version.state_reason) == (VersionState.READY, "")
    assert (version.format, version.filename) == ("triton", "center")
    keys = [item["key"].removeprefix(version.repository_prefix) for item in version.laid_out]
    assert keys == ["rows/1/model.onnx", "rows/config.pbtxt"]
    expected = triton_config.parse(own.decode())
    expected.name = "rows"
    assert triton_config.parse(version.config_pbtxt) == expected
    signature = signatures.from_json(version.signature)
    assert [(t.name, t.dims) for t in signature.inputs] == [("raw", (-1, 4))]
    assert _detail(version, "Runtime") == (
        "rows: onnxruntime; rows: no KIND_GPU in instance_group, so Triton uses the CPU without a "
        "message if it has no GPU"
    )
    assert _detail(version, "Batching") == "up to 8, as config.pbtxt states"


def _detail(version: Any, step: str) -> str:
    return next(check["detail"] for check in version.checks if check["name"] == step)


@pytest.mark.django_db
def test_triton_serves_the_repository_of_a_version(
    verified: Upload, s3_store: Any, tmp_path: Path
) -> None:
    single = verified(ONE, model="rows")
    ensemble = verified(repositories.ensemble(), model="classes")
    for version in (single, ensemble):
        assert (version.state, version.state_reason) == (VersionState.READY, "")
        for item in version.laid_out:
            path = tmp_path / "models" / item["key"].removeprefix(version.repository_prefix)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(b"".join(s3_store.read(item["key"], item["version_id"])))
    rows = np.random.default_rng(3).standard_normal((5, repositories.WIDTH)).astype(np.float32)
    child, port = real_triton.start(tmp_path)
    try:
        centered = _ask(port, "rows", "raw", rows, "centered")
        scores = _ask(port, "classes", "raw", rows, "scores")
    finally:
        child.kill()

    np.testing.assert_allclose(centered, rows - rows.mean(axis=1, keepdims=True), atol=1e-6)
    np.testing.assert_allclose(scores, repositories.answers_of_both(rows), atol=1e-6)


def _ask(port: int, model: str, name: str, rows: Any, result: str) -> Any:
    with triton_http.InferenceServerClient(f"127.0.0.1:{port}") as client:
        given = triton_http.InferInput(name, list(rows.shape), "FP32")
        given.set_data_from_numpy(rows)
        return client.infer(model, [given]).as_numpy(result)


def test_the_signature_of_a_version_has_its_configuration_after_a_round_trip() -> None:
    signature = signatures.from_json(read(ONE)["signature"])

    assert signatures.from_json(signature.to_json()) == signature
    assert isinstance(signature, Signature)
