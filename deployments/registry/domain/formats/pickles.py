"""Formats that contain pickles, which execute code when they are loaded."""

from __future__ import annotations

from typing import Final

from deployments.registry.domain.artifacts import zip_names
from deployments.registry.domain.artifacts.reading import Artifact
from deployments.registry.domain.formats import forests
from deployments.registry.domain.formats.format import ArtifactReading, Format, single_file, zip_of
from deployments.registry.domain.formats.onnx import may_be_onnx

_PROTO: Final = 0x80
_HIGHEST_PROTOCOL: Final = 5
_NUMPY: Final = b"\x93NUMPY"
_NAMES: Final = (".pkl", ".pickle", ".joblib", ".pt", ".pth", ".bin", ".ckpt", ".dat")


def _is_pickle(head: bytes, name: str) -> bool:
    """Return whether the file is a pickle. Protocol 2 and later have a marker; older ones are plain text, so
    the name decides.
    """
    if len(head) >= 2 and head[0] == _PROTO and head[1] <= _HIGHEST_PROTOCOL:
        return True
    return name.endswith(_NAMES) and not may_be_onnx(head)


def _detect_arrays(artifact: Artifact) -> str | None:
    detect = single_file(lambda head, _: head.startswith(_NUMPY))
    path = detect(artifact)
    return zip_of(zip_names.NUMPY)(artifact) if path is None else path


PICKLE: Final = Format(
    key="pickle",
    name="pickle",
    listed_as="forest of scikit-learn (joblib or pickle, after a release)",
    # After its release: forests of scikit-learn, whatever else it holds is refused.
    reading=ArtifactReading(
        "deployments.registry.domain.forests.scikit_learn:read", forests.conclude_converted
    ),
    detect=single_file(_is_pickle),
    endings=_NAMES,
    has_code=True,
    is_read_before_release=True,
    is_read_locally=True,
)
PYTORCH: Final = Format(
    key="pytorch",
    name="PyTorch (torch.save)",
    detect=zip_of(zip_names.PYTORCH),
    export_advice="Export the model to ONNX with its graph: torch.onnx.export(model, example, 'model.onnx'); or save "
    "TorchScript: torch.jit.trace(model, example).save('model.pt').",
    has_code=True,
    is_read_locally=True,
)
NUMPY: Final = Format(
    key="numpy",
    name="NumPy",
    detect=_detect_arrays,
    endings=(".npy", ".npz"),
    export_advice="It holds arrays, not a model. Export the model to ONNX.",
    has_code=True,
    is_read_locally=True,
)
