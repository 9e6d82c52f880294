"""An ONNX model with its weights in files beside the graph: read, loaded, laid out, and served by a real Triton."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
import tritonclient.http as triton_http
from hypothesis import given
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper

from deployments.registry.domain import onnx as onnx_reader
from deployments.registry.domain.formats import catalogue
from deployments.registry.domain.not_servable import NotServable
from deployments.states import VersionState
from tests.artifacts import MemoryArtifact
from tests.deployments import real_triton
from tests.deployments.uploading import Upload

Files = dict[str, bytes]
WIDTH = 64


def build(*, location: str = "weights/model.data", **fields: str) -> tuple[bytes, bytes]:
    """The graph y = x w + b and the bytes of w and b; `fields` are those of w's external data."""
    generator = np.random.default_rng(7)
    weights = generator.normal(size=(WIDTH, WIDTH)).astype(np.float32)
    bias = generator.normal(size=WIDTH).astype(np.float32)
    data = weights.tobytes() + bias.tobytes()
    w, b = numpy_helper.from_array(weights, "w"), numpy_helper.from_array(bias, "b")
    stated = {"offset": "0", "length": str(weights.nbytes), **fields}
    _make_external(w, location, stated)
    _make_external(b, location, {"offset": str(weights.nbytes), "length": str(bias.nbytes)})
    rows = [helper.make_tensor_value_info(n, TensorProto.FLOAT, ["n", WIDTH]) for n in ("x", "y")]
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["p"]),
        helper.make_node("Add", ["p", "b"], ["y"]),
    ]
    graph = helper.make_graph(nodes, "linear", rows[:1], rows[1:], [w, b])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    return model.SerializeToString(), data


def _make_external(tensor: Any, location: str, fields: dict[str, str]) -> None:
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value=location)
    for key, value in fields.items():
        tensor.external_data.add(key=key, value=value)


def folder(**fields: str) -> Files:
    graph, data = build(**fields)
    return {"net/graph.onnx": graph, "net/weights/model.data": data, "net/README.md": b"# linear"}


def read(graph: bytes, files: dict[str, int], tmp_path: Path) -> Any:
    path = tmp_path / "graph.onnx"
    path.write_bytes(graph)
    return onnx_reader.read(path, files)


@pytest.mark.django_db
def test_it_is_laid_out_under_its_relative_names(verified: Upload, s3_store: Any) -> None:
    files = folder()

    version = verified(files, model="linear")

    assert (version.state, version.state_reason, version.format) == (VersionState.READY, "", "onnx")
    prefix = version.repository_prefix
    objects = {
        item["key"].removeprefix(prefix): b"".join(s3_store.read(item["key"], item["version_id"]))
        for item in version.laid_out
    }
    assert objects == {
        "linear/1/model.onnx": files["net/graph.onnx"],
        "linear/1/weights/model.data": files["net/weights/model.data"],
        "linear/config.pbtxt": version.config_pbtxt.encode(),
    }
    details = {row["name"]: row["detail"] for row in version.checks}
    assert details["Inputs and outputs"] == (
        "1 in, 1 out, dynamic batch dimension, 4,160 parameters, weights in 1 file of 16,640 bytes"
    )
    assert details["Batching"].startswith("up to 32")
    # 4,160 numbers with 32 bits are 1 MiB, as are the tensors; the runtime has 450.
    assert version.signature["vram_parts_mib"]["weights"] == 1
    assert version.vram_estimate_mib == 464


@pytest.mark.django_db
def test_triton_answers_as_onnx_runtime_does(
    verified: Upload, s3_store: Any, tmp_path: Path
) -> None:
    files = folder()
    version = verified(files, model="linear")
    for item in version.laid_out:
        target = tmp_path / "models" / item["key"].removeprefix(version.repository_prefix)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(b"".join(s3_store.read(item["key"], item["version_id"])))
    rows = np.random.default_rng(1).normal(size=(9, WIDTH)).astype(np.float32)
    child, port = real_triton.start(tmp_path)
    try:
        client = triton_http.InferenceServerClient(f"127.0.0.1:{port}")
        x = triton_http.InferInput("x", list(rows.shape), "FP32")
        x.set_data_from_numpy(rows)
        answer = client.infer("linear", [x]).as_numpy("y")
        client.close()
    finally:
        child.kill()

    for path, content in files.items():
        local = tmp_path / "direct" / path
        local.parent.mkdir(parents=True, exist_ok=True)
        local.write_bytes(content)
    session = onnxruntime.InferenceSession(str(tmp_path / "direct" / "net" / "graph.onnx"))
    np.testing.assert_allclose(answer, session.run(None, {"x": rows})[0], rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(
    "location",
    [
        "../model.data",
        "weights/../../model.data",
        "/etc/passwd",
        "//etc/passwd",
        "C:/model.data",
        "..\\model.data",
        "",
        "weights//model.data",
    ],
)
def test_a_location_outside_the_folder_is_refused(location: str, tmp_path: Path) -> None:
    graph, data = build(location=location)

    with pytest.raises(NotServable, match="is not inside the folder of the model"):
        read(graph, {"model.data": len(data), "weights/model.data": len(data)}, tmp_path)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"offset": "-4"}, "not a position"),
        ({"offset": "1e3"}, "not a position"),
        ({"length": "-1"}, "not a position"),
        ({"length": "9" * 40}, "not a position"),
        ({"offset": "16640"}, "which has 16,640"),
        ({"length": "16641"}, "ends at byte 16,641"),
        ({"offset": "99999999999"}, "damaged or cut off"),
    ],
)
def test_bytes_behind_the_end_of_the_file_are_refused(
    fields: dict[str, str], message: str, tmp_path: Path
) -> None:
    graph, data = build(**fields)

    with pytest.raises(NotServable, match=message):
        read(graph, {"weights/model.data": len(data)}, tmp_path)


def test_a_missing_file_is_named_with_both_ways_out(tmp_path: Path) -> None:
    graph, _ = build()

    with pytest.raises(
        NotServable, match=r"“weights/model.data”.*Upload the whole folder, or save"
    ):
        read(graph, {}, tmp_path)


def test_a_location_that_is_stated_twice_is_refused(tmp_path: Path) -> None:
    model = onnx.load_model_from_string(build()[0])
    model.graph.initializer[0].external_data.add(key="location", value="/etc/passwd")

    with pytest.raises(NotServable, match="describes its file twice"):
        read(model.SerializeToString(), {"weights/model.data": 16640}, tmp_path)


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        ({"net/weights/model.data": b"cut"}, "cut off"),
        ({"net/weights/model.data": bytes(16639)}, "cut off"),
        (
            {"net/graph.onnx": build(location="model.onnx")[0], "net/model.onnx.txt": b""},
            "“model.onnx”",
        ),
        ({"net/graph.onnx": build(length="16380")[0]}, "ONNX Runtime"),
    ],
)
def test_a_damaged_folder_fails_and_nothing_is_laid_out(
    verified: Upload, spoil: Files, reason: str
) -> None:
    version = verified({**folder(), **spoil}, model="linear")

    assert version.state == VersionState.FAILED
    assert reason in version.state_reason
    assert (version.laid_out, version.repository_prefix) == ([], "")


@given(data=st.data())
def test_a_damaged_graph_never_names_a_file_outside(
    data: st.DataObject, tmp_path_factory: Any
) -> None:
    graph, weights = build()
    content = bytearray(graph)
    for _ in range(data.draw(st.integers(1, 6))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    cut = data.draw(st.integers(1, len(content)))
    files = {"weights/model.data": len(weights)}

    try:
        facts = read(bytes(content[:cut]), files, tmp_path_factory.mktemp("graph"))
    except NotServable:
        return
    assert set(facts.external_files) <= set(files)


def test_two_graphs_or_a_configuration_are_another_format() -> None:
    graph, weights = build()
    for more in ({"decoder.onnx": graph}, {"config.pbtxt": b""}):
        files = {"graph.onnx": graph, "model.data": weights, **more}
        artifact = MemoryArtifact(files, {path: len(body) for path, body in files.items()})
        assert catalogue.detect(artifact).format.key != "onnx"
