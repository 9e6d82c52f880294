"""A warm-up by golden requests: what Triton runs, which requests a revision names, what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from deployments.changes.services import requests
from deployments.manifests.domain import triton_args
from deployments.manifests.domain.metadata import ServedRevision
from deployments.manifests.domain.model_files import bucket_files
from deployments.manifests.selectors import rendered
from deployments.manifests.services import serving_bytes
from deployments.models import ChangeRequest, Deployment, Model, ModelVersion, Revision
from deployments.quality.services import golden_requests
from deployments.registry.domain import object_keys, triton_config
from deployments.registry.domain.signatures import Backend, Signature, Tensor
from deployments.registry.domain.triton_config.warm_up_samples import sample_of
from deployments.spec.domain.model_settings import ModelSettings
from deployments.spec.domain.serving_spec import AdditionalModel, ServingSpec
from deployments.spec.domain.triton_settings import TritonSettings, WarmUpRequests
from portal.core.definitions import Rejected
from portal.core.errors import Invalid
from slipway_localcluster.controllers import model_repository
from tests import plain_http
from tests.deployments import golden_requests as golden
from tests.deployments import real_triton
from tests.deployments.canaries import STEPS
from tests.deployments.world import World

_GOLDEN = TritonSettings(warm_up=WarmUpRequests(data="golden"))
_SIGNATURE = Signature(
    inputs=(
        Tensor("x", "FP32", (-1, -1)),
        Tensor("count", "INT64", (-1, 2)),
        Tensor("word", "STRING", (-1, 1)),
    ),
    outputs=(Tensor("seen", "STRING", (-1, 1)),),
    max_batch_size=8,
    backend=Backend(name="python", model_file="model.py"),
)
# Answers with all that it was asked since it was loaded.
_RECORDS = b"""\
import json
import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def initialize(self, args):
        self.seen = []

    def execute(self, requests):
        answers = []
        for request in requests:
            tensors = {tensor.name(): tensor.as_numpy() for tensor in request.inputs()}
            self.seen.append({
                "together": len(requests),
                "x": tensors["x"].tolist(),
                "count": tensors["count"].tolist(),
                "word": [[word.decode() for word in row] for row in tensors["word"].tolist()],
            })
            text = np.array([[json.dumps(self.seen)]] * len(tensors["x"]), dtype=object)
            answers.append(pb_utils.InferenceResponse([pb_utils.Tensor("seen", text)]))
        return answers
"""


def request_of(rows: list[list[float]], words: list[str]) -> dict[str, Any]:
    count, width = len(rows), len(rows[0])
    flat = [value for row in rows for value in row]
    counts = [2**40, -1] * count
    return {
        "inputs": [
            {"name": "x", "datatype": "FP32", "shape": [count, width], "data": flat},
            {"name": "count", "datatype": "INT64", "shape": [count, 2], "data": counts},
            {"name": "word", "datatype": "BYTES", "shape": [count, 1], "data": words},
        ]
    }


def test_triton_has_run_the_golden_requests_before_the_first_of_a_client(tmp_path: Path) -> None:
    pytest.importorskip("pytriton")
    spec = ServingSpec(engine="triton", instance_type="g5.xlarge", warm_up=True, triton=_GOLDEN)
    samples = [
        sample_of("golden-1", request_of([[1.5, 2.5]], ["Grüße"]), _SIGNATURE),
        sample_of("golden-2", request_of([[7.0], [8.0]], ["", "b"]), _SIGNATURE),
    ]
    files = bucket_files.plan(
        team="vision",
        model="records",
        number=1,
        prefix="p/",
        signature=_SIGNATURE,
        spec=spec,
        golden=samples,
    )
    objects = {
        **files.objects,
        "p/records/1/model.py": _RECORDS,
        "p/records/config.pbtxt": triton_config.render(
            model="records", signature=_SIGNATURE
        ).encode(),
    }
    for key, body in objects.items():
        path = tmp_path / "models" / key.removeprefix("p/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(body)
    model_repository.prepare(tmp_path / "models")
    served = ServedRevision(1, "records", "records:1", "", "", spec, config_name=files.config_name)
    words = [*triton_args.command(), *triton_args.settings_of(served)]
    child, port = real_triton.start_with(tmp_path, tmp_path / "models", words)
    try:
        answer = plain_http.client.post(
            f"http://127.0.0.1:{port}/v2/models/records/infer", json=request_of([[9.0]], ["c"])
        ).json()
    finally:
        child.kill()

    seen = json.loads(answer["outputs"][0]["data"][0])
    by_size = sorted(seen, key=lambda request: len(request["x"][0]) + 10 * request["x"][0][0])
    # Two items run as one batch, of the first item twice.
    counts = [[2**40, -1]]
    first = {"together": 1, "x": [[1.5, 2.5]], "count": counts, "word": [["Grüße"]]}
    second = {"together": 2, "x": [[7.0]], "count": counts, "word": [[""]]}
    of_client = {"together": 1, "x": [[9.0]], "count": counts, "word": [["c"]]}
    assert by_size == [first, second, second, of_client]


@pytest.mark.parametrize(
    ("datatype", "values", "content"),
    [
        ("FP16", [0.5, -2.0], b"\x00\x38\x00\xc0"),
        ("BF16", [0.5, -2.0], b"\x00\x3f\x00\xc0"),
        ("BOOL", [True, False], b"\x01\x00"),
        ("UINT16", [1, 65535], b"\x01\x00\xff\xff"),
        ("BYTES", ["\u00e9", ""], b"\x02\x00\x00\x00\xc3\xa9\x00\x00\x00\x00"),
    ],
)
def test_values_are_written_as_triton_reads_them(
    datatype: str, values: list[Any], content: bytes
) -> None:
    request = {"inputs": [{"name": "x", "datatype": datatype, "shape": [2], "data": values}]}

    sample = sample_of("golden-1", request, Signature((), ()))

    assert (sample.batch_size, sample.inputs[0].dims, sample.inputs[0].content) == (
        0,
        (2,),
        content,
    )


def serving(world: World) -> Deployment:
    ModelVersion.objects.update(signature=golden.SIGNATURE)
    return world.serving(warm_up=True, triton=_GOLDEN)


def golden_ids_of(revision: Revision) -> list[int]:
    return list(revision.spec["triton"]["warm_up"]["golden_ids"])


def test_a_revision_keeps_the_golden_requests_of_the_day_it_was_requested(world: World) -> None:
    ModelVersion.objects.update(signature=golden.SIGNATURE)
    one, two = golden.save(world, "one", x=1.0), golden.save(world, "two", x=2.0)
    revision = serving(world).revisions.get()
    before = rendered.render_revision(revision).files
    golden.save(world, "one", x=5.0)
    golden_requests.retire(actor=world.member, golden_id=two.pk)

    after = rendered.render_revision(Revision.objects.get(pk=revision.pk)).files
    assert golden_ids_of(revision) == [one.pk, two.pk]
    assert after == before
    contents = [body for key, body in after.objects.items() if "/warmup/slipway-" in key]
    assert sorted(contents) == sorted(np.array([x], "<f4").tobytes() for x in (1.0, 2.0))
    stored = {key: b"".join(world.store.read(key, "")) for key in after.objects}
    assert stored == after.objects


def test_another_version_takes_the_golden_requests_of_its_own_day(world: World) -> None:
    ModelVersion.objects.update(signature=golden.SIGNATURE)
    golden.save(world, "one", x=1.0)
    deployment = serving(world)
    edited = golden.save(world, "one", x=5.0)

    change = requests.request_canary(
        actor=world.member,
        deployment_id=deployment.pk,
        version_id=world.version2.pk,
        steps=STEPS,
    )

    assert change.revision is not None
    assert golden_ids_of(change.revision) == [edited.pk]


def test_a_model_without_golden_requests_is_refused_with_the_fix(world: World) -> None:
    with pytest.raises(Invalid) as refusal:
        serving(world)

    message = refusal.value.fields["triton.warm_up.data"]
    assert "vision/detector has no golden requests to warm up with. Save one" in message
    assert ChangeRequest.objects.count() == Deployment.objects.count() == 0


def test_golden_requests_of_another_model_are_refused(world: World) -> None:
    ModelVersion.objects.update(signature=golden.SIGNATURE)
    own, foreign = golden.save(world, "one"), golden.save(world, "two")
    other = Model.objects.create(
        team=world.team,
        name="other",
        created_by=world.member,
        created_at=foreign.created_at,
        changed_at=foreign.created_at,
    )
    type(foreign).objects.filter(pk=foreign.pk).update(model=other)
    warm_up = WarmUpRequests(data="golden", golden_ids=(own.pk, foreign.pk))

    with pytest.raises(Invalid) as refusal:
        world.serving(warm_up=True, triton=TritonSettings(warm_up=warm_up))

    message = refusal.value.fields["triton.warm_up.golden_ids"]
    assert message.startswith(f"vision/detector has no golden request {foreign.pk}.")
    assert Deployment.objects.count() == 0


@pytest.mark.parametrize(
    ("fields", "place"),
    [
        ({"data": "golden", "shapes": ("x=2",)}, "triton.warm_up.shapes"),
        ({"data": "golden", "batch_sizes": (4,)}, "triton.warm_up.batch_sizes"),
        ({"data": "zeros", "golden_ids": (1,)}, "triton.warm_up.golden_ids"),
    ],
)
def test_settings_that_contradict_golden_requests_are_refused(
    fields: dict[str, Any], place: str
) -> None:
    triton = TritonSettings(warm_up=WarmUpRequests(**fields))

    with pytest.raises(Rejected) as refusal:
        ServingSpec(engine="triton", instance_type="g5.xlarge", warm_up=True, triton=triton)

    assert set(refusal.value.fields) == {place}


def test_additional_models_have_no_golden_requests() -> None:
    additional = AdditionalModel(model="tens", version=1, warm_up=True, triton=_GOLDEN)

    with pytest.raises(Rejected) as refusal:
        ServingSpec(engine="triton", instance_type="g5.xlarge", additional_models=(additional,))

    assert "first model only" in refusal.value.fields["additional_models"]


def test_the_text_beside_the_form_reads_as_the_same_settings() -> None:
    warm_up = WarmUpRequests(data="golden", golden_ids=(3, 7), count=2)
    settings = ModelSettings(warm_up=True, triton=TritonSettings(warm_up=warm_up))
    text = triton_config.render(model="m", signature=_SIGNATURE, spec=settings)

    reading = triton_config.read(text, model="m", signature=_SIGNATURE, base=settings)

    assert (reading.settings, reading.problems) == (settings, ())
    assert triton_config.warnings_of(_SIGNATURE, settings) == []


def test_only_files_of_settings_are_no_part_of_the_version() -> None:
    def is_of_settings(key: str) -> bool:
        return object_keys.is_settings_key("p/", "m", key)

    assert is_of_settings("p/m/warmup/slipway-0123")
    assert is_of_settings("p/m/configs/slipway-0123.pbtxt")
    others = (
        "p/m/warmup/cat",
        "p/m/warmup/slipway-1/x",
        "p/m/configs/slipway-1",
        "p/n/warmup/slipway-1",
    )
    assert [key for key in others if is_of_settings(key)] == []


def test_data_that_was_overwritten_in_the_bucket_is_found(world: World) -> None:
    ModelVersion.objects.update(signature=golden.SIGNATURE)
    golden.save(world, "one", x=1.0)
    revision = serving(world).revisions.get()
    found = rendered.render_revision(revision)
    [key] = [key for key in found.files.objects if "/warmup/" in key]
    world.store.put(key, b"evil", content_type="application/octet-stream")

    differences = serving_bytes.compare_revision(found, serving_bytes.Bucket(), is_laid_out=True)

    assert f"{key} was overwritten" in differences
