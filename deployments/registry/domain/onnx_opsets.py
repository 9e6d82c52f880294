"""Operator sets that ONNX Runtime serves, and how to convert a model from another one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

# ONNX Runtime guarantees it and later ones; of older ones it has some operators (docs: "Compatibility").
OLDEST: Final = 7
_TARGET: Final = 17
_DOMAIN: Final = "ai.onnx"


def is_old(opset: int) -> bool:
    """Whether the runtime may lack operators only because the opset is old. 0 means not stated."""
    return 0 < opset < OLDEST


def opset_of(facts: Mapping[str, Any]) -> int:
    """The version of the standard domain in the facts of a signature; 0 if there is none."""
    return int(facts.get("opset", {}).get(_DOMAIN, 0))


def describe_conversion(opset: int) -> str:
    return (
        f"It has opset {opset}, and ONNX Runtime serves opset {OLDEST} and later. Convert it: "
        f"onnx.save({_call(_TARGET)}, 'converted.onnx')."
    )


def describe_downgrade(newest: str) -> str:
    """`newest` is the opset that the runtime supports."""
    return f"Convert it to an older opset: onnx.save({_call(newest)}, 'converted.onnx')."


def _call(opset: object) -> str:
    return f"onnx.version_converter.convert_version(onnx.load('model.onnx'), {opset})"
