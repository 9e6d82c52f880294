"""A SavedModel of TensorFlow becomes a version for Triton's OpenVINO backend, read without TensorFlow."""

from __future__ import annotations

import contextlib
import io
import random
from collections.abc import Mapping
from typing import Any

import pytest
from tritonclient.grpc import model_config_pb2

from deployments.registry.domain import triton_config
from deployments.registry.domain.formats import catalogue
from deployments.registry.domain.formats.format import Context, Inspection
from deployments.registry.domain.formats.saved_model import SAVED_MODEL
from deployments.registry.domain.not_servable import NotServable
from deployments.registry.domain.saved_model import reading
from deployments.registry.domain.saved_model.wire import Malformed, WireMessage
from deployments.registry.domain.scanning import rules
from deployments.spec.domain.model_settings import ModelSettings
from deployments.spec.domain.triton_settings import Instances, TritonSettings
from deployments.states import VersionState
from tests.artifacts import MemoryArtifact
from tests.deployments.uploading import People, Upload
from tests.fixtures import exported

FILES = exported.files_of("saved_model")
SHARD = "variables/variables.data-00000-of-00001"


def artifact_of(files: Mapping[str, bytes]) -> MemoryArtifact:
    return MemoryArtifact(files, {path: len(body) for path, body in files.items()})


def read(files: Mapping[str, bytes], main: str = "saved_model.pb") -> dict[str, Any]:
    return reading.read({"main": main}, artifact_of(files))


def inspect(files: Mapping[str, bytes]) -> Inspection:
    context = Context(model="rows", main="saved_model.pb", paths=tuple(files), max_batch_size=32)
    assert SAVED_MODEL.reading is not None
    return SAVED_MODEL.reading.conclude(read(files), context)


# Messages of protobuf, written by hand.
def field(number: int, body: bytes) -> bytes:
    return varint(number << 3 | 2) + varint(len(body)) + body


def number(place: int, value: int) -> bytes:
    return varint(place << 3) + varint(value % 2**64)


def varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def tensor(dtype: int = 1, dims: tuple[int, ...] | None = (-1, 4), extra: bytes = b"") -> bytes:
    shape = number(3, 1) if dims is None else b"".join(field(2, number(1, d)) for d in dims)
    return field(1, b"x:0") + number(2, dtype) + field(3, shape) + extra


def model(
    info: bytes, *, name: str = "x", signature: str = "serving_default", tag: str = "serve"
) -> bytes:
    entry = field(1, name.encode()) + field(2, info)
    good = field(1, b"y") + field(2, tensor(dims=(-1, 1)))
    body = field(1, signature.encode()) + field(2, field(1, entry) + field(2, good))
    return number(1, 1) + field(2, field(1, field(4, tag.encode())) + field(5, body))


def test_signature_and_sizes_are_those_that_tensorflow_wrote() -> None:
    assert read(FILES) == {
        "inputs": (
            {"name": "rows", "dtype": "FP32", "dims": (-1, 4)},
            {"name": "scale", "dtype": "FP32", "dims": (-1, 1)},
        ),
        "outputs": (
            {"name": "best", "dtype": "INT64", "dims": (-1, 1)},
            {"name": "scores", "dtype": "FP32", "dims": (-1, 3)},
        ),
        "tensorflow": "2.21.0",
        "graph_bytes": len(FILES["saved_model.pb"]),
        "variables_bytes": len(FILES[SHARD]),
        "parameters": 15,
    }


def variable(*dims: int, dtype: int = 1, op: str = "VarHandleOp") -> bytes:
    """A node of a graph."""
    shape = b"".join(field(2, number(1, dim)) for dim in dims)
    attributes = {"dtype": number(6, dtype), "shape": field(7, shape)}
    entries = (field(1, key.encode()) + field(2, value) for key, value in attributes.items())
    return field(1, field(2, op.encode()) + b"".join(field(5, entry) for entry in entries))


@pytest.mark.parametrize(
    ("nodes", "parameters"),
    [
        ([], 0),
        ([variable(4, 3), variable(3), variable()], 16),
        ([variable(4, dtype=9), variable(4, op="Const"), variable(4, dtype=19)], 4),
        ([variable(4), variable(-1, 3)], None),
        ([variable(2**31, 2**31)], None),
        ([field(1, field(2, b"VarHandleOp"))], 0),
        (
            [
                field(
                    1,
                    field(2, b"VarHandleOp")
                    + field(5, field(1, b"dtype") + field(2, number(6, 1))),
                )
            ],
            None,
        ),
    ],
)
def test_parameters_are_the_elements_of_floating_point_variables(
    nodes: list[bytes], parameters: int | None
) -> None:
    graph = WireMessage(io.BytesIO(body := field(2, b"".join(nodes))), 0, len(body))

    assert reading._parameters(graph) == parameters


def test_triton_gets_the_folder_as_its_openvino_backend_wants_it() -> None:
    inspection = inspect({**FILES, "keras_metadata.pb": b"x", "assets/words.txt": b"a"})

    assert sorted(inspection.layout) == [
        "rows/1/model.saved_model/assets/words.txt",
        "rows/1/model.saved_model/fingerprint.pb",
        "rows/1/model.saved_model/saved_model.pb",
        f"rows/1/model.saved_model/{SHARD}",
        "rows/1/model.saved_model/variables/variables.index",
    ]
    config = triton_config.parse(triton_config.render(model="rows", signature=inspection.signature))
    assert (config.backend, config.max_batch_size) == ("openvino", 0)
    assert config.default_model_filename == "model.saved_model"
    assert [list(entry.dims) for entry in config.input] == [[-1, 4], [-1, 1]]
    cpu = model_config_pb2.ModelInstanceGroup.KIND_CPU
    assert [group.kind for group in config.instance_group] == [cpu]
    assert inspection.estimate.total_mib == 0
    assert inspection.signature.facts["parameter_count"] == 15


def test_no_setting_puts_it_on_a_gpu() -> None:
    signature = inspect(FILES).signature
    settings = ModelSettings(triton=TritonSettings(instances=Instances(kind="gpu", gpus=(1,))))

    assert "runs on the CPU only" in triton_config.problem_with(signature, settings)
    assert "KIND_GPU" not in triton_config.render(model="rows", signature=signature, spec=settings)
    assert triton_config.problem_with(signature, ModelSettings()) == ""


@pytest.mark.django_db
def test_the_folder_becomes_a_version(verified: Upload, people: People) -> None:
    version = verified({f"exported/{path}": body for path, body in FILES.items()}, model="rows")

    assert (version.state, version.state_reason) == (VersionState.READY, "")
    assert (version.format, version.vram_estimate_mib) == ("saved_model", 0)
    assert 'default_model_filename: "model.saved_model"' in version.config_pbtxt


@pytest.mark.django_db
def test_a_graph_that_reads_files_of_the_server_waits_for_a_release(verified: Upload) -> None:
    version = verified(exported.files_of("reads_files"), model="rows")

    assert version.state == VersionState.QUARANTINED
    assert "the operation ReadFile of TensorFlow" in version.state_reason
    assert version.repository_prefix == ""


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (model(tensor(dtype=7)), "“x” has strings"),
        (model(tensor(dtype=2)), "“x” has 64-bit floats"),
        (model(tensor(dtype=99)), "TensorFlow's type 99"),
        (model(tensor(dims=None)), "“x” has no rank"),
        (model(tensor(dims=())), "“x” is a scalar"),
        (model(tensor(dims=(-5,))), "the dimension -5"),
        (model(tensor(dims=(2**62,))), "the dimension 4,611,686,018,427,387,904"),
        (model(tensor(extra=field(4, b""))), "sparse or ragged"),
        (model(tensor(), name="a\0b"), "Use 1 to 200 printable"),
        (model(tensor(), signature="other"), "no signature serving_default, but “other”"),
        (model(tensor(), tag="train"), "no graph with the tag “serve” alone, but “train”"),
        (number(1, 1), "but no graph"),
        (field(2, b"\xff"), "damaged or cut off"),
    ],
)
def test_what_cannot_be_served_says_why(body: bytes, message: str) -> None:
    with pytest.raises(NotServable) as refusal:
        read({"saved_model.pb": body})

    assert message in str(refusal.value)


@pytest.mark.parametrize("missing", [SHARD, "variables/variables.index"])
def test_a_folder_without_its_variables_is_refused(missing: str) -> None:
    with pytest.raises(NotServable, match=r"variables\.\S+ is missing"):
        read({path: body for path, body in FILES.items() if path != missing})


def test_a_missing_shard_is_named() -> None:
    body = FILES[SHARD]
    files = {path: content for path, content in FILES.items() if path != SHARD}
    for shard in (0, 2):
        files[f"variables/variables.data-{shard:05}-of-00003"] = body

    with pytest.raises(NotServable, match="data-00001-of-00003 is missing"):
        read(files)


def test_any_damage_is_read_or_refused_and_never_breaks_reader_or_scanner() -> None:
    chance, whole = random.Random(11), FILES["saved_model.pb"]
    for _ in range(120):
        damaged = bytearray(whole[: chance.randrange(1, len(whole) + 1)])
        for _ in range(chance.randrange(6)):
            damaged[chance.randrange(len(damaged))] = chance.randrange(256)
        files = {**FILES, "saved_model.pb": bytes(damaged)}
        with contextlib.suppress(NotServable):
            assert read(files)["inputs"]
        findings = rules.scan(
            io.BytesIO(damaged), size=len(damaged), name="saved_model.pb", is_pickle=False
        )
        assert not findings.names or findings.names == ["saved_model.pb, whose name promises data"]


def test_a_message_that_repeats_itself_ends() -> None:
    body = field(2, b"\x0a\x00" * 3_000_000)
    message = WireMessage(io.BytesIO(body), 0, len(body))
    message.budget.fields = 1000

    (graph,) = message.messages(2)
    with pytest.raises(Malformed, match="too many fields"):
        list(graph.fields())


@pytest.mark.parametrize(
    ("files", "kind"),
    [
        ({"model.pb": FILES["saved_model.pb"]}, "onnx"),
        ({"saved_model.pb": b"hello"}, "unknown"),
        ({"a/saved_model.pb": FILES["saved_model.pb"], "b": b""}, "unknown_folder"),
        ({"model.onnx": FILES["saved_model.pb"], "saved_model.pb": b"x"}, "onnx"),
    ],
)
def test_the_name_alone_makes_no_saved_model(files: dict[str, bytes], kind: str) -> None:
    assert catalogue.detect(artifact_of(files)).format.key == kind
