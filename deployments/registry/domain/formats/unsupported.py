"""Refused files of frameworks that are served, and how to convert them; archives; what is not recognised."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import Final

from deployments.registry.domain.artifacts import zip_names
from deployments.registry.domain.artifacts.reading import Artifact
from deployments.registry.domain.formats.format import Format, single_file, zip_of
from deployments.registry.domain.hugging_face import safetensors

_SEVEN_ZIP: Final = b"7z\xbc\xaf\x27\x1c"
_HDF5: Final = b"\x89HDF\r\n\x1a\n"
_SAVE_AGAIN: Final = "Export the model to ONNX: torch.onnx.export(model, example, 'model.onnx')."
_KERAS: Final = "In Keras 3: model.export('model.onnx', format='onnx')."

# The magic number that torch.save pickles first, as an integer of ten bytes (pytorch/pytorch, torch/serialization.py).
_TORCH_MAGIC: Final = b"\x8a\x0a" + (0x1950A86A20F9469CFC6C).to_bytes(10, "little")
_PICKLE_PROTO: Final = 0x80
_TAR_MEMBERS: Final = frozenset({"sys_info", "pickle", "storages", "tensors"})


def _is_legacy_torch(head: bytes, _: str) -> bool:
    """Return whether the file is in PyTorch's legacy format: a pickle of PyTorch's magic number. A protocol of
    4 or more puts a frame between the two.
    """
    return bool(head) and head[0] == _PICKLE_PROTO and _TORCH_MAGIC in head[:32]


def _legacy_tar(artifact: Artifact) -> str | None:
    """Return the members of the tar file, which was unpacked."""
    names = {PurePosixPath(path).name for path in artifact.sizes}
    return "" if names == _TAR_MEMBERS else None


SAFETENSORS: Final = Format(
    key="safetensors",
    name="safetensors (weights without a graph)",
    detect=single_file(lambda head, _: safetensors.may_be_safetensors(head)),
    advice="Upload the whole folder of a language model (config.json, tokenizer and weights), as "
    "save_pretrained writes it. For another model export it with its graph: "
    "torch.onnx.export(model, example, 'model.onnx').",
)
HDF5: Final = Format(
    key="hdf5",
    name="HDF5 (Keras)",
    detect=single_file(lambda head, _: head.startswith(_HDF5)),
    advice=f"Load it with keras.models.load_model and export it. {_KERAS}",
)
KERAS: Final = Format(
    key="keras",
    name="Keras (.keras)",
    detect=zip_of(zip_names.KERAS),
    advice=f"Export it. {_KERAS}",
)
SKOPS: Final = Format(
    key="skops",
    name="a file of skops (scikit-learn)",
    detect=zip_of(zip_names.SKOPS),
    advice="No runtime reads it. Export the model to ONNX with skl2onnx; or save a RandomForest, ExtraTrees or "
    "DecisionTree alone: joblib.dump(model, 'model.joblib').",
)
TORCHSERVE: Final = Format(
    key="torchserve",
    name="a TorchServe archive (.mar)",
    detect=zip_of(zip_names.TORCHSERVE),
    advice=f"Its handler is code for TorchServe. {_SAVE_AGAIN}",
)
TORCH_EXPORT: Final = Format(
    key="pt2",
    name="a torch.export program (.pt2)",
    detect=zip_of(zip_names.TORCH_EXPORT),
    advice=_SAVE_AGAIN,
)
TORCH_LEGACY: Final = Format(
    key="pytorch_legacy",
    name="PyTorch (torch.save in the format before 1.6)",
    detect=single_file(_is_legacy_torch),
    advice="Its weights have no graph, and no engine loads them. Load it where the model was trained, and export it: "
    "torch.onnx.export(model, example, 'model.onnx').",
)
TORCH_TAR: Final = Format(
    key="pytorch_tar",
    name="PyTorch (torch.save in the tar format before 0.2)",
    detect=_legacy_tar,
    advice=f"No engine loads it. Load it with an old release of PyTorch. {_SAVE_AGAIN}",
)
ZIP: Final = Format(
    key="zip",
    name="a zip archive that is damaged, or inside another archive",
    detect=single_file(lambda head, _: head.startswith(zip_names.MAGIC)),
    advice="Pack the files of the model again, or upload them as a folder.",
)
SEVEN_ZIP: Final = Format(
    key="7z",
    name="a 7z archive",
    detect=single_file(lambda head, _: head.startswith(_SEVEN_ZIP)),
    advice="Unpack it and upload the files that it contains.",
)
UNKNOWN_FOLDER: Final = Format(
    key="unknown_folder",
    name="an unsupported format",
    detect=lambda artifact: "" if len(artifact.sizes) > 1 else None,
    advice="A folder is one ONNX file with the files of its weights, a Triton repository (config.pbtxt), a language "
    "model of Hugging Face (config.json and safetensors), a SavedModel (saved_model.pb) or OpenVINO (.xml and "
    ".bin). Upload the folder of one of these, without others around it.",
)
UNKNOWN: Final = Format(
    key="unknown",
    name="an unsupported format",
    detect=lambda _: "",
    advice="Upload an ONNX file (export it with torch.onnx.export, skl2onnx or tf2onnx), or a model that "
    "XGBoost or LightGBM saved with save_model.",
)
