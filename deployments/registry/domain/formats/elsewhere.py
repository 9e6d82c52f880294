"""Refused formats that other runtimes serve, and how to convert them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import PurePosixPath
from typing import Final

from deployments.registry.domain.artifacts.reading import Artifact
from deployments.registry.domain.formats import hugging_face, onnx
from deployments.registry.domain.formats.format import Format, head_of, single_file
from deployments.registry.domain.object_keys import CONFIG_FILE

_GGUF: Final = b"GGUF"
_TFLITE: Final = b"TFL3"
_CATBOOST: Final = b"CBM1"
# A varint of one byte as the first field, then a message that begins with a message: in ONNX a name stands there.
_CORE_ML: Final = (0x08, 0x12, 0x0A)
_CORE_ML_FOLDERS: Final = (".mlpackage", ".mlmodelc", "com.apple.coreml")
_SHOWN_WEIGHTS: Final = ("pytorch_model.bin", "pytorch_model.bin.index.json", "tf_model.h5")


def _is_core_ml(head: bytes, name: str) -> bool:
    if name.endswith(".mlmodel") and head[:1] == b"\x08":
        return True
    if len(head) < 8 or (head[0], head[2]) != _CORE_ML[:2]:
        return False
    # A SavedModel begins like the first version of Core ML.
    if head[1] == 1 and not name.endswith(".mlmodel"):
        return False
    rest = head[3:]
    length_bytes = next((n for n, byte in enumerate(rest[:5], start=1) if byte < 0x80), 0)
    return bool(length_bytes) and rest[length_bytes] == _CORE_ML[2]


def _core_ml_folder(artifact: Artifact) -> str | None:
    """Detect a Core ML package (.mlpackage), a compiled model (.mlmodelc) or a folder around one, without
    another graph.
    """
    if len(artifact.sizes) == 1 or onnx.graphs_of(artifact):
        return None
    for path in sorted(artifact.sizes):
        folders = path.lower().split("/")
        name = folders.pop()
        is_package = any(folder.endswith(_CORE_ML_FOLDERS) for folder in folders)
        if is_package or name.endswith(".mlmodel") or name == "coremldata.bin":
            return ""
    return None


def _is_catboost(head: bytes, _: str) -> bool:
    start = head[:200].lstrip()
    return head.startswith(_CATBOOST) or (
        start.startswith(b"{") and b'"features_info"' in start.partition(b":")[0]
    )


def _has_gguf(artifact: Artifact) -> str | None:
    """Detect a file in GGUF, alone or in a folder, such as of a repository with several quantisations."""
    names = list(artifact.sizes)
    if len(names) > 1:
        names = [path for path in names if path.lower().endswith(".gguf")][:1]
    return next((path for path in names if head_of(artifact, path).startswith(_GGUF)), None)


def _folder_with(*names: str) -> Callable[[Artifact], str | None]:
    """Return a detector of folders that have a file of one of the names at their top."""

    def detect(artifact: Artifact) -> str | None:
        tops = _at_top(artifact)
        return next((tops[name] for name in names if name in tops), None)

    return detect


def _weights_to_convert(artifact: Artifact) -> str | None:
    prefix = hugging_face.folder_of_config(artifact)
    return None if prefix is None else _folder_with(*_SHOWN_WEIGHTS)(artifact)


def _several_graphs(artifact: Artifact) -> str | None:
    names = {PurePosixPath(path).name for path in artifact.sizes}
    graphs = onnx.graphs_of(artifact)
    return graphs[0] if len(graphs) > 1 and CONFIG_FILE not in names else None


def _at_top(artifact: Artifact) -> dict[str, str]:
    """Return paths by name, of the files in the folder that contains all."""
    depth = min(path.count("/") for path in artifact.sizes)
    if len(artifact.sizes) == 1:
        return {}
    return {PurePosixPath(p).name: p for p in artifact.sizes if p.count("/") == depth}


GGUF: Final = Format(
    key="gguf",
    name="GGUF (llama.cpp)",
    detect=_has_gguf,
    advice="vLLM, SGLang and TensorRT-LLM serve the weights that it was quantised from: upload their Hugging Face "
    "folder (config.json, tokenizer and safetensors), or register hf://organisation/model:commit. AWQ, GPTQ and FP8 "
    "folders are served quantised.",
)
LORA: Final = Format(
    key="lora",
    name="a PEFT adapter without its base model",
    detect=_folder_with("adapter_config.json"),
    advice="Merge it and upload the result: PeftModel.from_pretrained(base, folder).merge_and_unload()"
    ".save_pretrained('merged'), with the tokenizer of the base model.",
)
DIFFUSERS: Final = Format(
    key="diffusers",
    name="a Diffusers pipeline",
    detect=_folder_with("model_index.json"),
    advice="Export its parts to ONNX: optimum-cli export onnx --model . exported. Upload each as a version and join "
    "them in a Triton repository with an ensemble or a model.py.",
)
WITHOUT_SAFETENSORS: Final = Format(
    key="hugging_face_bin",
    name="a Hugging Face folder without safetensors",
    detect=_weights_to_convert,
    advice="Pickled weights can run code. Save them as safetensors and upload that folder: "
    "AutoModelForCausalLM.from_pretrained('.').save_pretrained('converted'), with the tokenizer.",
)
SEVERAL_GRAPHS: Final = Format(
    key="several_onnx",
    name="a folder with more than one .onnx file",
    detect=_several_graphs,
    advice="A version is one model: keep one .onnx file with the files of its weights. Models that call each other "
    "are a Triton repository, with a config.pbtxt for each.",
)
TFLITE: Final = Format(
    key="tflite",
    name="TensorFlow Lite",
    detect=single_file(lambda head, _: head[4:8] == _TFLITE),
    advice="Convert it: python -m tf2onnx.convert --tflite model.tflite --output model.onnx.",
)
CATBOOST: Final = Format(
    key="catboost",
    name="CatBoost",
    detect=single_file(_is_catboost),
    advice="Save it as ONNX: model.save_model('model.onnx', format='onnx'), which needs numeric features.",
)
CORE_ML: Final = Format(
    key="coreml",
    name="Core ML",
    detect=single_file(_is_core_ml),
    advice="Core ML runs on Apple devices only. Export the model that it was converted from to ONNX.",
)
CORE_ML_FOLDER: Final = Format(
    key="coreml_package",
    name="a Core ML package",
    detect=_core_ml_folder,
    advice=CORE_ML.advice,
)
FOLDERS: Final = (LORA, DIFFUSERS, GGUF, WITHOUT_SAFETENSORS, SEVERAL_GRAPHS, CORE_ML_FOLDER)
FILES: Final = (TFLITE, CATBOOST, CORE_ML)
