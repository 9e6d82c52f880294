"""The folder of an MLflow model: what its MLmodel file says, and which of its files are served.

MLmodel is YAML. `flavors` has a row for each way to load the model:

    onnx: {data: model.onnx}    xgboost: {data: model.ubj}    lightgbm: {data: model.lgb}
    sklearn: {pickled_model: model.pkl}    pytorch: {model_data: data}    tensorflow: {…}
    transformers: {model_binary: model, components: [tokenizer]}    python_function: {…}
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any, Final

from deployments.imports.domain.errors import SourceRefused

FILE: Final = "MLmodel"
MAX_BYTES: Final = 2**20
# What MLflow writes beside the model, to load it in Python again.
_ABOUT_THE_MODEL: Final = frozenset(
    {
        FILE,
        "conda.yaml",
        "input_example.json",
        "python_env.yaml",
        "registered_model_meta",
        "requirements.txt",
        "serving_input_example.json",
    }
)
_MAX_FIELDS: Final = 500
_MAX_TEXT: Final = 200
_SKOPS: Final = ".skops"
Chosen = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class ModelFile:
    """The file MLmodel. `signature` has inputs, outputs and params, each a list of fields with name, type, and
    the shape of a tensor or None.
    """

    flavors: Mapping[str, Mapping[str, Any]]
    signature: Mapping[str, list[dict[str, Any]]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Selection:
    """The files that are imported. `files` maps each path of the artifact to its path in MLflow's folder."""

    flavor: str
    library: str
    files: Chosen
    left_out: tuple[str, ...]


def parse(model: Any) -> ModelFile:
    """Parse a model file from its loaded YAML. Raises SourceRefused."""
    flavors = model.get("flavors") if isinstance(model, dict) else None
    if not isinstance(flavors, dict):
        raise SourceRefused(f"The file {FILE} does not say which flavors the model has.")
    rows = {name: row if isinstance(row, dict) else {} for name, row in flavors.items()}
    return ModelFile(rows, _signature(model.get("signature")))


def select(model: ModelFile, paths: Sequence[str]) -> Selection:
    """Return the files of the first flavor that can be served. Raises SourceRefused."""
    for name, (files_of, version_key) in _FLAVORS.items():
        if name not in model.flavors:
            continue
        options = model.flavors[name]
        files = files_of(options, paths)
        if not files:
            raise SourceRefused(
                f"The flavor {name} names files that are not among the model's artifacts. Log the model "
                "again."
            )
        left_out = sorted(set(paths) - set(files.values()))
        library = f"{name} {options.get(version_key) or ''}".strip()
        return Selection(name, library, files, tuple(left_out))
    raise SourceRefused(
        f"The model has only {', '.join(model.flavors) or 'no flavor'}, which cannot be served. Log it with "
        f"one of the flavors {', '.join(_FLAVORS)}."
    )


def _onnx(options: Mapping[str, Any], paths: Sequence[str]) -> Chosen:
    """Return the graph and the files of external weights, which MLflow puts beside it under names of their own."""
    graph = options.get("data")
    if graph not in paths:
        return {}
    top = [path for path in paths if "/" not in path and path not in _ABOUT_THE_MODEL]
    return {path: path for path in top}


def _single_file(key: str) -> Callable[[Mapping[str, Any], Sequence[str]], Chosen]:
    def files_of(options: Mapping[str, Any], paths: Sequence[str]) -> Chosen:
        path = options.get(key)
        if not isinstance(path, str) or path not in paths:
            return {}
        if path.endswith(_SKOPS) or options.get("serialization_format") == "skops":
            raise SourceRefused(
                f"{path} is a file of skops, MLflow's default, which no runtime reads. Log a RandomForest, ExtraTrees "
                'or DecisionTree again with mlflow.sklearn.log_model(model, name="model", '
                'serialization_format="cloudpickle"); any other model as ONNX: mlflow.onnx.log_model('
                'skl2onnx.to_onnx(model, rows[:1]), name="model").'
            )
        return {PurePosixPath(path).name: path}

    return files_of


def _pytorch(options: Mapping[str, Any], paths: Sequence[str]) -> Chosen:
    """Choose data/model.pth, or data/model.pt2 of torch.export, beside the name of the pickle module."""
    folder = options.get("model_data")
    models = [path for path in paths if path in (f"{folder}/model.pth", f"{folder}/model.pt2")]
    return {PurePosixPath(path).name: path for path in models}


def _transformers(options: Mapping[str, Any], paths: Sequence[str]) -> Chosen:
    """Put the model and its tokenizer into one folder, as save_pretrained writes it: MLflow keeps them apart.
    Raises SourceRefused for a model that was logged without weights.
    """
    if "model_binary" not in options:
        source = options.get("source_model_name", "the hub")
        raise SourceRefused(
            f"MLflow has no weights of this model: it was logged with save_pretrained=False. Import "
            f"hf://{source} instead."
        )
    folders = [f"components/{name}/" for name in ("tokenizer", "processor")]
    folders += [f"{options['model_binary']}/"]
    # The files of the model win over those of its components.
    return {
        path.removeprefix(folder): path
        for folder in folders
        for path in paths
        if path.startswith(folder)
    }


def _tensorflow(options: Mapping[str, Any], paths: Sequence[str]) -> Chosen:
    """Return a SavedModel in a folder of its own; the model of Keras lies as data/model… ."""
    folder = options.get("saved_model_dir")
    inside = f"{folder}/" if folder else f"{options.get('data', 'data')}/model"
    top = inside.rpartition("/")[0] + "/"
    return {path.removeprefix(top): path for path in paths if path.startswith(inside)}


# In this order; the second value is the key of the library's version.
_FLAVORS: Final[Mapping[str, tuple[Callable[[Mapping[str, Any], Sequence[str]], Chosen], str]]] = {
    "onnx": (_onnx, "onnx_version"),
    "xgboost": (_single_file("data"), "xgb_version"),
    "lightgbm": (_single_file("data"), "lgb_version"),
    "transformers": (_transformers, "transformers_version"),
    "pytorch": (_pytorch, "pytorch_version"),
    "tensorflow": (_tensorflow, "tensorflow_version"),
    "sklearn": (_single_file("pickled_model"), "sklearn_version"),
}


def _signature(value: Any) -> dict[str, list[dict[str, Any]]]:
    """Read the signature. Inputs, outputs and params are JSON in text; a text that is not is left out."""
    signature: dict[str, list[dict[str, Any]]] = {}
    for name in ("inputs", "outputs", "params"):
        text = value.get(name) if isinstance(value, dict) else None
        try:
            rows = json.loads(text) if isinstance(text, str) else None
        except (ValueError, RecursionError):
            continue
        if isinstance(rows, list):
            signature[name] = [_field(row) for row in rows[:_MAX_FIELDS] if isinstance(row, dict)]
    return signature


def _field(row: Mapping[str, Any]) -> dict[str, Any]:
    tensor = row.get("tensor-spec")
    tensor = tensor if isinstance(tensor, dict) else row
    shape = tensor.get("shape")
    return {
        "name": str(row.get("name") or "")[:_MAX_TEXT],
        "type": str(tensor.get("dtype") or tensor.get("type") or "")[:_MAX_TEXT],
        "shape": shape if _is_shape(shape) else None,
    }


def _is_shape(value: Any) -> bool:
    return isinstance(value, list) and all(type(size) is int for size in value) and len(value) <= 64
