"""The backends of Triton's image: the file that each expects in a version, and whether it runs code."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from deployments.registry.domain.not_servable import NotServable, quote
from deployments.registry.domain.signatures import ENSEMBLE

PYTHON: Final = "python"
DALI: Final = "dali"


@dataclass(frozen=True, slots=True)
class KnownBackend:
    """A backend of Triton. `files` are the names of a model's file; any one is enough. A file may be a folder."""

    name: str
    files: tuple[str, ...]
    platform: str = ""


_BACKENDS: Final = (
    KnownBackend("onnxruntime", ("model.onnx",), platform="onnxruntime_onnx"),
    KnownBackend("tensorrt", ("model.plan",), platform="tensorrt_plan"),
    KnownBackend("pytorch", ("model.pt",), platform="pytorch_libtorch"),
    KnownBackend("openvino", ("model.xml",)),
    KnownBackend(PYTHON, ("model.py",)),
    KnownBackend("fil", ()),
    KnownBackend(DALI, ("model.dali", "dali.py")),
)
BY_NAME: Final[Mapping[str, KnownBackend]] = {known.name: known for known in _BACKENDS}
# By the parameter model_type of the FIL backend.
_FOREST_FILES: Final = {
    "xgboost": "xgboost.model",
    "xgboost_json": "xgboost.json",
    "xgboost_ubj": "xgboost.ubj",
    "lightgbm": "model.txt",
    "treelite_checkpoint": "checkpoint.tl",
}
_REFUSED: Final = {
    "tensorflow": "Triton's image has no TensorFlow since 25.03. Convert the model: python -m "
    "tf2onnx.convert --saved-model FOLDER --output model.onnx.",
    "vllm": "Deploy language models with the engine vLLM, which needs the model only.",
    "tensorrtllm": "Deploy the Hugging Face folder with the engine kserve-tensorrt-llm, which needs no build.",
}


def backend_of(config: Any, names: frozenset[str]) -> str:
    """Return the backend of a model by its configuration, or by `names`, the files of its version.

    Raises NotServable.
    """
    stated = str(config.backend or _of_platform(str(config.platform)))
    if not stated:
        matching = [known.name for known in _BACKENDS if names & set(known.files)]
        if len(matching) != 1:
            raise NotServable(
                'config.pbtxt names no backend. Add a line such as backend: "onnxruntime".'
            )
        return matching[0]
    if stated in (ENSEMBLE, *BY_NAME):
        return stated
    if stated in _REFUSED:
        raise NotServable(f"The backend is {stated}. {_REFUSED[stated]}")
    known = ", ".join(sorted((*BY_NAME, ENSEMBLE)))
    raise NotServable(f"Triton's image has no backend {quote(stated)}. Use one of {known}.")


def model_file(config: Any, backend: str, names: frozenset[str]) -> str:
    """Return the name of the model's file in a version with the files `names`. Raises NotServable."""
    if backend == ENSEMBLE:
        return ""
    expected = _expected(config, backend)
    for name in expected:
        if any(path == name or path.startswith(f"{name}/") for path in names):
            return name
    listed = ", ".join(sorted(names)[:5]) or "no files"
    raise NotServable(
        f"The backend {backend} needs {' or '.join(expected)} in the directory of the version, which "
        f"has {listed}. Rename the file, or name it in default_model_filename."
    )


def _of_platform(platform: str) -> str:
    if platform.startswith("tensorflow_"):
        return "tensorflow"
    by_platform = {known.platform: known.name for known in _BACKENDS if known.platform}
    return by_platform.get(platform, platform)


def _expected(config: Any, backend: str) -> tuple[str, ...]:
    if config.default_model_filename:
        return (str(config.default_model_filename),)
    if backend != "fil":
        return BY_NAME[backend].files
    kind = (
        str(config.parameters["model_type"].string_value)
        if "model_type" in config.parameters
        else ""
    )
    if kind not in _FOREST_FILES:
        raise NotServable(
            f"The backend fil needs the parameter model_type: {', '.join(_FOREST_FILES)}."
        )
    return (_FOREST_FILES[kind],)
