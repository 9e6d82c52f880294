"""Triton repositories with code: model.py of the Python backend, its environment, and DALI."""

from __future__ import annotations

import gzip
from typing import Any

import numpy as np
import pytest
import tritonclient.http as triton_http

from deployments.registry.domain.formats import catalogue, triton
from deployments.registry.domain.formats.format import Context, Inspection
from deployments.registry.domain.not_servable import NotServable
from deployments.registry.domain.triton_repository import reading
from deployments.registry.services import verification, versions
from deployments.states import VersionState
from tests.artifacts import MemoryArtifact
from tests.deployments import real_triton
from tests.deployments.uploading import People, Upload
from tests.fixtures import triton_repositories as repositories

MODEL = b"""\
import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        answers = []
        for request in requests:
            rows = pb_utils.get_input_tensor_by_name(request, "raw").as_numpy()
            answers.append(pb_utils.InferenceResponse([pb_utils.Tensor("centered", np.sort(rows) * 3)]))
        return answers
"""
PYTHON_CONFIG = repositories.CENTER_CONFIG.replace(b"onnxruntime", b"python")
PYTHON = {"config.pbtxt": PYTHON_CONFIG, "model.py": MODEL, "scale.json": b"{}"}


def artifact_of(files: dict[str, bytes]) -> MemoryArtifact:
    return MemoryArtifact(files, {path: len(body) for path, body in files.items()})


def read(files: dict[str, bytes]) -> dict[str, Any]:
    assert catalogue.detect(artifact_of(files)).format is triton.TRITON_WITH_CODE
    return reading.read({"model": "rows"}, artifact_of(files))


def inspect(files: dict[str, bytes]) -> Inspection:
    context = Context(model="rows", main="", paths=tuple(files), max_batch_size=32)
    assert triton.TRITON_WITH_CODE.reading is not None
    return triton.TRITON_WITH_CODE.reading.conclude(read(files), context)


@pytest.mark.django_db
def test_code_is_quarantined_until_an_admin_releases_it(people: People, verified: Upload) -> None:
    version = verified(PYTHON, model="rows")

    assert (version.state, version.format) == (VersionState.QUARANTINED, "triton_code")
    assert "A platform admin has to release it" in version.state_reason
    assert version.repository_prefix == ""

    versions.release(actor=people.admin, version_id=version.pk, reason="Our own.", days=3)
    verification.advance(version.pk)

    version.refresh_from_db()
    assert (version.state, version.state_reason) == (VersionState.READY, "")
    assert [item["key"].removeprefix(version.repository_prefix) for item in version.laid_out] == [
        "rows/1/model.py",
        "rows/1/scale.json",
        "rows/config.pbtxt",
    ]


def test_a_model_and_its_configuration_are_laid_out_as_version_1() -> None:
    inspection = inspect(PYTHON)

    assert inspection.layout == {"rows/1/model.py": "model.py", "rows/1/scale.json": "scale.json"}
    assert list(inspection.generated) == ["rows/config.pbtxt"]
    assert inspection.signature.backend.name == "python"
    assert [(t.name, t.dims) for t in inspection.signature.inputs] == [("raw", (-1, 4))]


def test_triton_runs_the_code_and_answers_what_it_computes(tmp_path: Any) -> None:
    inspection = inspect(
        {**PYTHON, "config.pbtxt": PYTHON_CONFIG + b"\ninstance_group { kind: KIND_GPU }"}
    )
    repositories.write(
        tmp_path / "models",
        {path: PYTHON[source] for path, source in inspection.layout.items()}
        | {path: text.encode() for path, text in inspection.generated.items()},
    )
    rows = np.random.default_rng(3).standard_normal((5, repositories.WIDTH)).astype(np.float32)
    child, port = real_triton.start(tmp_path)
    try:
        with triton_http.InferenceServerClient(f"127.0.0.1:{port}") as client:
            given = triton_http.InferInput("raw", list(rows.shape), "FP32")
            given.set_data_from_numpy(rows)
            answer = client.infer("rows", [given]).as_numpy("centered")
    finally:
        child.kill()

    np.testing.assert_array_equal(answer, np.sort(rows) * 3)


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (b"", "model.py defines no class TritonPythonModel"),
        (b"def execute(requests): ...", "model.py defines no class TritonPythonModel"),
        (b"class TritonPythonModel: ...", "TritonPythonModel in model.py has no method execute"),
        (b"class TritonPythonModel(:", "cannot parse model.py line 1"),
        (b"x = '\\N{}'", "cannot parse model.py line 1"),
        (b"\0", "cannot parse model.py"),
        (b"(" * 100_000, "cannot parse model.py"),
    ],
)
def test_code_that_triton_could_not_load_is_refused_without_running_it(
    source: bytes, message: str
) -> None:
    with pytest.raises(NotServable) as refusal:
        read({**PYTHON, "model.py": source})

    assert message in str(refusal.value)


@pytest.mark.parametrize(
    "source",
    [
        b"from impl import TritonPythonModel",
        b"from impl import Model as TritonPythonModel",
        b"from impl import *",
        b"class Model: ...\nTritonPythonModel = Model",
        b"from impl import Base\nclass TritonPythonModel(Base): ...",
        b"try:\n    import a\nexcept ImportError:\n    class TritonPythonModel:\n"
        b"        async def execute(self, requests): ...",
    ],
)
def test_the_class_may_come_from_elsewhere(source: bytes) -> None:
    assert read({**PYTHON, "model.py": source})["models"][0]["has_code"] is True


def test_code_is_never_run_when_it_is_read(tmp_path: Any) -> None:
    mark = tmp_path / "ran"
    source = f"open({str(mark)!r}, 'w')\n".encode() + MODEL

    read({**PYTHON, "model.py": source})

    assert not mark.exists()


def _with_environment(path: str) -> bytes:
    value = f'parameters {{ key: "EXECUTION_ENV_PATH" value {{ string_value: "{path}" }} }}'
    return PYTHON_CONFIG + f"\n{value}".encode()


def test_an_environment_stays_beside_the_versions() -> None:
    files = {
        **PYTHON,
        "config.pbtxt": _with_environment("$$TRITON_MODEL_DIRECTORY/env.tar.gz"),
        "env.tar.gz": gzip.compress(b"additional_models"),
    }

    inspection = inspect(files)

    assert sorted(inspection.layout) == [
        "rows/1/model.py",
        "rows/1/scale.json",
        "rows/env.tar.gz",
    ]
    assert "rows: environment of 1 MiB, unpacked at each start" in inspection.details["Runtime"]


@pytest.mark.parametrize(
    ("path", "content", "message"),
    [
        ("/opt/env.tar.gz", b"", "which is outside the model"),
        ("$$TRITON_MODEL_DIRECTORY/../other/env.tar.gz", b"", "which is outside the model"),
        ("s3://bucket/env.tar.gz", b"", "which is outside the model"),
        (
            "$$TRITON_MODEL_DIRECTORY/other.tar.gz",
            b"",
            "other.tar.gz of EXECUTION_ENV_PATH is missing",
        ),
        ("$$TRITON_MODEL_DIRECTORY/env.tar.gz", b"PK\3\4", "env.tar.gz is not a tar.gz archive"),
    ],
)
def test_an_environment_elsewhere_is_refused(path: str, content: bytes, message: str) -> None:
    files = {**PYTHON, "config.pbtxt": _with_environment(path), "env.tar.gz": content}

    with pytest.raises(NotServable) as refusal:
        read(files)

    assert message in str(refusal.value)


def test_python_under_another_name_is_refused_and_not_taken_for_data() -> None:
    files = {
        "config.pbtxt": PYTHON_CONFIG + b'\ndefault_model_filename: "weights.bin"',
        "1/weights.bin": MODEL,
    }
    assert catalogue.detect(artifact_of(files)).format is triton.TRITON

    with pytest.raises(NotServable, match=r"The file of a Python model is model\.py"):
        reading.read({"model": "rows"}, artifact_of(files))


def test_code_that_calls_other_models_is_served_with_them() -> None:
    code = MODEL + b"\nCALLED = ['center', 'score']\n"
    files = {path: body for path, body in repositories.ensemble().items() if "pipeline" not in path}
    files |= {
        "models/calls/config.pbtxt": PYTHON_CONFIG.replace(b'name: "center"', b'name: "calls"'),
        "models/calls/1/model.py": code,
    }

    facts = read(files)

    assert [model["name"] for model in facts["models"]] == ["calls", "center", "score"]


DALI_CONFIG = repositories.CENTER_CONFIG.replace(b"onnxruntime", b"dali")


def test_a_dali_pipeline_is_data_and_its_python_form_is_code() -> None:
    serialised = {"config.pbtxt": DALI_CONFIG, "1/model.dali": b"\x08\x01"}
    assert catalogue.detect(artifact_of(serialised)).format is triton.TRITON
    facts = reading.read({"model": "rows"}, artifact_of(serialised))
    assert facts["signature"]["backend"]["name"] == "dali"

    facts = read({"config.pbtxt": DALI_CONFIG, "1/dali.py": b"import nvidia.dali"})

    assert facts["models"][0]["has_code"] is True
