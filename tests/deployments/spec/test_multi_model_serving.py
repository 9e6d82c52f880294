"""Several models in one Triton: what a spec takes, what is laid out for it, what it becomes."""

from __future__ import annotations

from typing import Any

import pytest

from deployments.manifests.domain import revision
from deployments.manifests.domain.metadata import (
    AdditionalModelFiles,
    Manifest,
    ManifestContext,
    ServedRevision,
)
from deployments.manifests.domain.model_files import bucket_files
from deployments.manifests.domain.model_files.bucket_files import (
    AdditionalServingFiles,
    ServingFiles,
)
from deployments.registry.domain.signatures import Signature, Tensor
from deployments.sizing.domain import memory
from deployments.sizing.domain.memory import FileModel, MeasuredMemory
from deployments.spec.domain.serving_spec import AdditionalModel, ServingSpec
from portal.core.definitions import Rejected

_GOOD: dict[str, Any] = {"engine": "triton", "instance_type": "g5.xlarge"}
_OTHER = {"model": "classifier", "version": 3}
_CONTEXT = ManifestContext(
    "vision", "vision", "detector", 7, False, "gw", "gw", "triton:1", "storage:1"
)
_SIGNATURE = Signature(
    inputs=(Tensor("x", "FP32", (-1, 2)),),
    outputs=(Tensor("y", "FP32", (-1, 2)),),
    max_batch_size=32,
)


def test_a_spec_packs_no_other_model_by_default() -> None:
    spec = ServingSpec.from_json(_GOOD)

    assert spec.additional_models == ()
    assert ServingSpec.from_json(spec.to_json()) == spec


def test_additional_models_have_settings_of_their_own_and_survive_json() -> None:
    spec = ServingSpec.from_json(
        {**_GOOD, "additional_models": [{**_OTHER, "instances_per_gpu": 2}]}
    )

    assert spec.additional_models == (
        AdditionalModel(model="classifier", version=3, instances_per_gpu=2),
    )
    assert spec.additional_models[0].label == "classifier:3"
    assert ServingSpec.from_json(spec.to_json()) == spec


@pytest.mark.parametrize(
    ("changed", "field"),
    [
        ({"additional_models": {"model": "a", "version": 1}}, "additional_models"),
        ({"additional_models": [{"model": "classifier"}]}, "additional_models.0.version"),
        ({"additional_models": [{**_OTHER, "gpus": 1}]}, "additional_models.0.gpus"),
        ({"additional_models": [{**_OTHER, "version": "3"}]}, "additional_models.0.version"),
        (
            {"additional_models": [_OTHER, {"model": "../etc", "version": 1}]},
            "additional_models.1.model",
        ),
        ({"additional_models": [{**_OTHER, "version": 0}]}, "additional_models.0.version"),
        (
            {"additional_models": [{**_OTHER, "instances_per_gpu": 99}]},
            "additional_models.0.instances_per_gpu",
        ),
        ({"additional_models": [{**_OTHER, "precision": "int8"}]}, "additional_models.0.precision"),
        ({"additional_models": [_OTHER, {**_OTHER, "version": 4}]}, "additional_models"),
        (
            {"additional_models": [{"model": f"m{n}", "version": 1} for n in range(9)]},
            "additional_models",
        ),
        (
            {
                "additional_models": [_OTHER],
                "engine": "kserve-triton",
                "scaling": {"kind": "knative"},
            },
            "additional_models",
        ),
        (
            {
                "additional_models": [_OTHER],
                "engine": "kserve-triton",
                "storage": {"model_cache": "cluster"},
            },
            "additional_models",
        ),
        (
            {
                "additional_models": [_OTHER],
                "engine": "triton-vllm",
                "llm": {"hugging_face_id": "a/b"},
            },
            "additional_models",
        ),
    ],
)
def test_what_cannot_be_added_is_refused_at_its_field(changed: dict[str, Any], field: str) -> None:
    with pytest.raises(Rejected) as refusal:
        ServingSpec.from_json({**_GOOD, **changed})

    assert field in refusal.value.fields


def _files(spec: ServingSpec) -> ServingFiles:
    return bucket_files.plan(
        team="vision",
        model="detector",
        number=1,
        prefix="d/",
        signature=_SIGNATURE,
        spec=spec,
        additional_models=[
            AdditionalServingFiles("c/", _SIGNATURE, model) for model in spec.additional_models
        ],
    )


def test_settings_of_all_models_have_one_name_because_triton_takes_one() -> None:
    alone = ServingSpec.from_json({**_GOOD, "warm_up": True})
    default_spec = ServingSpec.from_json({**_GOOD, "warm_up": True, "additional_models": [_OTHER]})
    own = ServingSpec.from_json(
        {**_GOOD, "warm_up": True, "additional_models": [{**_OTHER, "warm_up": True}]}
    )
    name = _files(own).config_name

    # Triton loads config.pbtxt of a model that has none of that name.
    assert _files(default_spec) == _files(alone)
    assert list(_files(own).objects) == [
        f"d/detector/configs/{name}.pbtxt",
        f"c/classifier/configs/{name}.pbtxt",
    ]
    assert name != _files(alone).config_name
    assert _files(ServingSpec.from_json({**_GOOD, "additional_models": [_OTHER]})) == ServingFiles(
        "d/"
    )


def _made(engine: str) -> dict[str, Manifest]:
    spec = ServingSpec.from_json({**_GOOD, "engine": engine, "additional_models": [_OTHER]})
    other = AdditionalModelFiles(
        "classifier", "classifier:3", "cd" * 32, "s3://b/c/classifier/", 5000
    )
    served = ServedRevision(
        1,
        "detector",
        "detector:1",
        "ab" * 32,
        "s3://b/d/",
        spec,
        size_mib=100,
        additional_models=(other,),
    )
    return {manifest["kind"]: manifest for manifest in revision.build_own(_CONTEXT, served)}


_EXPLICIT = [
    "--model-control-mode=explicit",
    "--load-model=detector",
    "--load-model=classifier",
]


def test_plain_triton_fetches_each_model_into_its_place_and_loads_exactly_these() -> None:
    deployment = _made("triton")["Deployment"]
    pod = deployment["spec"]["template"]["spec"]
    server = pod["containers"][0]

    assert pod["initContainers"][0]["args"] == [
        "s3://b/d/detector/",
        "/mnt/models/detector",
        "s3://b/c/classifier/",
        "/mnt/models/classifier",
    ]
    assert server["args"][-3:] == _EXPLICIT
    assert server["startupProbe"]["failureThreshold"] * 5 == 285
    additional = deployment["metadata"]["annotations"]["slipway.dev/additional-models"]
    assert additional == f"classifier:3 {'cd' * 32}"


def test_under_kserve_the_same_init_containers_fetch_and_compare_them() -> None:
    predictor = _made("kserve-triton")["InferenceService"]["spec"]["predictor"]
    plain = _made("triton")["Deployment"]["spec"]["template"]["spec"]

    assert predictor["initContainers"] == plain["initContainers"]
    # Otherwise KServe would take it for its own multi-model serving.
    assert predictor["model"]["storageUri"] == "s3://b/d/"
    assert "storageUris" not in predictor
    assert predictor["model"]["args"][-3:] == _EXPLICIT


def test_memory_is_summed_with_one_runtime_and_a_sum_is_no_measurement() -> None:
    model = FileModel(weights_mib=100, activations_mib=20, runtime_mib=450)
    measured = memory.need_of_file(model, measured=MeasuredMemory(label="detector:1", mib=900))
    other = memory.need_of_file(model, instances=2)

    combined = memory.combine(measured, [("classifier:3", other)])

    assert [(term.name, term.mib) for term in combined.terms] == [
        ("Measured", 900),
        ("classifier:3", 240),
    ]
    assert (combined.mib_on(1), combined.is_measured) == (1152, False)
    assert combined.basis.startswith("2 models in one Triton, summed")
    assert memory.combine(measured, []) == measured
