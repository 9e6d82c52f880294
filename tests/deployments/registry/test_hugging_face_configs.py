"""Architectures come from the registries of engines, and what config.json leaves out from the class of the model."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.urls import reverse

from deployments.registry.domain import loading
from deployments.registry.domain.formats.format import Context
from deployments.registry.domain.formats.hugging_face import HUGGING_FACE
from deployments.registry.domain.hugging_face import known_models
from deployments.registry.domain.not_servable import NotServable
from deployments.sizing.domain import declared_size, language_models
from deployments.spec.domain.engines import KSERVE_SGLANG, KSERVE_TENSORRT_LLM, OPENAI_ENGINES
from deployments.states import VersionState
from tests.deployments.registry.test_hugging_face import read
from tests.deployments.uploading import People, Upload
from tests.fixtures import language_models as folders
from tests.page import page

CONTEXT = Context(model="chat", main="chat/config.json", paths=(), max_batch_size=0)


def folder(config: dict[str, Any]) -> dict[str, bytes]:
    files = {
        **folders.small_files(),
        "config.json": json.dumps(config).encode(),
        "model.safetensors": folders.safetensors({"w": (8, 8)}),
    }
    return {f"chat/{name}": content for name, content in files.items()}


def shape(config: dict[str, Any]) -> tuple[int, ...]:
    """Layers, layers with a KV cache, heads, KV heads, head size, context and vocabulary."""
    facts = read(folder(config))
    names = ("layers", "cached_layers", "heads", "kv_heads", "head_size")
    return tuple(facts[name] for name in (*names, "context_length", "vocabulary"))


LLAVA = {
    "architectures": ["LlavaForConditionalGeneration"],
    "model_type": "llava",
    "text_config": {
        "architectures": ["LlamaForCausalLM"],
        "max_position_embeddings": 4096,
        "model_type": "llama",
        "vocab_size": 32064,
    },
    "vision_config": {"hidden_size": 1024, "num_attention_heads": 16, "num_hidden_layers": 24},
}
INTERN_VL = {
    "architectures": ["InternVLChatModel"],
    "llm_config": {
        "architectures": ["Qwen2ForCausalLM"],
        "hidden_size": 64,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "num_hidden_layers": 2,
        "vocab_size": 128,
        "max_position_embeddings": 4096,
    },
}


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        (LLAVA, (32, 32, 32, 32, 128, 4096, 32064)),
        (
            {**LLAVA, "text_config": {**LLAVA["text_config"], "num_hidden_layers": 40}},  # type: ignore[dict-item]
            (40, 40, 32, 32, 128, 4096, 32064),
        ),
        # Without a type of the part: llama. What stands at the top is of the whole model.
        (
            {**LLAVA, "text_config": {"vocab_size": 7}, "hidden_size": 99},
            (32, 32, 32, 32, 128, 2048, 7),
        ),
        # gemma-3-4b-it as published.
        (
            {
                "architectures": ["Gemma3ForConditionalGeneration"],
                "model_type": "gemma3",
                "text_config": {
                    "hidden_size": 2560,
                    "intermediate_size": 10240,
                    "model_type": "gemma3_text",
                    "num_hidden_layers": 34,
                },
            },
            (34, 34, 8, 4, 256, 131072, 262208),
        ),
        # Qwen2-Audio-7B-Instruct as published: everything is the default of qwen2.
        (
            {
                "architectures": ["Qwen2AudioForConditionalGeneration"],
                "model_type": "qwen2_audio",
                "text_config": {"model_type": "qwen2", "vocab_size": 156032},
            },
            (32, 32, 32, 32, 128, 32768, 156032),
        ),
        (INTERN_VL, (2, 2, 4, 2, 16, 4096, 128)),
        # Flat files of Qwen2-VL.
        (
            {
                "architectures": ["Qwen2VLForConditionalGeneration"],
                "model_type": "qwen2_vl",
                "hidden_size": 64,
                "num_attention_heads": 4,
                "num_hidden_layers": 3,
                "num_key_value_heads": 2,
                "vocab_size": 9,
                "max_position_embeddings": 77,
            },
            (3, 3, 4, 2, 16, 77, 9),
        ),
        # ChatGLM states KV heads under its own name, GPT-2 all of them.
        (
            {
                "architectures": ["ChatGLMModel"],
                "model_type": "chatglm",
                "num_layers": 28,
                "multi_query_group_num": 2,
                "padded_vocab_size": 65024,
            },
            (28, 28, 32, 2, 128, 2048, 65024),
        ),
        (
            {"architectures": ["GPT2LMHeadModel"], "model_type": "gpt2", "n_layer": 24},
            (24, 24, 12, 12, 64, 1024, 50257),
        ),
        # The class of Mistral has 8 KV heads, and all heads where they are stated as null.
        (
            {"architectures": ["MistralForCausalLM"], "model_type": "mistral"},
            (32, 32, 32, 8, 128, 131072, 32000),
        ),
        (
            {
                "architectures": ["MistralForCausalLM"],
                "model_type": "mistral",
                "num_key_value_heads": None,
            },
            (32, 32, 32, 32, 128, 131072, 32000),
        ),
        # The type follows from the architecture where it is left out.
        ({"architectures": ["LlamaForCausalLM"]}, (32, 32, 32, 32, 128, 2048, 32000)),
        # Hybrid models: only layers with attention have a KV cache.
        (
            {"architectures": ["JambaForCausalLM"], "model_type": "jamba"},
            (32, 4, 32, 8, 128, 262144, 65536),
        ),
        (
            {
                "architectures": ["Qwen3NextForCausalLM"],
                "model_type": "qwen3_next",
                "full_attention_interval": 4,
            },
            (48, 12, 16, 2, 256, 32768, 151936),
        ),
        (
            {
                "architectures": ["Lfm2ForCausalLM"],
                "model_type": "lfm2",
                "num_hidden_layers": 4,
                "layer_types": ["conv", "full_attention", "conv", "full_attention"],
            },
            (4, 2, 32, 8, 80, 128000, 65536),
        ),
    ],
)
def test_what_the_file_leaves_out_is_the_default_of_its_class(
    config: dict[str, Any], expected: tuple[int, ...]
) -> None:
    assert shape(config) == expected


NOT_KNOWN: list[dict[str, Any]] = [
    {"architectures": ["MambaForCausalLM"], "model_type": "mamba"},
    {"architectures": ["Mamba2ForCausalLM"], "model_type": "mamba2"},
    {"architectures": ["FalconMambaForCausalLM"], "model_type": "falcon_mamba"},
    {"architectures": ["FalconH1ForCausalLM"], "model_type": "falcon_h1"},
    {"architectures": ["DeciLMForCausalLM"], "num_hidden_layers": 4, "block_configs": [{}]},
    {"architectures": ["InternVLChatModel"], "llm_config": {"vocab_size": 9}},
]


@pytest.mark.parametrize("config", NOT_KNOWN)
def test_an_unknown_cache_is_not_a_refusal(config: dict[str, Any]) -> None:
    facts = read(folder(config))

    assert (facts["cached_layers"], facts["kv_heads"], facts["cached_vectors"]) == (0, 0, 0)
    size = declared_size.from_facts(facts)
    assert (size.attention, size.is_read) == (None, True)
    declared = declared_size.from_facts(facts, {"kv_cache_kib_per_token": 512})
    assert "512 KiB per token, declared" in language_models.describe_need(declared)


def test_every_registered_architecture_can_be_read() -> None:
    """All of them, with nothing but a name: no crash, and a cache that is known or said not to be."""
    table = known_models._table()
    assert table["registered_by_vllm"] == 391
    names = {name for group in table["architectures"].values() for name in group}
    assert {"InternVLChatModel", "ChatGLMModel", "LlavaForConditionalGeneration"} < names
    assert len(names) > 300

    for name in sorted(names):
        facts = read(folder({"architectures": [name]}))

        assert facts["engines"], name
        is_known = facts["cached_layers"] > 0
        assert is_known == (facts["kv_heads"] * facts["head_size"] > 0), name


def test_every_known_type_of_model_can_be_read() -> None:
    for model_type in known_models._table()["types"]:
        facts = read(folder({"architectures": ["LlamaForCausalLM"], "model_type": model_type}))

        assert facts["parameters"] == 64, model_type


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("T5ForConditionalGeneration", "No engine serves “T5ForConditionalGeneration”"),
        ("BartForConditionalGeneration", "No engine serves"),
        ("MyOwnForCausalLM", "No engine serves “MyOwnForCausalLM”"),
        ("LlamaForCausalLMEagle3", "No engine serves|does not generate text"),
        ("BertForSequenceClassification", "does not generate text"),
        ("LlamaModel", "does not generate text"),
        ("BertLMHeadModel", "No engine serves"),
    ],
)
def test_other_architectures_are_refused_with_the_reason(name: str, reason: str) -> None:
    with pytest.raises(NotServable, match=reason):
        read(folder({"architectures": [name]}))


def test_the_first_architecture_that_an_engine_serves_counts() -> None:
    facts = read(folder({"architectures": ["MyOwnForCausalLM", "LlamaForCausalLM"]}))

    assert facts["architecture"] == "LlamaForCausalLM"


def test_an_engine_without_the_architecture_is_not_offered() -> None:
    """XverseForCausalLM left vLLM with 0.23; SGLang still has it."""
    facts = read(folder({"architectures": ["XverseForCausalLM"], "hidden_size": 64}))

    engines = loading.engines_for("", "hugging_face", {"language_model": facts})

    assert engines == (KSERVE_SGLANG, KSERVE_TENSORRT_LLM)
    assert loading.engines_for("", "hugging_face", {"language_model": {}}) == OPENAI_ENGINES


@pytest.mark.django_db
def test_the_cache_of_a_mamba_is_declared_on_its_page(
    verified: Upload, people: People, client: Any
) -> None:
    version = verified(folder(NOT_KNOWN[0]), model="chat")
    assert (version.state, version.state_reason) == (VersionState.READY, "")
    details = {row["name"]: row["detail"] for row in version.checks}
    assert "KV cache not known" in details["Batching"]
    client.force_login(people.member)
    path = reverse("version", args=["vision", "chat", version.number])
    assert "Not known. Set it in the metadata" in page(client.get(path)).text

    form = reverse("version-metadata", args=["vision", "chat", version.number])
    assert "KV cache per token" in page(client.get(form)).text
    wrong = client.post(form, {"kv_cache_kib_per_token": "much"})
    assert "Enter KiB as a whole number" in page(wrong).text
    client.post(form, {"kv_cache_kib_per_token": "96", "notes": "measured"})

    version.refresh_from_db()
    assert version.metadata == {"kv_cache_kib_per_token": 96, "notes": "measured"}
    assert "96 KiB per token, declared" in page(client.get(path)).text


@pytest.mark.django_db
def test_a_cache_that_the_files_state_is_not_asked_for(
    verified: Upload, people: People, client: Any
) -> None:
    version = verified(folders.folder(), model="chat")
    client.force_login(people.member)

    text = page(
        client.get(reverse("version-metadata", args=["vision", "chat", version.number]))
    ).text

    assert "KV cache per token" not in text


@pytest.mark.parametrize(
    ("config", "is_known"),
    [
        ({**INTERN_VL, "model_type": "internvl_chat"}, False),
        (INTERN_VL, False),
        ({"architectures": ["ChatGLMModel"], "model_type": "chatglm"}, True),
        ({"architectures": ["LlamaForCausalLM"]}, True),
    ],
)
def test_a_configuration_that_is_code_is_told(config: dict[str, Any], is_known: bool) -> None:
    facts = read(folder({**config, "auto_map": {"AutoConfig": "configuration_own.Config"}}))

    assert HUGGING_FACE.reading is not None
    inspection = HUGGING_FACE.reading.conclude(facts, CONTEXT)

    assert ("engines do not start with it" in inspection.details["Runtime"]) is not is_known
    assert "Code in the folder is not run." in inspection.details["Runtime"]
