"""What may be named as a reference, what pins it, and what is refused without being repeated."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deployments.registry.domain import external_weights
from deployments.spec.domain.serving_spec import ServingSpec
from portal.core.definitions import Rejected

_COMMIT = "ab12" * 10
_DIGEST = f"sha256:{'cd' * 32}"


@pytest.mark.parametrize(
    ("uri", "name", "pin"),
    [
        ("hf://Qwen/Qwen3-8B", "Qwen/Qwen3-8B", ""),
        ("hf://Qwen/Qwen3-8B:main", "Qwen/Qwen3-8B", ""),
        (f"hf://Qwen/Qwen3-8B:{_COMMIT}", "Qwen/Qwen3-8B", _COMMIT),
        ("pvc://weights", "weights", ""),
        ("pvc://weights/llama/8b_v1.2", "weights", ""),
        ("oci://ghcr.io/org/model:1.0", "ghcr.io/org/model", ""),
        (f"oci://ghcr.io/org/model:1.0@{_DIGEST}", "ghcr.io/org/model", _DIGEST),
        (f"oci://registry.example:5000/model@{_DIGEST}", "registry.example:5000/model", _DIGEST),
    ],
)
def test_a_reference_is_read_and_only_a_commit_or_a_digest_pins_it(
    uri: str, name: str, pin: str
) -> None:
    reference = external_weights.parse(f"  {uri} ")

    assert (reference.uri, reference.name, reference.pin) == (uri, name, pin)
    assert reference.is_pinned is external_weights.is_pinned(uri) is bool(pin)
    assert bool(reference.advice) is not bool(pin)


@pytest.mark.parametrize(
    ("uri", "message"),
    [
        ("", "Enter the location of the weights"),
        ("Qwen/Qwen3-8B", "Upload files from other sources instead."),
        ("s3://bucket/model", "Upload files from other sources instead."),
        ("https://huggingface.co/Qwen/Qwen3-8B", "Upload files from other sources instead."),
        ("hf://Qwen", "hf://organisation/model:commit"),
        ("hf://Qwen/Qwen3-8B/tree/main", "hf://organisation/model:commit"),
        ("hf://Qwen/Qwen3 8B", "hf://organisation/model:commit"),
        ("pvc://Weights/a", "pvc://claim/path"),
        ("pvc://weights/../other", "'..'"),
        ("oci://model:1", "oci://registry/image:tag"),
        ("oci://ghcr.io/org/model@sha256:12", "oci://registry/image:tag"),
        (f"hf://org/{'m' * 300}", "the limit is 250"),
        ("hf://ärger/model", "hf://organisation/model:commit"),
    ],
)
def test_what_is_no_reference_is_refused_with_how_to_write_it(uri: str, message: str) -> None:
    with pytest.raises(Rejected) as refusal:
        external_weights.parse(uri)

    assert message in refusal.value.fields["source_uri"]


@pytest.mark.parametrize(
    "secret",
    [
        "hf://user:hunter2@org/model",
        "oci://user:hunter2@ghcr.io/org/model:1",
        "oci://ghcr.io/org/model:1?token=hunter2",
        "pvc://claim/path#hunter2",
        f"hf://org/model:hf_{'hunter2x' * 4}",
        "pvc://claim/AKIAHUNTER2HUNTER2XX",
        f"oci://ghcr.io/ghp_{'hunter2x' * 4}/model:1",
    ],
)
def test_a_secret_is_refused_and_not_repeated(secret: str) -> None:
    with pytest.raises(Rejected) as refusal:
        external_weights.parse(secret)

    assert "password or token" in refusal.value.message
    assert "hunter2" not in f"{refusal.value.message}{refusal.value.fields}".lower()


@settings(max_examples=30)
@given(
    st.from_regex(external_weights._PATTERNS["hf"], fullmatch=True)
    | st.from_regex(external_weights._PATTERNS["pvc"], fullmatch=True)
    | st.from_regex(external_weights._PATTERNS["oci"], fullmatch=True)
)
def test_every_reference_makes_a_spec_for_each_engine_that_loads_it(uri: str) -> None:
    try:
        reference = external_weights.parse(uri)
    except Rejected:
        return

    for engine in reference.engines:
        llm = {"hugging_face_id": reference.hugging_face_id, "artifact": reference.artifact}
        spec = ServingSpec.from_json({"engine": engine, "instance_type": "g5.xlarge", "llm": llm})
        assert spec.llm is not None
        assert external_weights.from_spec(
            hugging_face_id=spec.llm.hugging_face_id, artifact=spec.llm.artifact
        ) == (reference)
