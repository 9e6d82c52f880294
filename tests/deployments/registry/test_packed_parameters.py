"""Parameters of quantised folders: each format packs another number of weights into an element."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.deployments.registry.test_hugging_face import read
from tests.fixtures import language_models as folders

Rows = dict[str, tuple[str, list[int]]]
_BITS = {"I32": 32, "U8": 8, "I8": 8, "BF16": 16, "F16": 16, "F32": 32, "F8_E4M3": 8, "I64": 64}
WEIGHTS = 64 * 128
NORM = 128


def safetensors(rows: Rows) -> bytes:
    header: dict[str, Any] = {}
    start = 0
    for name, (dtype, shape) in rows.items():
        size = _BITS[dtype] // 8
        for dim in shape:
            size *= dim
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [start, start + size]}
        start += size
    text = json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + bytes(start)


def folder(quantization: dict[str, Any], rows: Rows, **files: bytes) -> dict[str, bytes]:
    config = {**folders.CONFIG, **quantization}
    content = {
        **folders.small_files(),
        "config.json": json.dumps(config).encode(),
        "model.safetensors": safetensors({**rows, "model.norm.weight": ("BF16", [NORM])}),
        **{name.replace("__", "."): body for name, body in files.items()},
    }
    return {f"chat/{name}": body for name, body in content.items()}


def group(bits: int, **more: Any) -> dict[str, Any]:
    return {"weights": {"num_bits": bits, "type": "int", **more}, "targets": ["Linear"]}


def config_of(method: str, **more: Any) -> dict[str, Any]:
    return {"quantization_config": {"quant_method": method, **more}}


# One layer of 64 x 128 weights, as each format stores it. Scales are for 32 weights.
COMPRESSED: Rows = {
    "l.weight_packed": ("I32", [64, 16]),
    "l.weight_scale": ("BF16", [64, 4]),
    "l.weight_shape": ("I64", [2]),
    "l.weight_zero_point": ("I32", [8, 4]),
    "l.weight_g_idx": ("I32", [128]),
}
GPTQ: Rows = {
    "l.qweight": ("I32", [16, 64]),
    "l.qzeros": ("I32", [4, 8]),
    "l.scales": ("F16", [4, 64]),
    "l.g_idx": ("I32", [128]),
}
NVFP4: Rows = {
    "l.weight": ("U8", [64, 64]),
    "l.weight_scale": ("F8_E4M3", [64, 8]),
    "l.weight_scale_2": ("F32", []),
    "l.input_scale": ("F32", []),
}
FORMATS: dict[str, tuple[dict[str, Any], Rows, str]] = {
    "compressed-tensors W4A16": (
        config_of("compressed-tensors", config_groups={"g": group(4, group_size=32)}),
        COMPRESSED,
        "int4",
    ),
    "compressed-tensors W8A16": (
        config_of("compressed-tensors", config_groups={"g": group(8, group_size=32)}),
        {"l.weight_packed": ("I32", [64, 32]), "l.weight_scale": ("BF16", [64, 4])},
        "",
    ),
    "compressed-tensors W8A8": (
        config_of("compressed-tensors", config_groups={"g": group(8)}),
        {"l.weight": ("I8", [64, 128]), "l.weight_scale": ("BF16", [64, 1])},
        "int8",
    ),
    "compressed-tensors FP8": (
        config_of("compressed-tensors", config_groups={"g": group(8, type="float")}),
        {"l.weight": ("F8_E4M3", [64, 128]), "l.weight_scale": ("BF16", [64, 1])},
        "fp8",
    ),
    "compressed-tensors NVFP4": (
        config_of("compressed-tensors", config_groups={"g": group(4, type="float")}),
        {
            "l.weight_packed": ("U8", [64, 64]),
            "l.weight_scale": ("F8_E4M3", [64, 8]),
            "l.weight_global_scale": ("F32", [1]),
            "l.input_global_scale": ("F32", [1]),
        },
        "",
    ),
    "compression_config": (
        {
            "compression_config": {
                "quant_method": "compressed_tensors",
                "config_groups": {"g": group(4)},
            }
        },
        COMPRESSED,
        "int4",
    ),
    "gptq 4": (config_of("gptq", bits=4), GPTQ, "int4"),
    "gptq 8": (
        config_of("gptq", bits=8),
        {**GPTQ, "l.qweight": ("I32", [32, 64]), "l.qzeros": ("I32", [4, 16])},
        "",
    ),
    "gptq 3": (config_of("gptq", bits=3), {**GPTQ, "l.qweight": ("I32", [12, 64])}, ""),
    "awq": (
        config_of("awq", bits=4),
        {"l.qweight": ("I32", [128, 8]), "l.qzeros": ("I32", [4, 8]), "l.scales": ("F16", [4, 64])},
        "int4",
    ),
    "awq of AutoAWQ": (config_of("awq", w_bit=4), {"l.qweight": ("I32", [128, 8])}, "int4"),
    "auto-round": (config_of("auto-round", bits=4), GPTQ, "int4"),
    "mxfp4 of gpt-oss": (
        config_of("mxfp4", modules_to_not_convert=["model.norm"]),
        {
            "l.mlp.experts.gate_up_proj_blocks": ("U8", [4, 16, 4, 16]),
            "l.mlp.experts.gate_up_proj_scales": ("U8", [4, 16, 4]),
        },
        "",
    ),
    "modelopt NVFP4": (config_of("modelopt", quant_algo="NVFP4"), NVFP4, ""),
    "modelopt FP8": (
        config_of("modelopt", quant_algo="FP8"),
        {"l.weight": ("F8_E4M3", [64, 128]), "l.weight_scale": ("F32", [])},
        "fp8",
    ),
    "bitsandbytes 4": (
        config_of("bitsandbytes", load_in_4bit=True),
        {
            "l.weight": ("U8", [WEIGHTS // 2, 1]),
            "l.weight.absmax": ("U8", [128]),
            "l.weight.quant_map": ("F32", [16]),
            "l.weight.nested_absmax": ("F32", [1]),
            "l.weight.nested_quant_map": ("F32", [256]),
            "l.weight.quant_state.bitsandbytes__nf4": ("U8", [120]),
        },
        "",
    ),
    "bitsandbytes 8": (
        config_of("bitsandbytes", load_in_8bit=True),
        {
            "l.weight": ("I8", [64, 128]),
            "l.SCB": ("F32", [64]),
            "l.weight_format": ("U8", []),
        },
        "int8",
    ),
    "fp8 of DeepSeek": (
        config_of("fp8", weight_block_size=[128, 128]),
        {"l.weight": ("F8_E4M3", [64, 128]), "l.weight_scale_inv": ("F32", [1, 1])},
        "fp8",
    ),
    "hqq": (
        config_of("hqq", quant_config={"weight_quant_params": {"nbits": 4}}),
        {"l.W_q": ("U8", [32, 128]), "l.scale": ("F16", [256, 1]), "l.zero": ("F16", [256, 1])},
        "int4",
    ),
    "bitnet": (config_of("bitnet"), {"l.weight": ("U8", [16, 128])}, ""),
}


@pytest.mark.parametrize("name", FORMATS)
def test_each_format_counts_its_weights(name: str) -> None:
    quantization, rows, dtype = FORMATS[name]

    facts = read(folder(quantization, rows))

    assert facts["parameters"] == WEIGHTS + NORM
    assert facts["dtype"] == dtype


def test_the_file_of_modelopt_counts_where_the_configuration_says_nothing() -> None:
    beside = json.dumps(
        {"producer": {"name": "modelopt"}, "quantization": {"quant_algo": "NVFP4"}}
    ).encode()

    facts = read(folder({}, NVFP4, hf_quant_config__json=beside))

    assert (facts["parameters"], facts["quantization"]) == (WEIGHTS + NORM, "modelopt")


def test_the_quantization_of_a_nested_model_counts() -> None:
    nested = {"text_config": {**folders.CONFIG, **config_of("gptq", bits=4)}}

    assert read(folder(nested, GPTQ))["parameters"] == WEIGHTS + NORM


def test_groups_with_different_bits_are_told_apart_by_their_scales() -> None:
    groups = {"a": group(4, group_size=32), "b": group(8, group_size=64)}
    rows: Rows = {
        "l4.weight_packed": ("I32", [64, 16]),
        "l4.weight_scale": ("BF16", [64, 4]),
        "l8.weight_packed": ("I32", [64, 32]),
        "l8.weight_scale": ("BF16", [64, 2]),
    }

    facts = read(folder(config_of("compressed-tensors", config_groups=groups), rows))

    assert facts["parameters"] == 2 * WEIGHTS + NORM


KEYS = (
    *("quant_method", "bits", "config_groups", "weights", "num_bits", "type", "group_size"),
    *("quantization", "quant_algo", "quant_config", "weight_quant_params", "global_quant_config"),
    *("weight", "dtype", "producer"),
)
LEAVES = st.none() | st.booleans() | st.integers(-9, 99) | st.text(max_size=8)


@given(
    st.recursive(
        LEAVES,
        lambda inner: (
            st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=5)
        ),
        max_leaves=12,
    )
)
def test_no_configuration_breaks_the_reading(stated: Any) -> None:
    facts = read(folder({"quantization_config": stated}, COMPRESSED))

    assert facts["parameters"] >= NORM
