"""The files of weights that count are those that vLLM loads; the others are listed as not served."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deployments.registry.domain.formats import catalogue
from deployments.registry.domain.not_servable import NotServable
from deployments.states import VersionState
from tests.deployments.registry.test_hugging_face import artifact_of, read
from tests.deployments.uploading import Upload
from tests.fixtures import language_models as folders

SHARDS = ("model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors")
INDEX = "model.safetensors.index.json"


def weights(*names: str) -> bytes:
    return folders.safetensors(dict.fromkeys(names, (2, 2)))


def folder(files: dict[str, bytes], index: dict[str, str] | None = None) -> dict[str, bytes]:
    small = folders.small_files()
    if index is not None:
        small[INDEX] = json.dumps({"metadata": {}, "weight_map": index}).encode()
    return {f"chat/{name}": content for name, content in {**small, **files}.items()}


def served_weights(facts: dict[str, Any]) -> list[str]:
    return [name for path in facts["served"] if (name := path[5:]).endswith(".safetensors")]


def unused(facts: dict[str, Any]) -> list[str]:
    return [path.removeprefix("chat/") for path in facts["unused"]]


INDEXED = {"a": SHARDS[0], "b": SHARDS[1]}
BOTH = {SHARDS[0]: weights("a"), SHARDS[1]: weights("b")}


@pytest.mark.parametrize(
    ("files", "index", "served", "left_out"),
    [
        # Mistral's own form beside the one of Transformers.
        ({**BOTH, "consolidated.safetensors": weights("x", "y")}, INDEXED, SHARDS, 1),
        ({**BOTH, "consolidated-00001-of-00001.safetensors": weights("x")}, INDEXED, SHARDS, 1),
        ({"model.safetensors": weights("a"), "consolidated.safetensors": weights("a")}, None, 0, 1),
        # Files that the index leaves out, and tensors that it leaves out of a file that counts.
        ({**BOTH, "extra.safetensors": weights("a")}, INDEXED, SHARDS, 1),
        ({**BOTH, "model.safetensors": weights("a", "b")}, INDEXED, SHARDS, 1),
        ({SHARDS[0]: weights("a", "inv_freq"), SHARDS[1]: weights("b")}, INDEXED, SHARDS, 0),
        # A tensor in two files counts where the index has it, and vLLM reads it from any of them.
        ({SHARDS[0]: weights("a", "b"), SHARDS[1]: weights("b")}, INDEXED, SHARDS, 0),
        ({SHARDS[0]: weights("b"), SHARDS[1]: weights("a")}, INDEXED, SHARDS, 0),
        # No index: model*.safetensors.
        (BOTH, None, SHARDS, 0),
        ({"model.safetensors": weights("a"), **BOTH}, None, 0, 2),
        ({"model.safetensors": weights("a"), "adapter.safetensors": weights("l")}, None, 0, 1),
        ({"model.safetensors": weights("a"), "pytorch_model.bin": b"\x80\x02."}, None, 0, 1),
        ({"weights.safetensors": weights("a")}, None, ("weights.safetensors",), 0),
        ({"consolidated.safetensors": weights("a")}, None, ("consolidated.safetensors",), 0),
    ],
)
def test_the_index_or_the_names_decide(
    files: dict[str, bytes], index: dict[str, str] | None, served: Any, left_out: int
) -> None:
    facts = read(folder(files, index))

    assert served_weights(facts) == list(served or ("model.safetensors",))
    assert len(unused(facts)) == left_out
    assert not set(unused(facts)) & set(served_weights(facts))


@given(
    st.sets(st.sampled_from("abcdefgh"), min_size=1),
    st.integers(1, 4),
    st.sets(st.sampled_from(["consolidated", "extra", "adapter_model", "original", "mtp"])),
)
def test_files_beside_the_index_change_nothing(
    names: set[str], shards: int, others: Iterable[str]
) -> None:
    split = folders.split_shapes(dict.fromkeys(sorted(names), (2, 2)), min(shards, len(names)))
    index = {name: file for file, shapes in split.items() for name in shapes}
    files = {file: folders.safetensors(shapes) for file, shapes in split.items()}

    alone = read(folder(files, index))
    beside = read(
        folder(
            {**files, **{f"{other}.safetensors": weights("a", "z") for other in others}},
            index,
        )
    )

    assert {**beside, "unused": ()} == {**alone, "unused": ()}
    assert unused(beside) == sorted(f"{other}.safetensors" for other in others)


@pytest.mark.parametrize(
    ("files", "index", "message"),
    [
        ({SHARDS[0]: weights("a")}, INDEXED, "which is not in the folder"),
        ({SHARDS[0]: weights("a")}, None, "is one of 2 files of weights, and “model-00002"),
        ({SHARDS[1]: weights("a")}, None, "is one of 2 files of weights, and “model-00001"),
        ({**BOTH, SHARDS[1]: weights("c")}, INDEXED, "the index has “b” in “model-00002"),
        ({SHARDS[0]: weights("a"), SHARDS[1]: weights("a")}, None, "is in chat/model-00001"),
        (BOTH, {"a": "../config.json"}, "which is not in the folder"),
        (BOTH, {}, "no readable weight_map"),
    ],
)
def test_weights_that_are_not_complete_are_refused(
    files: dict[str, bytes], index: dict[str, str] | None, message: str
) -> None:
    with pytest.raises(NotServable, match=message):
        read(folder(files, index))


@pytest.mark.django_db
def test_the_folder_of_mistral_becomes_ready_with_the_files_of_its_index(
    verified: Upload, s3_store: Any
) -> None:
    files = folder(
        {**BOTH, "consolidated.safetensors": weights("x", "y"), "params.json": b'{"dim": 64}'},
        INDEXED,
    )

    version = verified(files, model="chat")

    assert (version.state, version.state_reason) == (VersionState.READY, "")
    laid_out = {item["key"].removeprefix(version.repository_prefix) for item in version.laid_out}
    assert {*SHARDS, INDEX} < laid_out
    assert "consolidated.safetensors" not in laid_out
    details = {row["name"]: row["detail"] for row in version.checks}
    assert "Not served: consolidated.safetensors." in details["Runtime"]
    assert version.signature["language_model"]["parameters"] == 8


def test_a_folder_with_consolidated_weights_is_a_language_model() -> None:
    files = folder({"consolidated.safetensors": weights("a")})

    assert catalogue.detect(artifact_of(files)).format.key == "hugging_face"
