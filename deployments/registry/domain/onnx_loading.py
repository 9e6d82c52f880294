"""Load an ONNX file with ONNX Runtime, like Triton. In deployments/registry/gateways/sandbox.py only."""

from __future__ import annotations

import re
from typing import Any, Final

import onnxruntime
from onnxruntime.capi import onnxruntime_pybind11_state as runtime_errors

from deployments.registry.domain.not_servable import NotServable

# The runtime knows the operator but has no CPU kernel for it.
_NO_KERNEL: Final[type[Exception]] = getattr(runtime_errors, "Not" + "Implemented")
REFUSALS: Final = (
    runtime_errors.Fail,
    runtime_errors.InvalidArgument,
    runtime_errors.InvalidGraph,
    runtime_errors.InvalidProtobuf,
    runtime_errors.RuntimeException,
    runtime_errors.EPFail,
    runtime_errors.NoModel,
)
# Raised during a run, including by the bindings for values that they cannot convert.
RUN_ERRORS: Final = (
    *REFUSALS,
    _NO_KERNEL,
    RuntimeError,
    TypeError,
    ValueError,
)
# The prefix of the runtime's messages: error class, file and source line.
_PREFIXES: Final = re.compile(
    r"^\[ONNXRuntimeError\] : \d+ : \w+ : |Load model from \S+ failed:|/\S+\.(?:cc|h):\d+ [^\n]*?\) "
)
_NEWEST_OPSET: Final = re.compile(r"official support for domain ai\.onnx is till opset (\d+)")
_NEWEST_IR: Final = re.compile(
    r"Unsupported model IR version: \d+, max supported IR version: (\d+)"
)
# ONNX Runtime guarantees it and later ones (docs: "Compatibility"); of older ones it has some operators.
OLDEST_OPSET: Final = 7
_CONVERTED_OPSET: Final = 17
_MAX_MESSAGE_LENGTH: Final = 300


def open_session(path: str) -> Any:
    """Return a single-threaded session with the default optimisations."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4
    return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])


def load(argument: dict[str, Any]) -> dict[str, Any]:
    """Load a model in the sandbox: {"path", "opset"} to {"runtime": version, "missing_kernel": message}. Raises
    NotServable.

    An operator without a CPU kernel may still run on a GPU.
    """
    version, opset = onnxruntime.__version__, int(argument.get("opset", 0))
    try:
        session = open_session(argument["path"])
    except _NO_KERNEL as error:
        message = plain(str(error))
        if _is_old(opset):
            raise NotServable(
                f"ONNX Runtime {version} does not run this model: {message} "
                f"{_describe_conversion(opset)}"
            ) from error
        return {"runtime": version, "missing_kernel": message}
    except REFUSALS as error:
        raise NotServable(
            f"ONNX Runtime {version} cannot load this model: {plain(str(error))} {_fix(str(error), opset)}"
        ) from error
    return {
        "runtime": version,
        "missing_kernel": "",
        "inputs": [value.name for value in session.get_inputs()],
        "outputs": [value.name for value in session.get_outputs()],
    }


def _fix(message: str, opset: int) -> str:
    if _is_old(opset):
        return _describe_conversion(opset)
    if newest := _NEWEST_OPSET.search(message):
        return f"Convert it to an older opset: {_conversion_to(newest[1])}."
    if newest := _NEWEST_IR.search(message):
        return f"Save it with that version: model.ir_version = {newest[1]}, then onnx.save(model, 'model.onnx')."
    if "Failed to construct locale" in message:
        return (
            "Its StringNormalizer names no locale, or one that images of servers lack. Name C.UTF-8; with skl2onnx: "
            "options={'STEP__locale': 'C.UTF-8'}, where STEP is the vectorizer in the pipeline."
        )
    return "Export it again with standard operators; run onnx.checker.check_model(path, full_check=True) for details."


def _is_old(opset: int) -> bool:
    """Whether the runtime may lack operators only because the opset is old. 0 means not stated."""
    return 0 < opset < OLDEST_OPSET


def _describe_conversion(opset: int) -> str:
    return (
        f"It has opset {opset}, and ONNX Runtime serves opset {OLDEST_OPSET} and later. Convert it: "
        f"{_conversion_to(_CONVERTED_OPSET)}."
    )


def _conversion_to(opset: object) -> str:
    converted = f"onnx.version_converter.convert_version(onnx.load('model.onnx'), {opset})"
    return f"onnx.save({converted}, 'converted.onnx')"


def plain(message: str) -> str:
    """Return the runtime's message without paths and source lines."""
    text = " ".join(_PREFIXES.sub("", message).split())
    text = "".join(char for char in text if char.isprintable())
    return text[:_MAX_MESSAGE_LENGTH].rstrip(". ") + "."
