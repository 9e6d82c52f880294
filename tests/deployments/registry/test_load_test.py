"""Before a version is ready, Triton loads it and answers a generated request, where one is at hand."""

from __future__ import annotations

import base64
import os
import shlex
import signal
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from django.test import Client
from onnx import TensorProto, helper, numpy_helper

from deployments.models import ModelVersion
from deployments.registry.domain.forests import comparison
from deployments.registry.domain.load_tests import requests, results
from deployments.registry.domain.load_tests.results import LoadOutcome, LoadTest
from deployments.registry.domain.signatures import Signature, Tensor
from deployments.registry.gateways import load_test
from deployments.registry.services import verification, versions
from deployments.registry.services.examination.checklist import LeaseLost
from deployments.states import VersionState
from portal.core.definitions.figures import format_milliseconds, format_seconds
from tests.deployments import onnx_models
from tests.deployments.registry.test_triton_code import MODEL, PYTHON
from tests.deployments.uploading import People, Upload
from tests.fixtures import forest_models
from tests.fixtures import triton_repositories as repositories
from tests.page import page
from tests.waiting import PATIENCE_SECONDS

COMMAND = f"{shlex.quote(sys.executable)} -m slipway_localcluster.load_test"
BATCHED = Signature(
    (Tensor("x", "FP32", (-1, 4)),), (Tensor("y", "FP32", (-1, 2)),), max_batch_size=8
)


def step(version: ModelVersion) -> Any:
    return next(check for check in version.checks if check["name"] == "Load test")


NO_RESULT = (LoadOutcome.NO_RUNTIME, LoadOutcome.LATE, LoadOutcome.TOO_LARGE)


@pytest.fixture
def with_triton(settings: Any) -> Any:
    settings.SLIPWAY_LOAD_TEST_COMMAND = COMMAND
    settings.SLIPWAY_LOAD_TEST_SECONDS = PATIENCE_SECONDS
    return settings


@pytest.mark.django_db
def test_without_a_triton_at_hand_it_is_not_tried(verified: Upload) -> None:
    version = verified(onnx_models.linear())

    assert version.state == VersionState.READY
    assert step(version) == {
        "name": "Load test",
        "ok": None,
        "detail": "not tried: no Triton available",
    }
    assert results.read_load_test(version.signature) is None


@pytest.mark.django_db
def test_an_ensemble_is_loaded_and_answers(
    verified: Upload, with_triton: Any, people: People, client: Client
) -> None:
    version = verified(repositories.ensemble(), model="classes")

    assert (version.state, version.state_reason) == (VersionState.READY, "")
    result = results.read_load_test(version.signature)
    assert result is not None
    assert result.outcome is LoadOutcome.ANSWERED
    assert result.outputs == ({"name": "scores", "datatype": "FP32", "shape": [1, 3]},)
    assert result.load_seconds > 0
    assert 20 < result.memory_mib < 2048
    assert result.warm_ms > 0
    assert step(version) == {"name": "Load test", "ok": True, "detail": result.describe()}
    client.force_login(people.viewer)
    card = page(client.get(f"/vision/models/classes/{version.number}")).part("load-test")
    assert card.term("Loaded in") == format_seconds(result.load_seconds)
    assert card.term("First answer") == format_milliseconds(result.first_ms)
    answer = client.get(f"/api/v1/versions/{version.pk}").json()["load_test"]
    assert answer == {
        "outcome": "answered",
        "detail": "",
        "load_seconds": result.load_seconds,
        "memory_mib": result.memory_mib,
        "first_ms": result.first_ms,
        "warm_ms": result.warm_ms,
        "gpu_memory_mib": 0,
        "cluster": "",
    }


@pytest.mark.django_db
def test_code_runs_only_after_its_release(
    verified: Upload, with_triton: Any, people: People, tmp_path: Path
) -> None:
    trace = tmp_path / "trace"
    code = MODEL.replace(
        b"import numpy", f"open({str(trace)!r}, 'a').close()\nimport numpy".encode()
    )
    version = verified({**PYTHON, "model.py": code}, model="rows")
    assert (version.state, trace.exists()) == (VersionState.QUARANTINED, False)
    assert step(version)["detail"] == "not tried"

    versions.release(actor=people.admin, version_id=version.pk, reason="Our own.", days=3)
    verification.advance(version.pk)

    version.refresh_from_db()
    state = (version.state, version.state_reason, trace.exists())
    assert state == (VersionState.READY, "", True)
    assert step(version)["ok"] is True


@pytest.mark.django_db
def test_what_triton_cannot_load_is_refused_with_its_message(
    verified: Upload, with_triton: Any, people: People
) -> None:
    code = MODEL.replace(
        b"    def execute",
        b"    def initialize(self, args):\n        raise ValueError('no scale')\n\n    def execute",
    )
    version = verified({**PYTHON, "model.py": code}, model="rows")
    versions.release(actor=people.admin, version_id=version.pk, reason="Our own.", days=3)
    verification.advance(version.pk)

    version.refresh_from_db()
    message = (
        "Triton does not load the model: failed to load 'rows' version 1: Internal: "
        "ValueError: no scale."
    )
    assert version.state == VersionState.QUARANTINED
    assert version.state_reason == f"It was released, but cannot be served: {message}"
    assert step(version) == {"name": "Load test", "ok": False, "detail": message}


@pytest.mark.django_db
def test_a_large_version_is_not_tried(verified: Upload, with_triton: Any) -> None:
    with_triton.SLIPWAY_LOAD_TEST_MAX_MIB = 0

    version = verified(onnx_models.linear())

    assert version.state == VersionState.READY
    assert step(version)["detail"] == (
        "not tried: the files have 1 MiB, the limit of load tests here is 0"
    )


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("result", "state", "ok", "detail"),
    [
        (
            LoadTest(LoadOutcome.NO_RUNTIME, "the Triton here lacks the backend dali"),
            VersionState.READY,
            None,
            "not tried: the Triton here lacks the backend dali",
        ),
        (
            LoadTest(LoadOutcome.LATE, "it did not load within 120 seconds"),
            VersionState.READY,
            None,
            "stopped, no verdict: it did not load within 120 seconds on the portal's CPU",
        ),
        (
            LoadTest(LoadOutcome.TOO_LARGE, "it needed more than 2,049 MiB of memory"),
            VersionState.READY,
            None,
            "stopped, no verdict: it needed more than 2,049 MiB of memory on the portal's CPU",
        ),
        (
            LoadTest(LoadOutcome.NOT_LOADED, "ModuleNotFoundError: No module named 'cv2'"),
            VersionState.READY,
            False,
            "did not load here: ModuleNotFoundError: No module named 'cv2'. Bring it in an environment "
            "(EXECUTION_ENV_PATH), unless the image has it.",
        ),
        (
            LoadTest(LoadOutcome.CRASHED, "Triton was ended by SIGSEGV"),
            VersionState.FAILED,
            False,
            "Triton loads the model, but it answers no request: Triton was ended by SIGSEGV.",
        ),
        (
            LoadTest(
                LoadOutcome.ANSWERED,
                outputs=({"name": "scores", "datatype": "FP64", "shape": [1, 3]},),
            ),
            VersionState.READY,
            False,
            "loaded in 0.0 s with 0 MiB; answered a generated request in 0.0 ms, then in 0.0 ms. Its "
            "answers differ from its signature: scores is FP64 [1, 3], and FP32 [-1, 3] in the signature. Clients get "
            "these answers.",
        ),
        (
            LoadTest(LoadOutcome.NO_REQUEST, "no request fits", load_seconds=1.5, memory_mib=90),
            VersionState.READY,
            None,
            "inconclusive: no request fits; loaded in 1.5 s with 90 MiB",
        ),
    ],
    ids=lambda value: value.outcome if isinstance(value, LoadTest) else "",
)
def test_what_each_outcome_means(
    verified: Upload,
    with_triton: Any,
    monkeypatch: pytest.MonkeyPatch,
    result: LoadTest,
    state: VersionState,
    ok: bool | None,
    detail: str,
) -> None:
    monkeypatch.setattr(load_test, "run", lambda *args, **options: result)

    version = verified(repositories.ensemble(), model="classes")

    assert (version.state, step(version)["ok"], step(version)["detail"]) == (state, ok, detail)
    assert (results.read_load_test(version.signature) is None) is (
        result.outcome in NO_RESULT or state != VersionState.READY
    )


@pytest.mark.django_db
def test_a_worker_killed_in_a_load_test_twice_fails_the_version(
    upload: Upload, with_triton: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    version = upload(repositories.ensemble(), model="classes")
    ModelVersion.objects.filter(pk=version.pk).update(examination_deaths=2)
    monkeypatch.setattr(load_test, "run", lambda *args, **options: pytest.fail("it ran"))

    verification.advance(version.pk)

    version.refresh_from_db()
    assert version.state == VersionState.FAILED


def _run(folder: Path, settings: Any, command: str, **options: Any) -> LoadTest:
    settings.SLIPWAY_LOAD_TEST_COMMAND = command
    given = {"memory_mib": 100, "seconds": 60, "while_running": lambda: None, **options}
    return load_test.run(folder, "m", **given)


def test_a_program_that_is_late_or_broken_is_no_verdict(
    tmp_path: Path, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = _run(tmp_path, settings, "sh -c 'echo no such library >&2; exit 3'")
    absent = _run(tmp_path, settings, "/nowhere/program")
    babbling = _run(tmp_path, settings, """sh -c 'echo "{}"'""")
    monkeypatch.setattr(load_test, "_GRACE_SECONDS", 0)
    late = _run(tmp_path, settings, "sh -c 'sleep 600 & sleep 600'", seconds=0.2)

    assert late == LoadTest(LoadOutcome.LATE, "it took longer than 0.2 seconds")
    assert [result.outcome for result in (broken, absent, babbling)] == [LoadOutcome.NO_RUNTIME] * 3
    assert broken.detail == (
        "the program that loads models ended without a result: no such library"
    )
    assert absent.detail == (
        "the program that loads models does not start: No such file or directory"
    )


def test_the_program_ends_with_the_verification(tmp_path: Path, settings: Any) -> None:
    pid = tmp_path / "pid"

    def stop() -> None:
        if pid.exists() and pid.read_text().strip():
            raise LeaseLost

    command = f"sh -c 'echo $$ > {pid}; sleep 600'"
    with pytest.raises(LeaseLost):
        _run(tmp_path, settings, command, while_running=stop)

    with pytest.raises(ProcessLookupError):
        os.kill(int(pid.read_text()), signal.SIGCONT)


def test_requests_follow_the_signature() -> None:
    single = Signature(
        (Tensor("image", "FP32", (3, -1, -1, 2)), Tensor("text", "STRING", (1,))),
        (Tensor("y", "FP32", (1,)),),
    )
    indices = Signature((Tensor("x", "INT64", (-1, 4)),), (Tensor("y", "FP32", (-1, 1)),), 8)

    header_bytes, body = next(requests.requests_of(indices))

    assert b'"name": "x", "datatype": "INT64", "shape": [1, 4]' in body[:header_bytes]
    values = np.frombuffer(body[header_bytes:], dtype=np.int64)
    assert len(values) == 4
    assert ((values >= 0) & (values < 10)).all()
    header_bytes, body = next(requests.requests_of(single))
    assert b'"datatype": "FP32", "shape": [3, 64, 64, 2]' in body[:header_bytes]
    assert b'"datatype": "BYTES", "shape": [1]' in body[:header_bytes]
    assert requests.is_any_request_valid(BATCHED)
    assert not requests.is_any_request_valid(single)
    assert not requests.is_any_request_valid(indices)


@pytest.mark.parametrize(
    ("output", "problems"),
    [
        ({"name": "y", "datatype": "FP32", "shape": [1, 2]}, []),
        ({"name": "z", "datatype": "INT8", "shape": []}, []),
        (
            {"name": "y", "datatype": "FP32", "shape": [1, 3]},
            ["y is FP32 [1, 3], and FP32 [-1, 2] in the signature"],
        ),
        (
            {"name": "y", "datatype": "INT64", "shape": [1, 2]},
            ["y is INT64 [1, 2], and FP32 [-1, 2] in the signature"],
        ),
        (
            {"name": "y", "datatype": "FP32", "shape": [2]},
            ["y is FP32 [2], and FP32 [-1, 2] in the signature"],
        ),
    ],
)
def test_an_answer_is_compared_with_the_signature(
    output: dict[str, Any], problems: list[str]
) -> None:
    result = LoadTest(LoadOutcome.ANSWERED, outputs=(output,))

    differences = results.compare_outputs(result, BATCHED)
    assert [difference.describe() for difference in differences] == problems


def declared_otherwise() -> bytes:
    """A reader of text that declares [1, n] for an output of [n, 1, 16], as PaddleOCR's exports do."""
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 1, 8, "w"])
    y = helper.make_tensor_value_info("387", TensorProto.FLOAT, [1, "n"])
    weights = np.ones((8, 16), np.float32)
    constants = {"w": weights, "s": np.array([-1, 8]), "ax": np.array([1])}
    nodes = [
        helper.make_node("Reshape", ["x", "s"], ["r"]),
        helper.make_node("MatMul", ["r", "w"], ["m"]),
        helper.make_node("Unsqueeze", ["m", "ax"], ["387"]),
    ]
    tensors = [numpy_helper.from_array(value, name) for name, value in constants.items()]
    graph = helper.make_graph(nodes, "ocr", [x], [y], tensors)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    return bytes(model.SerializeToString())


def fixed_input(*dims: int, element: int = TensorProto.FLOAT, extra: int = 0) -> bytes:
    """The shape of an input, which runs on any values; `extra` are small inputs beside it."""
    inputs = [helper.make_tensor_value_info("video", element, dims)]
    inputs += [
        helper.make_tensor_value_info(f"x{number}", TensorProto.FLOAT, [1])
        for number in range(extra)
    ]
    y = helper.make_tensor_value_info("y", TensorProto.INT64, [len(dims)])
    graph = helper.make_graph([helper.make_node("Shape", ["video"], ["y"])], "g", inputs, [y])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    return bytes(model.SerializeToString())


@pytest.mark.django_db
def test_a_shape_that_the_file_declares_wrong_is_a_warning(
    verified: Upload, with_triton: Any, people: People, client: Client
) -> None:
    version = verified(declared_otherwise())

    assert (version.state, version.state_reason) == (VersionState.READY, "")
    assert step(version)["ok"] is False
    assert "387 is FP32 [64, 1, 16], and FP32 [1, -1] in the signature" in step(version)["detail"]
    client.force_login(people.viewer)
    text = page(client.get(f"/vision/models/{version.model.name}/{version.number}")).text
    assert "answers FP32 [64, 1, 16]" in text


@pytest.mark.django_db
@pytest.mark.parametrize(
    "content",
    [
        fixed_input(1, 3, 64, 224, 224),
        fixed_input(1, 3, 2160, 3840, element=TensorProto.UINT8),
        fixed_input(16, 1024, 1024, element=TensorProto.INT64, extra=2),
    ],
    ids=["video", "4K", "integers"],
)
def test_inputs_that_are_too_large_to_generate_are_inconclusive(
    verified: Upload, with_triton: Any, content: bytes
) -> None:
    version = verified(content)

    assert (version.state, version.state_reason) == (VersionState.READY, "")
    assert step(version)["ok"] is None
    assert step(version)["detail"].startswith(
        "inconclusive: its inputs are larger than the 64 MiB that are generated; loaded in "
    )
    result = results.read_load_test(version.signature)
    assert result is not None
    assert result.outcome is LoadOutcome.NO_REQUEST


@pytest.mark.django_db
def test_numbers_that_are_indices_are_answered(verified: Upload, with_triton: Any) -> None:
    """A table of one row, whose row number travels as a float."""
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [4])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [4, 2])
    nodes = [
        helper.make_node("Mul", ["x", "many"], ["larger"]),
        helper.make_node("Cast", ["larger"], ["index"], to=TensorProto.INT64),
        helper.make_node("Gather", ["table", "index"], ["y"]),
    ]
    tensors = [
        numpy_helper.from_array(np.ones((1, 2), np.float32), "table"),
        numpy_helper.from_array(np.float32(1000), "many"),
    ]
    graph = helper.make_graph(nodes, "g", [x], [y], tensors)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)

    version = verified(bytes(model.SerializeToString()))

    assert (version.state, step(version)["ok"]) == (VersionState.READY, True)


@pytest.mark.django_db
def test_a_forest_answers_a_sample_of_rows_as_its_own_library(
    verified: Upload, with_triton: Any, tmp_path: Path
) -> None:
    model = forest_models.xgboost_model(
        "classes", "m.json", tmp_path, objective="multi:softprob", num_class=4
    )

    version = verified(model.content, filename="m.json", head=model.content[:4096])

    assert (version.state, version.state_reason) == (VersionState.READY, "")
    assert "32 generated rows get the scores of XGBoost 3." in step(version)["detail"]
    result = results.read_load_test(version.signature)
    assert result is not None
    assert result.sample_answers == ""


@pytest.mark.django_db
def test_a_triton_that_answers_otherwise_fails_the_version_with_a_row(
    verified: Upload, with_triton: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a backend that compares other than the library: here, of a program that changes an answer."""
    real = load_test.run

    def run(*args: Any, **options: Any) -> LoadTest:
        result = real(*args, **options)
        answers = np.frombuffer(base64.b64decode(result.sample_answers), "<f4").copy()
        answers[3] += 0.01
        return replace(result, sample_answers=base64.b64encode(answers.tobytes()).decode())

    monkeypatch.setattr(load_test, "run", run)
    model = forest_models.xgboost_model("b", "m.json", tmp_path, objective="binary:logistic")

    version = verified(model.content, filename="m.json", head=model.content[:4096])

    assert version.state == VersionState.FAILED
    assert "its answers differ from XGBoost 3." in version.state_reason
    assert "1 of 32 generated rows get other scores: a row of (" in version.state_reason
    assert step(version)["ok"] is False


@pytest.mark.parametrize("answer", ["", "AAAA", "not base64", base64.b64encode(bytes(12)).decode()])
def test_answers_of_another_form_are_a_difference(answer: str) -> None:
    rows = np.zeros((4, 2), np.float32)
    sample = comparison.keep_sample(rows, np.ones((4, 1)), tolerance=1e-5, library="XGBoost")
    assert sample is not None

    assert sample.describe_difference(answer)
    assert sample.describe_difference(sample.answers) == ""
