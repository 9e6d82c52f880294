"""A folder of Hugging Face becomes a version: its headers are read, its files lie as a server expects them."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from django.urls import reverse
from hypothesis import given
from hypothesis import strategies as st

from deployments.registry.domain.formats import catalogue
from deployments.registry.domain.hugging_face import reading
from deployments.registry.domain.not_servable import NotServable
from deployments.sizing.domain import declared_size, language_models
from deployments.spec.domain.llm import Llm
from deployments.states import VersionState
from tests.artifacts import MemoryArtifact
from tests.deployments.uploading import People, Upload
from tests.fixtures import language_models as folders
from tests.page import page

Files = dict[str, bytes]


def artifact_of(files: Files) -> MemoryArtifact:
    return MemoryArtifact(files, {path: len(content) for path, content in files.items()})


def read(files: Files) -> dict[str, Any]:
    artifact = artifact_of(files)
    detected = catalogue.detect(artifact)
    assert detected.format.key == "hugging_face"
    return reading.read({"main": detected.main}, artifact)


@pytest.mark.django_db
@pytest.mark.parametrize("shards", [1, 3])
def test_a_folder_becomes_a_version_with_the_files_of_a_server(
    verified: Upload, s3_store: Any, shards: int
) -> None:
    files = {
        **folders.folder(shards=shards),
        "chat/modeling_chat.py": b"import os",
        "chat/pytorch_model.bin": b"\x80\x02.",
        "chat/original/model.safetensors": b"",
    }

    version = verified(files, model="chat")

    assert (version.state, version.state_reason) == (VersionState.READY, "")
    assert (version.format, version.filename, version.config_pbtxt) == ("hugging_face", "chat", "")
    served = {
        item["key"].removeprefix(version.repository_prefix): b"".join(
            s3_store.read(item["key"], item["version_id"])
        )
        for item in version.laid_out
    }
    left_out = ("modeling_chat.py", "pytorch_model.bin", "original/model.safetensors")
    assert served == {
        path.removeprefix("chat/"): content
        for path, content in files.items()
        if path.removeprefix("chat/") not in left_out
    }
    facts = version.signature["language_model"]
    assert (facts["architecture"], facts["context_length"]) == ("LlamaForCausalLM", 2048)
    # 2 x 512 x 64 for words, 2 layers of 2 x 64 x 64 + 2 x 16 x 64 + 3 x 128 x 64 + 2 x 64, and a norm.
    assert facts["parameters"] == 2 * 512 * 64 + 2 * (8192 + 2048 + 24576 + 128) + 64
    assert facts["weights_bytes"] == 2 * facts["parameters"]
    details = {row["name"]: row["detail"] for row in version.checks}
    assert details["Runtime"].endswith(
        "Not served: modeling_chat.py, model.safetensors, pytorch_model.bin."
    )
    assert details["Batching"] == (
        "continuous; a token of a request caches 2 x 2 layers x 2 KV heads x 8 numbers"
    )


@pytest.mark.django_db
def test_the_page_says_what_was_read(verified: Upload, people: People, client: Any) -> None:
    version = verified(folders.folder(), model="chat")
    client.force_login(people.member)

    text = page(client.get(reverse("version", args=["vision", "chat", version.number]))).text

    assert "LlamaForCausalLM" in text
    assert "2 layers, 8 heads, 2 KV heads of 8" in text
    assert "kserve-vllm, kserve-sglang, kserve-tensorrt-llm, llm-inference-service" in text
    assert "config.pbtxt" not in text


def test_the_cache_is_what_the_architecture_says() -> None:
    """Llama 3.1 8B: 128 KiB a token at 16 bits, as its 32 layers, 8 KV heads and head size of 128 give."""
    facts = {
        "parameters": 8_030_261_248,
        "dtype": "bf16",
        "context_length": 131072,
        "heads": 32,
        "loaded_bytes": 2 * 8_030_261_248,
        "layers": 32,
        "kv_heads": 8,
        "head_size": 128,
        "cached_vectors": 2,
    }
    size = declared_size.from_facts(facts)

    need = language_models.estimate_need(Llm(max_model_len=8192, max_num_seqs=4), size)

    assert need is not None
    terms = {term.name: term.mib for term in need.terms}
    assert terms["KV cache"] == 128 * 8192 * 4 // 1024
    assert terms["Weights"] == -(-2 * 8_030_261_248 // 2**20)
    smaller = language_models.estimate_need(Llm(quantization="fp8", kv_cache_dtype="fp8"), size)
    assert smaller is not None
    terms = {term.name: term.mib for term in smaller.terms}
    assert terms["KV cache"] == 64 * 4096 * 8 // 1024
    assert terms["Weights"] == -(-8_031 * 10**6 // 2**20)


def test_a_compressed_cache_is_one_vector() -> None:
    """DeepSeek-V3: 576 numbers a layer and token."""
    facts = read(
        folders.folder(
            architectures=["DeepseekV3ForCausalLM"],
            model_type="deepseek_v3",
            kv_lora_rank=512,
            qk_rope_head_dim=64,
        )
    )

    assert (facts["cached_vectors"], facts["kv_heads"], facts["head_size"]) == (1, 1, 576)


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({"num_key_value_heads": None}, {"kv_heads": 8}),
        ({"head_dim": 32}, {"head_size": 32}),
        ({"max_position_embeddings": None, "n_positions": 77}, {"context_length": 77}),
        (
            {
                "rope_scaling": {
                    "type": "yarn",
                    "factor": 4.0,
                    "original_max_position_embeddings": 2048,
                }
            },
            {"context_length": 8192},
        ),
        (
            {"text_config": {"num_hidden_layers": 5, "num_attention_heads": 4}},
            {"layers": 5, "heads": 4},
        ),
        ({"quantization_config": {"quant_method": "awq", "bits": 4}}, {"dtype": "int4"}),
        ({"auto_map": {"AutoModel": "m.M"}}, {"needs_code": True}),
    ],
)
def test_names_of_other_families_are_read(config: Any, expected: dict[str, Any]) -> None:
    files = folders.folder()
    files["chat/config.json"] = json.dumps({**folders.CONFIG, **config}).encode()

    facts = read(files)

    assert {name: facts[name] for name in expected} == expected


def test_wide_numbers_are_loaded_with_16_bits_and_packed_ones_hold_several() -> None:
    wide = read(folders.folder(dtype="F32"))
    packed = read(
        folders.folder(dtype="I32", quantization_config={"quant_method": "gptq", "bits": 4})
    )

    assert wide["loaded_bytes"] * 2 == wide["weights_bytes"] == 4 * wide["parameters"]
    assert (packed["parameters"], packed["dtype"]) == (8 * wide["parameters"], "int4")


def _without(name: str) -> Callable[[Files], object]:
    return lambda files: files.pop(f"chat/{name}")


def _with(name: str, content: bytes) -> Callable[[Files], object]:
    return lambda files: files.update({f"chat/{name}": content})


def _config(**values: Any) -> Callable[[Files], object]:
    return _with("config.json", json.dumps({**folders.CONFIG, **values}).encode())


def _header(rows: Any, size: int = 0) -> Callable[[Files], object]:
    text = json.dumps(rows).encode()
    body = len(text).to_bytes(8, "little") + text + bytes(size)
    return _with("model-00001-of-00002.safetensors", body)


ONE = {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (_without("tokenizer.json"), "no tokenizer"),
        (_without("model-00002-of-00002.safetensors"), "which is not in the folder"),
        (
            _with("model-00002-of-00002.safetensors", folders.safetensors({"more": (2,)})),
            "and the files differ",
        ),
        (_with("model.safetensors.index.json", b"{}"), "no readable weight_map"),
        (_with("model.safetensors.index.json", b'{"weight_map": {"a": 1}}'), "weight_map"),
        (_with("model.safetensors.index.json", b"[" * 100_000), "weight_map"),
        (_with("config.json", b"{"), "is not JSON"),
        (_with("config.json", b"[]"), "is not a JSON object"),
        (_config(architectures=None), "names no architecture"),
        (_config(architectures=["BertForSequenceClassification"]), "does not generate text"),
        (_config(architectures=["T5ForConditionalGeneration"]), "No engine serves “T5For"),
        (_config(architectures=["MyOwnForCausalLM"]), "No engine serves “MyOwnForCausalLM”"),
        (_config(num_attention_heads=-1), "not a positive number"),
        (_config(num_attention_heads=True), "not a positive number"),
        (_config(num_hidden_layers=2**30), "more than any model has"),
        (_config(num_hidden_layers=10**400), "not a positive number"),
        (_header({"a": {**ONE, "shape": [3]}}, 8), "do not match its shape"),
        (_header({"a": {**ONE, "shape": [-2]}}, 8), "a shape that is not one"),
        (_header({"a": {**ONE, "shape": [2**62, 2**62]}}, 8), "larger than any file"),
        (_header({"a": {**ONE, "dtype": "F7"}}, 8), "unknown dtype"),
        (_header({"a": {**ONE, "data_offsets": [8, 16]}}, 16), "do not match"),
        (_header({"a": ONE}, 9), "its tensors end at byte"),
        (_header({"a": ONE}, 7), "its tensors end at byte"),
        (_header({"a": 1}), "is incomplete"),
        (_header([]), "not a JSON object"),
    ],
)
def test_a_folder_that_cannot_be_served_is_refused_with_the_fix(
    spoil: Callable[[Files], object], message: str
) -> None:
    files = folders.folder(shards=2)
    spoil(files)

    with pytest.raises(NotServable, match=message):
        read(files)


def test_a_header_that_claims_to_be_huge_is_not_read() -> None:
    files = folders.folder()
    files["chat/model.safetensors"] = (2**40).to_bytes(8, "little") + b"{"

    with pytest.raises(NotServable, match="its header would end behind the file"):
        read(files)


@given(st.data())
def test_truncated_and_damaged_files_are_refused_or_read(data: st.DataObject) -> None:
    files = folders.folder(shards=2)
    path = data.draw(st.sampled_from(sorted(files)))
    content = bytearray(files[path])
    if data.draw(st.booleans()):
        content = content[: data.draw(st.integers(0, len(content) - 1))]
    else:
        content[data.draw(st.integers(0, min(len(content), 4000) - 1))] = data.draw(
            st.integers(0, 255)
        )
    files[path] = bytes(content)

    try:
        facts = read(files)
    except NotServable:
        return
    assert facts["parameters"] > 0


def test_a_lone_file_of_weights_is_refused_with_advice() -> None:
    detected = catalogue.detect(
        artifact_of({"model.safetensors": folders.safetensors({"a": (2,)})})
    )

    assert not detected.format.is_accepted
    assert "Upload the whole folder" in detected.format.advice
