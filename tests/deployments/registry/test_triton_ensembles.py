"""An ensemble is checked against the models that it names, by Triton's rules."""

from __future__ import annotations

from typing import Any

import pytest

from deployments.registry.domain.not_servable import NotServable
from deployments.registry.domain.triton_repository import reading
from tests.artifacts import MemoryArtifact
from tests.fixtures import triton_repositories as repositories


def read(files: dict[str, bytes], model: str = "classes") -> dict[str, Any]:
    artifact = MemoryArtifact(files, {path: len(body) for path, body in files.items()})
    return reading.read({"model": model}, artifact)


def with_change(old: str, new: str, path: str = "models/pipeline/config.pbtxt") -> dict[str, bytes]:
    files = repositories.ensemble()
    assert old in files[path].decode()
    return files | {path: files[path].decode().replace(old, new, 1).encode()}


def test_the_ensemble_is_served_with_its_models() -> None:
    facts = read(repositories.ensemble())

    assert [(model["name"], model["versions"]) for model in facts["models"]] == [
        ("pipeline", [1]),
        ("center", [1]),
        ("score", [2]),
    ]
    assert facts["outside"] == ["models/README.md"]
    assert facts["signature"]["backend"]["name"] == "ensemble"
    assert [tensor["dims"] for tensor in facts["signature"]["inputs"]] == [[-1, 4]]


def _in_a_circle() -> dict[str, bytes]:
    """Scores go back into the first step, which takes three of them."""
    files = with_change(
        'input_map { key: "raw" value: "raw" }', 'input_map { key: "raw" value: "scores" }'
    )
    path = "models/center/config.pbtxt"
    return files | {
        path: files[path].replace(
            b'"raw" data_type: TYPE_FP32 dims: [ 4 ]', b'"raw" data_type: TYPE_FP32 dims: [ 3 ]'
        )
    }


SCORE = "models/score/config.pbtxt"
REFUSED = {
    "a missing model": (
        with_change('model_name: "score"', 'model_name: "scorer"'),
        "Ensemble pipeline: its step names the model “scorer”, which is not in the repository. Add it, "
        "or name one of center, pipeline, score.",
    ),
    "a version that is not served": (
        with_change("model_version: -1", "model_version: 7"),
        "its step names version 7 of center, which is not served.",
    ),
    "an unknown input": (
        with_change('key: "raw"', 'key: "rows"'),
        "its input_map names “rows”, and center has no such input. It has raw.",
    ),
    "an unknown output": (
        with_change('output_map { key: "centered"', 'output_map { key: "center"'),
        "its output_map names “center”, and center has no such output. It has centered.",
    ),
    "a tensor that nothing writes": (
        with_change(
            'input_map { key: "features" value: "rows" }',
            'input_map { key: "features" value: "row" }',
        ),
        "nothing writes the tensor “row”, which score (features) reads.",
    ),
    "a tensor that is written twice": (
        with_change(
            'output_map { key: "scores" value: "scores" }',
            'output_map { key: "scores" value: "rows" }',
        ),
        "the tensor “rows” is written by center and by score.",
    ),
    "another data type": (
        with_change('features" data_type: TYPE_FP32', 'features" data_type: TYPE_FP16', SCORE),
        "the tensor “rows” is FP32 from center and FP16 for score (features).",
    ),
    "other dimensions": (
        with_change("dims: [ 4 ]", "dims: [ 5 ]", SCORE),
        "the tensor “rows” has the dims [-1, 4] from center and [-1, 5] for score (features)",
    ),
    "a larger batch": (
        with_change("max_batch_size: 8", "max_batch_size: 4", SCORE),
        "its max_batch_size is 8, and that of score is 4. Use at most 4 in the ensemble.",
    ),
    "no batches in one model": (
        with_change("max_batch_size: 8", "max_batch_size: 0"),
        "the tensor “raw” has the dims [4] from a request and [-1, 4] for center (raw)",
    ),
    "steps that wait for each other": (
        _in_a_circle(),
        "its steps wait for each other: rows, scores. Remove the circle.",
    ),
    "no steps": (
        repositories.ensemble()
        | {
            "models/pipeline/config.pbtxt": repositories.ENSEMBLE_CONFIG.split(
                b"ensemble_scheduling"
            )[0]
        },
        "Ensemble pipeline: it has no steps.",
    ),
    "instances of its own": (
        with_change(
            "max_batch_size: 8", "max_batch_size: 8\ninstance_group [ { kind: KIND_GPU } ]"
        ),
        "an ensemble has no instances of its own. Remove instance_group.",
    ),
    "a name that is not the directory's": (
        with_change('name: "score"', 'name: "scores"', SCORE),
        "The directory score has a config.pbtxt with the name “scores”. Use the same name for both.",
    ),
    "an ensemble that contains itself": (
        with_change('model_name: "score"', 'model_name: "pipeline"'),
        "Ensembles contain each other: pipeline. Remove the circle.",
    ),
    "models in different folders": (
        {
            ("other/" + path if "/score/" in path else path): body
            for path, body in repositories.ensemble().items()
        },
        "The models are in different folders (models, other/models).",
    ),
}


@pytest.mark.parametrize(("files", "message"), REFUSED.values(), ids=REFUSED)
def test_an_ensemble_that_triton_would_refuse_is_refused_with_the_fix(
    files: dict[str, bytes], message: str
) -> None:
    with pytest.raises(NotServable) as refusal:
        read(files)

    assert message in str(refusal.value)


def test_several_unrelated_models_need_a_name() -> None:
    files = {path: body for path, body in repositories.ensemble().items() if "pipeline" not in path}

    with pytest.raises(NotServable, match="several models that no other uses: center, score"):
        read(files)

    facts = read(files, model="score")
    assert [model["name"] for model in facts["models"]] == ["score", "center"]


def test_a_part_of_an_ensemble_is_not_served_under_its_own_name() -> None:
    with pytest.raises(NotServable, match="pipeline uses score, so the repository serves pipeline"):
        read(repositories.ensemble(), model="score")
