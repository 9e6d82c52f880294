"""Models of other programs are named as what they are, with the way to a model that is served here."""

from __future__ import annotations

import json
import pickle
import struct
from typing import Final

import pytest

from deployments.registry.domain.artifacts import files
from deployments.registry.domain.formats import catalogue
from tests.artifacts import MemoryArtifact
from tests.deployments import onnx_models

ONNX: Final = onnx_models.linear()
GGUF: Final = b"GGUF" + struct.pack("<IQQ", 3, 1, 1) + bytes(200)
CONFIG: Final = b'{"architectures": ["LlamaForCausalLM"]}'
# As each program writes its first bytes.
CORE_ML: Final = bytes.fromhex("0801129031") + b"\n\x0f\n\x09feature_0\x1a\x02\x12\x00" + bytes(20)
CATBOOST_JSON: Final = b'{\n  "features_info":\n    {\n      "float_features": []}}'


def torch_before_16(protocol: int) -> bytes:
    """A magic number, the version of the protocol, facts of the system and the object, each pickled."""
    parts = (0x1950A86A20F9469CFC6C, 1001, {"little_endian": True}, {"weight": [1.0]})
    return b"".join(pickle.dumps(part, protocol=protocol) for part in parts)


def detect(contents: dict[str, bytes]) -> catalogue.Detected:
    sizes = {path: len(body) for path, body in contents.items()}
    return catalogue.detect(MemoryArtifact(contents, sizes))


@pytest.mark.parametrize(
    ("contents", "name", "fix"),
    [
        ({"llama.Q4_K_M.gguf": GGUF}, "GGUF (llama.cpp)", "safetensors"),
        (
            {"llama.gguf": GGUF, "config.json": b"{}", "README.md": b"x"},
            *("GGUF (llama.cpp)", "hf://organisation/model:commit"),
        ),
        (
            {
                "lora/adapter_config.json": b"{}",
                "lora/adapter_model.safetensors": b"",
                "lora/README.md": b"",
            },
            *("a PEFT adapter without its base model", "merge_and_unload"),
        ),
        (
            {"model_index.json": b"{}", "unet/config.json": b"{}", "unet/a.safetensors": b""},
            *("a Diffusers pipeline", "optimum-cli export onnx"),
        ),
        (
            {"bert/config.json": CONFIG, "bert/pytorch_model.bin": b"PK\x03\x04"},
            *("a Hugging Face folder without safetensors", "save_pretrained('converted')"),
        ),
        (
            {"encoder.onnx": ONNX, "decoder.onnx": ONNX},
            *("a folder with more than one .onnx file", "keep one .onnx file"),
        ),
        ({"m.tflite": struct.pack("<I", 28) + b"TFL3" + bytes(50)}, "TensorFlow Lite", "--tflite"),
        ({"m.cbm": b"CBM1x/\0\0" + bytes(50)}, "CatBoost", "format='onnx'"),
        ({"m.json": CATBOOST_JSON}, "CatBoost", "format='onnx'"),
        ({"m.mlmodel": CORE_ML}, "Core ML", "Apple"),
        ({"m.mlmodel": b"\x08\x05\x12\x04\xa2\x06\x01\x00" + bytes(9)}, "Core ML", "Apple"),
        (
            {
                "m.mlpackage/Manifest.json": b"{}",
                "m.mlpackage/Data/com.apple.CoreML/model.mlmodel": CORE_ML,
                "m.mlpackage/Data/com.apple.CoreML/weights/weight.bin": bytes(9),
            },
            *("a Core ML package", "Apple"),
        ),
        # Its files without the folder's name.
        (
            {"Manifest.json": b"{}", "Data/com.apple.CoreML/model.mlmodel": CORE_ML},
            *("a Core ML package", "Apple"),
        ),
        (
            {"m.mlmodelc/coremldata.bin": b"x", "m.mlmodelc/model.mil": b"program(1.0)"},
            *("a Core ML package", "Apple"),
        ),
        ({"coremldata.bin": b"x", "model.mil": b"p"}, "a Core ML package", "Apple"),
        ({"m/model.mlmodel": CORE_ML, "m/README.md": b"x"}, "a Core ML package", "Apple"),
        *(
            (
                {name: torch_before_16(protocol)},
                *("PyTorch (torch.save in the format before 1.6)", "torch.onnx.export"),
            )
            for name in ("m.pt", "m.bin", "m.onnx")
            for protocol in range(2, 6)
        ),
        (
            {"sys_info": b"x", "pickle": b"x", "storages": b"x", "tensors": b"x"},
            *("PyTorch (torch.save in the tar format before 0.2)", "torch.onnx.export"),
        ),
        (
            {"a.txt": b"hi", "x/b.txt": b"ho"},
            *("an unsupported format", "one ONNX file with the files of its weights"),
        ),
    ],
)
def test_it_is_named_and_refused_with_the_way_out(
    contents: dict[str, bytes], name: str, fix: str
) -> None:
    found = detect(contents)

    assert found.format.name == name
    assert not found.format.is_accepted
    assert fix in found.describe_refusal(files.display_name(list(contents)))


def test_several_files_are_what_they_are() -> None:
    found = detect({"a.txt": b"", "x/b.txt": b""})

    assert found.describe_refusal("2 files").startswith("2 files are an unsupported format.")
    assert found.describe_refusal("model").startswith("model is an unsupported format.")


@pytest.mark.parametrize(
    ("contents", "key"),
    [
        # An adapter in a folder below, beside a whole model, is no adapter.
        (
            {
                "config.json": CONFIG,
                "model.safetensors": b"",
                "adapters/adapter_config.json": b"{}",
                "pytorch_model.bin": b"",
            },
            "hugging_face",
        ),
        ({"model.onnx": ONNX, "model.onnx.data": bytes(8), "adapter.md": b""}, "onnx"),
        ({"net/model.onnx": ONNX, "net/._model.onnx": b"\0\5\x16\7", "net/.DS_Store": b""}, "onnx"),
        ({"m/config.pbtxt": b"", "m/1/model.onnx": ONNX, "n/1/model.onnx": ONNX}, "triton"),
        ({"model.onnx": ONNX}, "onnx"),
        ({"model.onnx": ONNX, "coreml/m.mlpackage/Manifest.json": b"{}"}, "onnx"),
        ({"m.pkl": pickle.dumps({"weight": 0x1950A86A})}, "pickle"),
    ],
)
def test_what_is_served_here_stays_what_it_is(contents: dict[str, bytes], key: str) -> None:
    assert detect(contents).format.key == key


@pytest.mark.parametrize("producer", ["", "pytorch", "skl2onnx", "\n", "a" * 300])
def test_no_onnx_file_is_taken_for_core_ml(producer: str) -> None:
    import onnx

    model = onnx.load_model_from_string(ONNX)
    model.producer_name = producer

    key = detect({"model.onnx": model.SerializeToString()}).format.key

    # A producer that begins with a line break is the one name that looks so.
    assert key == ("coreml" if producer == "\n" else "onnx")


@pytest.mark.parametrize(
    "path",
    [
        "__MACOSX/a/._model.onnx",
        "a/.DS_Store",
        "a/._model.onnx",
        "Thumbs.db",
        ".git/HEAD",
        "m/__pycache__/model.cpython-311.pyc",
    ],
)
def test_what_computers_leave_in_folders_is_no_part_of_a_model(path: str) -> None:
    assert files.is_clutter(path)


@pytest.mark.parametrize("path", ["model.onnx", "a/_.bin", "a._b/model.onnx", ".hidden", "git/a"])
def test_everything_else_is(path: str) -> None:
    assert not files.is_clutter(path)


def test_json_of_others_is_not_catboost() -> None:
    body = json.dumps({"learner": {"features_info": {}}}).encode()

    assert detect({"m.json": body}).format.key != "catboost"
