"""TorchScript and TensorRT plans do not state their tensors: the uploader declares them, and the page says so."""

from __future__ import annotations

import contextlib
import io
import random
import struct
import zipfile
from dataclasses import replace
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from deployments.registry.domain import triton_config
from deployments.registry.domain.formats import catalogue, tensorrt, torchscript
from deployments.registry.domain.formats.format import Context, Format, Inspection
from deployments.registry.domain.not_servable import NeedsDeclaration, NotServable
from deployments.registry.domain.signatures import Tensor
from deployments.registry.domain.torchscript import reading
from deployments.registry.services import declarations, verification, versions
from deployments.spec.domain.model_settings import ModelSettings
from deployments.spec.domain.triton_settings import Instances, TritonSettings
from deployments.states import VersionState
from portal.core.errors import Conflict, Invalid
from tests.artifacts import MemoryArtifact
from tests.deployments.uploading import People, Upload
from tests.fixtures import exported
from tests.page import page

SCRIPT = exported.files_of("torchscript")["rows.pt"]
PLAN = b"ftrt" + bytes(20) + bytes([10, 13, 3, 9]) + bytes(4000)
INPUTS = (Tensor("rows", "FP32", (-1, 4)), Tensor("scale", "FP32", (-1, 1)))
OUTPUTS = (Tensor("scores", "FP32", (-1, 3)), Tensor("best", "INT64", (-1, 1)))
CONTEXT = Context(
    model="rows", main="m", paths=("m",), max_batch_size=16, inputs=INPUTS, outputs=OUTPUTS
)
DECLARED: dict[str, Any] = {
    "supports_batching": None,
    "max_batch_size": 16,
    "largest_inputs": {},
    "inputs": [tensor.to_json() for tensor in INPUTS],
    "outputs": [tensor.to_json() for tensor in OUTPUTS],
}


def artifact_of(body: bytes) -> MemoryArtifact:
    return MemoryArtifact({"m": body}, {"m": len(body)})


def facts_of(body: bytes = SCRIPT) -> dict[str, Any]:
    return reading.read({"main": "m"}, artifact_of(body))


def conclude(kind: Format, facts: dict[str, Any], context: Context) -> Inspection:
    assert kind.reading is not None
    return kind.reading.conclude(facts, context)


def rezipped(changes: dict[str, bytes | None]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(SCRIPT)) as old, zipfile.ZipFile(out, "w") as new:
        members = {name: old.read(name) for name in old.namelist()} | changes
        for name, body in members.items():
            if body is not None:
                new.writestr(name, body)
    return out.getvalue()


def test_the_arguments_of_forward_are_read_from_what_pytorch_wrote() -> None:
    assert facts_of() == {
        "arguments": [{"name": "rows", "type": "Tensor"}, {"name": "scale", "type": "Tensor"}],
        "defaults": 0,
        "returns": ["Tensor", "Tensor"],
        "weights_bytes": 60,
        "parameters": 15,
    }


def test_parameters_are_counted_once_and_unknown_where_the_archive_contradicts_itself() -> None:
    with zipfile.ZipFile(io.BytesIO(SCRIPT)) as archive:
        pickled = archive.read("rows/data.pkl")
    shared = pickled.replace(b"X\x01\0\0\0001", b"X\x01\0\0\0000")
    assert shared != pickled
    assert facts_of(rezipped({"rows/data.pkl": shared}))["parameters"] == 12
    # 255 elements in a file of 48 bytes; a file that is missing.
    larger = pickled.replace(b"K\x0ct", b"K\xfft")
    assert larger != pickled
    assert facts_of(rezipped({"rows/data.pkl": larger}))["parameters"] is None
    assert facts_of(rezipped({"rows/data/1": None}))["parameters"] is None
    assert (
        "parameter_count"
        not in conclude(
            torchscript.TORCHSCRIPT, facts_of(rezipped({"rows/data/1": None})), CONTEXT
        ).signature.facts
    )


def test_the_declaration_becomes_the_configuration_of_tritons_pytorch_backend() -> None:
    inspection = conclude(torchscript.TORCHSCRIPT, facts_of(), CONTEXT)

    assert inspection.layout == {"rows/1/model.pt": "m"}
    text = triton_config.render(model="rows", signature=inspection.signature)
    config = triton_config.parse(text)
    assert (config.backend, config.max_batch_size) == ("pytorch", 0)
    assert [(row.name, list(row.dims)) for row in config.input] == [
        ("rows", [-1, 4]),
        ("scale", [-1, 1]),
    ]
    assert [row.name for row in config.output] == ["scores", "best"]
    assert "KIND_GPU" in text
    assert "declared by the uploader" in inspection.details["Inputs and outputs"]


def test_rows_are_combined_only_where_that_is_declared() -> None:
    batched = conclude(
        torchscript.TORCHSCRIPT, facts_of(), replace(CONTEXT, supports_batching=True)
    )
    config = triton_config.parse(triton_config.render(model="m", signature=batched.signature))
    assert (config.max_batch_size, list(config.input[0].dims)) == (16, [4])

    fixed = replace(
        CONTEXT, supports_batching=True, outputs=(OUTPUTS[0], Tensor("best", "INT64", (1,)))
    )
    with pytest.raises(NeedsDeclaration, match="first dimension of “best” is not -1"):
        conclude(torchscript.TORCHSCRIPT, facts_of(), fixed)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"inputs": ()}, "forward(rows, scale) states no data types"),
        ({"outputs": ()}, "states no data types"),
        ({"inputs": INPUTS[:1]}, "1 inputs are declared, and forward takes 2: rows, scale"),
        ({"inputs": (INPUTS[0], replace(INPUTS[1], name="factor"))}, "are not the arguments"),
        (
            {"inputs": (replace(INPUTS[0], name="INPUT__1"), replace(INPUTS[1], name="INPUT__2"))},
            "or INPUT__0",
        ),
        (
            {"outputs": (*OUTPUTS, Tensor("z", "FP32", (1,)))},
            "3 outputs are declared, and forward returns 2",
        ),
        ({"outputs": (Tensor("z", "BF16", (1,)),)}, "has no BF16"),
    ],
)
def test_a_declaration_that_the_code_contradicts_is_required_again(
    change: dict[str, Any], message: str
) -> None:
    with pytest.raises(NeedsDeclaration) as need:
        conclude(torchscript.TORCHSCRIPT, facts_of(), replace(CONTEXT, **change))

    assert message in str(need.value)


def test_names_by_index_are_accepted() -> None:
    inputs = tuple(replace(row, name=f"INPUT__{n}") for n, row in enumerate(INPUTS))
    assert conclude(torchscript.TORCHSCRIPT, facts_of(), replace(CONTEXT, inputs=inputs))


CODE = "rows/code/__torch__.py"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({CODE: None}, "has no rows/code/__torch__.py"),
        ({CODE: b"class Rows(Module:"}, "cannot be parsed"),
        ({CODE: b"class Rows(Module):\n  x : int\n"}, "has no method forward"),
        ({"rows/data.pkl": b"\x80\x02}."}, "holds no module of TorchScript"),
        ({"rows/data.pkl": None}, "no readable data.pkl"),
    ],
)
def test_a_broken_archive_says_what_is_missing(
    changes: dict[str, bytes | None], message: str
) -> None:
    with pytest.raises(NotServable, match=message):
        facts_of(rezipped(changes))


def test_an_argument_that_is_no_tensor_is_refused() -> None:
    code = b"class Rows(Module):\n  def forward(self: Rows, rows: List[Tensor]) -> Tensor:\n    return rows\n"
    with pytest.raises(NotServable, match=r"“rows” of forward is “List\[Tensor\]”"):
        conclude(torchscript.TORCHSCRIPT, facts_of(rezipped({CODE: code})), CONTEXT)


def test_any_damage_is_read_or_refused() -> None:
    chance = random.Random(3)
    for _ in range(150):
        damaged = bytearray(SCRIPT[: chance.randrange(30, len(SCRIPT) + 1)])
        for _ in range(chance.randrange(6)):
            damaged[chance.randrange(len(damaged))] = chance.randrange(256)
        with contextlib.suppress(NotServable):
            assert facts_of(bytes(damaged))["arguments"]


@pytest.mark.django_db
def test_an_upload_waits_for_its_declaration_and_then_becomes_ready(
    people: People, verified: Upload
) -> None:
    version = verified(SCRIPT, filename="rows.pt", model="rows")

    assert (version.state, version.format) == (VersionState.QUARANTINED, "torchscript")
    assert "Declare inputs and outputs" in version.state_reason
    assert version.repository_prefix == ""
    with pytest.raises(Conflict, match="Declare them first"):
        versions.release(actor=people.admin, version_id=version.pk, reason="Ours.", days=1)

    client = Client()
    client.force_login(people.member)
    address = [version.team.slug, "rows", version.number]
    body = {
        "max_batch_size": "16",
        "inputs": "rows = FP32 -1 x 4\nscale = fp32 -1 x 1",
        "outputs": "scores = FP32 -1 x 3\nbest = INT64 -1 x 1",
    }
    assert client.post(reverse("version-declare", args=address), body).status_code == 302
    verification.advance(version.pk)

    version.refresh_from_db()
    assert (version.state, version.state_reason) == (VersionState.READY, "")
    assert "declared by the uploader" in page(client.get(reverse("version", args=address))).text
    assert version.declared["inputs"] == DECLARED["inputs"]


@pytest.mark.django_db
def test_a_declaration_with_the_upload_is_enough_and_a_wrong_one_can_be_corrected(
    people: People, verified: Upload
) -> None:
    wrong = {**DECLARED, "inputs": DECLARED["inputs"][:1]}
    version = verified(SCRIPT, filename="rows.pt", model="rows", declared=wrong)
    assert version.state == VersionState.QUARANTINED
    assert "forward takes 2" in version.state_reason

    declarations.declare(actor=people.member, version_id=version.pk, **DECLARED)
    verification.advance(version.pk)

    version.refresh_from_db()
    assert version.state == VersionState.READY
    other = verified(
        SCRIPT, filename="rows.pt", model="rows", declared=DECLARED, is_duplicate_allowed=True
    )
    assert other.state == VersionState.READY


@pytest.mark.django_db
def test_custom_operators_wait_for_a_release_after_which_it_is_served(
    people: People, verified: Upload
) -> None:
    code = (
        b"class Rows(Module):\n  def forward(self: Rows, rows: Tensor, scale: Tensor) -> Tuple[Tensor, Tensor]:\n"
        b"    return (ops.acme.run(rows), scale)\n"
    )
    version = verified(rezipped({CODE: code}), filename="rows.pt", model="rows", declared=DECLARED)
    assert version.state == VersionState.QUARANTINED
    assert "custom operators of acme" in version.state_reason

    versions.release(actor=people.admin, version_id=version.pk, reason="Ours.", days=1)
    verification.advance(version.pk)

    version.refresh_from_db()
    assert version.state == VersionState.READY


@pytest.mark.django_db
def test_a_plan_needs_its_tensors_and_the_gpu_that_it_was_built_for(
    people: People, verified: Upload
) -> None:
    version = verified(PLAN, filename="model.engine", model="rows", declared=DECLARED)
    assert version.state == VersionState.QUARANTINED
    assert "Built with TensorRT 10.13.3.9" in version.state_reason
    assert "does not say for which GPU" in version.state_reason

    declarations.declare(
        actor=people.member, version_id=version.pk, **DECLARED, compute_capability="8.6"
    )
    verification.advance(version.pk)

    version.refresh_from_db()
    assert version.state == VersionState.READY
    assert version.signature["compute_capability"] == "8.6"
    keys = [row["key"].removeprefix(version.repository_prefix) for row in version.laid_out]
    assert keys == ["rows/1/model.plan", "rows/config.pbtxt"]
    signature = triton_config.signature_of(triton_config.parse(version.config_pbtxt))
    assert [row.name for row in signature.outputs] == ["scores", "best"]


@pytest.mark.django_db
def test_a_file_that_states_its_tensors_takes_no_others(people: People, verified: Upload) -> None:
    version = verified(exported.files_of("saved_model"), model="rows")

    with pytest.raises(Invalid, match="states its inputs and outputs itself"):
        declarations.declare(actor=people.member, version_id=version.pk, **DECLARED)

    version.refresh_from_db()
    assert (version.state, version.declared) == (VersionState.READY, {})
    client = Client()
    client.force_login(people.member)
    shown = page(client.get(reverse("version", args=["vision", "rows", version.number]))).text
    assert "Format TensorFlow SavedModel" in shown
    assert "GPU memory none: runs on the CPU" in shown
    assert "Compute capability" not in shown


def test_a_plan_has_no_instances_on_the_cpu() -> None:
    facts = tensorrt.read({"main": "m"}, artifact_of(PLAN))
    context = replace(CONTEXT, compute_capability="8.6")
    signature = conclude(tensorrt.TENSORRT, facts, context).signature
    settings = ModelSettings(triton=TritonSettings(instances=Instances(kind="cpu")))

    assert "runs on a GPU only" in triton_config.problem_with(signature, settings)
    assert triton_config.problem_with(signature, ModelSettings()) == ""


def test_headers_that_say_less_are_taken_for_what_they_say() -> None:
    unknown = b"ftrt" + struct.pack("<I", 7) + bytes(40)
    assert tensorrt.read({"main": "m"}, artifact_of(unknown))["tensorrt"] == ""
    for length in range(4, 28):
        with pytest.raises(NotServable, match="cut off"):
            tensorrt.read({"main": "m"}, artifact_of(PLAN[:length]))
    metadata = b'{"stride": 32}'
    wrapped = struct.pack("<I", len(metadata)) + metadata + PLAN
    kinds = [
        catalogue.detect(artifact_of(body)).format.key for body in (PLAN, wrapped, wrapped[4:])
    ]
    assert kinds == ["tensorrt", "tensorrt_metadata", "unknown"]
