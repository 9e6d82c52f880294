"""Count the parameters of quantised weights, whose tensors hold several numbers in each element.

Formats: GPTQ and AWQ pack into I32 (`qweight`), compressed-tensors into I32 (`weight_packed`) or, as NVFP4 and MXFP4, into
U8, ModelOpt's NVFP4 and bitsandbytes into U8 (`weight`), gpt-oss' MXFP4 into U8 (`…_blocks`), HQQ into `W_q`, BitNet four
numbers into U8. Scales, zero points and indices beside them are no parameters.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from deployments.registry.domain.hugging_face.safetensors import StoredTensor, Tensors
from deployments.registry.domain.not_servable import printable

MODELOPT_FILE: Final = "hf_quant_config.json"
_WORD_BITS: Final = {"I32": 32, "U32": 32, "U8": 8}
# Packed in U8 by these methods, whatever number of bits they state.
_FOUR_BITS_IN_BYTES: Final = (
    *("mxfp4", "nvfp4", "modelopt", "bitsandbytes", "quark", "petit", "fp_quant"),
)
_TWO_BITS_IN_BYTES: Final = ("bitnet",)
# Last part of a tensor's name, or its end.
_NOT_WEIGHTS: Final = (
    *(
        "scale",
        "scales",
        "_scale_inv",
        "_scale_2",
        "_shape",
        "zero_point",
        ".zero",
        "qzeros",
        "zeros",
    ),
    *("g_idx", "_idx", "perm", "absmax", "quant_map", "SCB", "weight_format", "workspace"),
    *("_scb", "_offset"),
)
# GPTQ and AWQ, AutoAWQ, older GPTQ, HQQ.
_BITS_NAMES: Final = ("bits", "w_bit", "wbits", "nbits")
_QUANT_STATE: Final = ".quant_state."
_MAX_BITS: Final = 16


@dataclass(frozen=True, slots=True)
class QuantizedGroup:
    """A group of weights with the same number of bits; `size` share a scale, 0 if not stated. Floating-point
    formats are `is_float`.
    """

    bits: int
    size: int = 0
    is_float: bool = False


@dataclass(frozen=True, slots=True)
class Quantization:
    """The quantization of the weights. `method` is empty without one."""

    method: str = ""
    groups: tuple[QuantizedGroup, ...] = ()

    @property
    def integer_bits(self) -> int:
        """The bits of the weights if they are integers and have the same everywhere; otherwise 0."""
        bits = {0 if group.is_float else group.bits for group in self.groups}
        return bits.pop() if len(bits) == 1 else 0


def read(config: Mapping[str, Any], modelopt: Mapping[str, Any]) -> Quantization:
    """Read the quantization. `config` is config.json with its language part; `modelopt` is ModelOpt's own file,
    or empty.
    """
    stated = config.get("quantization_config") or config.get("compression_config") or modelopt
    if not isinstance(stated, dict):
        return Quantization()
    inner = stated.get("quantization")
    detail = {**stated, **inner} if isinstance(inner, dict) else stated
    algorithm = _text(detail.get("quant_algo")).lower()
    method = _text(stated.get("quant_method")).lower()
    method = method.replace("compressed_tensors", "compressed-tensors")
    if not method and (algorithm or "producer" in stated):
        method = "modelopt"
    return Quantization(method, tuple(_groups(detail, algorithm)))


def count_parameters(tensors: Tensors, quantization: Quantization) -> int:
    if not quantization.method:
        return sum(tensor.elements for tensor in tensors.rows.values())
    return sum(
        _unpacked(name, tensor, tensors, quantization)
        for name, tensor in tensors.rows.items()
        if not _is_beside_weights(name)
    )


def _groups(stated: Mapping[str, Any], algorithm: str) -> Iterator[QuantizedGroup]:
    if "fp4" in algorithm:
        yield QuantizedGroup(4, is_float=True)
    if stated.get("load_in_4bit") is True:
        # bitsandbytes: normal or floating-point numbers.
        yield QuantizedGroup(4, is_float=True)
    yield from _compressed_groups(stated.get("config_groups"))
    for place in (stated, _part(stated, "quant_config", "weight_quant_params")):
        for name in _BITS_NAMES:
            if bits := _bits(place.get(name)):
                yield QuantizedGroup(bits)
    dtype = _text(_part(stated, "global_quant_config", "weight").get("dtype"))
    if dtype.endswith("int4"):
        yield QuantizedGroup(4)


def _compressed_groups(groups: Any) -> Iterator[QuantizedGroup]:
    """Yield groups of compressed-tensors."""
    for group in groups.values() if isinstance(groups, dict) else ():
        weights = _part(group, "weights")
        if bits := _bits(weights.get("num_bits")):
            size = weights.get("group_size")
            is_float = _text(weights.get("type")) == "float"
            yield QuantizedGroup(bits, size if type(size) is int and size > 0 else 0, is_float)


def _part(stated: Any, *names: str) -> Mapping[str, Any]:
    found: Any = stated
    for name in names:
        found = found.get(name) if isinstance(found, dict) else None
    return found if isinstance(found, dict) else {}


def _is_beside_weights(name: str) -> bool:
    return name.endswith(_NOT_WEIGHTS) or _QUANT_STATE in name


def _unpacked(name: str, tensor: StoredTensor, tensors: Tensors, quantization: Quantization) -> int:
    width = _WORD_BITS.get(tensor.dtype, 0)
    if width == 8:
        bits = _bits_in_bytes(name, tensor, tensors, quantization)
    else:
        bits = _bits_of(name, tensor, width, tensors, quantization.groups)
    return tensor.elements * width // bits if width and bits else tensor.elements


def _bits_in_bytes(
    name: str, tensor: StoredTensor, tensors: Tensors, quantization: Quantization
) -> int:
    """Return the bits of one number of a U8 tensor, which holds packed numbers, but in formats whose numbers
    have eight bits.
    """
    if quantization.method.startswith(_TWO_BITS_IN_BYTES):
        return 2
    if quantization.method.startswith(_FOUR_BITS_IN_BYTES):
        return 4
    return _bits_of(name, tensor, 8, tensors, quantization.groups)


def _bits_of(
    name: str, tensor: StoredTensor, width: int, tensors: Tensors, groups: Iterable[QuantizedGroup]
) -> int:
    """Return the bits of one packed number. 0 if the tensor is not packed.

    Where groups differ, the shape of the scales tells which of them the tensor belongs to.
    """
    options = {group.bits: group for group in groups if group.bits < width}
    if not options:
        return 0
    scales = tensors.rows.get(name.removesuffix("_packed") + "_scale")
    if len(options) > 1 and scales is not None and tensor.shape and scales.shape:
        for bits, group in options.items():
            if group.size and tensor.shape[-1] * width // bits == scales.shape[-1] * group.size:
                return bits
    return next(iter(options))


def _bits(value: Any) -> int:
    return value if type(value) is int and 0 < value <= _MAX_BITS else 0


def _text(value: Any) -> str:
    return printable(value)[:40] if isinstance(value, str) else ""
