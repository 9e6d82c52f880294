"""The inputs of a trial request as texts in form fields: signature → inputs, texts → body, body → texts.

The body is that of the Open Inference Protocol, with flat data. A body that the fields cannot express, such as
several texts where there is a field for one, has no texts.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import chain
from typing import Any, Final

from deployments.registry.domain.signatures import ANY, Signature
from deployments.serving.domain import file_inputs
from deployments.serving.domain.file_inputs import FileLayout
from portal.core.definitions import Rejected

# More fields than these would hide the button that sends them.
MAX_INPUTS: Final = 20
# So many zeros are written out; of a larger input an empty field sends them.
MAX_ZEROS_SHOWN: Final = 32
MAX_VALUES: Final = 1_000_000
# A longer text slows the browser down.
MAX_TEXT_LENGTH: Final = 250_000
_MAX_QUOTED: Final = 40
# Browsers make \n of a lone \r, and no field holds a zero byte.
_UNTYPABLE: Final = re.compile(r"[\r\x00]")
_SEPARATORS: Final = re.compile(r"[\s,;()\[\]]+")
_TIMES: Final = "\N{MULTIPLICATION SIGN}"
_SIZES: Final = re.compile(rf"[\s,x{_TIMES}\[\]]+")
_WHOLE: Final = re.compile(r"[+-]?[0-9]{1,20}")
_DECIMAL: Final = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
_FLAGS: Final = {"true": True, "1": True, "false": False, "0": False}
_RANGES: Final[Mapping[str, tuple[int, int]]] = {
    **{f"INT{bits}": (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) for bits in (8, 16, 32, 64)},
    **{f"UINT{bits}": (0, 2**bits - 1) for bits in (8, 16, 32, 64)},
}
_FLOATS: Final = frozenset({"FP16", "FP32", "FP64"})
_TENSOR_KEYS: Final = frozenset({"name", "datatype", "shape", "data"})


class InputKind(StrEnum):
    """The kind of a field: one number, numbers with a shape, one text, or a text on each line."""

    NUMBER = "number"
    NUMBERS = "numbers"
    TEXT = "text"
    TEXTS = "texts"


@dataclass(frozen=True, slots=True)
class InputText:
    """The text that a person entered for an input. An empty `shape` follows from the number of values. `content` is
    the values that a file became (`file_inputs`), in place of the text.
    """

    values: str
    shape: str = ""
    content: bytes = b""


@dataclass(frozen=True, slots=True)
class BuiltRequest:
    """A request. `binary` has the values that its body only counts, by the protocol's binary data extension."""

    body: dict[str, Any]
    binary: bytes = b""


@dataclass(frozen=True, slots=True)
class RequestInput:
    """An input that has a field. `dims` are those of requests, with the batch dimension; -1 is dynamic. `file` is how
    a file becomes its values, None where none does.
    """

    name: str
    datatype: str
    dims: tuple[int, ...]
    kind: InputKind
    file: FileLayout | None = None

    @property
    def takes_shape(self) -> bool:
        """Whether the number of values does not say the shape."""
        is_many = self.kind in {InputKind.NUMBERS, InputKind.TEXTS}
        return is_many and self.dims.count(ANY) > 1

    @property
    def default_shape(self) -> tuple[int, ...]:
        return tuple(1 if size == ANY else size for size in self.dims)

    @property
    def default_count(self) -> int:
        return math.prod(self.default_shape)

    @property
    def is_integer(self) -> bool:
        return self.datatype in _RANGES

    @property
    def is_unsigned(self) -> bool:
        return self.is_integer and _RANGES[self.datatype][0] == 0

    @property
    def shape_text(self) -> str:
        return format_shape(self.dims)

    @property
    def hint(self) -> str:
        """Say how the field is filled in, beside type and shape."""
        if self.kind == InputKind.TEXTS:
            return "One text per line."
        if self.kind != InputKind.NUMBERS:
            return ""
        if self.default_count > MAX_VALUES:
            return "Too large to be typed."
        if self.default_count > MAX_ZEROS_SHOWN:
            return f"Comma-separated. Leave empty to send {self.default_count:,} zeros."
        return "Comma-separated."


def format_shape(dims: Sequence[int]) -> str:
    """Format a shape as sizes with "any" for dynamic ones. Empty for a scalar."""
    return f" {_TIMES} ".join("any" if size == ANY else str(size) for size in dims)


def describe_inputs(
    signature: Signature, sampling_rate: int | None = None
) -> tuple[RequestInput, ...]:
    """Describe the fields of the inputs. Empty where only JSON can say them: without a known signature, with too
    many inputs, or with a type that JSON does not carry. `sampling_rate` is that of recordings, in hertz.
    """
    if len(signature.inputs) > MAX_INPUTS:
        return ()
    described = []
    for tensor in signature.inputs:
        dims, datatype = signature.wire_dims(tensor), tensor.protocol_dtype
        is_known = datatype in _RANGES or datatype in _FLOATS or datatype in {"BOOL", "BYTES"}
        if not is_known or any(size == 0 or size < ANY for size in dims):
            return ()
        item = dims[1:] if signature.is_batched else dims
        kind = _kind_of(datatype, item)
        file = None
        if kind == InputKind.NUMBERS:
            file = file_inputs.describe_file(datatype, dims, sampling_rate)
        described.append(RequestInput(tensor.name, datatype, dims, kind, file))
    # What a file becomes is not typed.
    is_small = sum(item.default_count for item in described if item.file is None) <= MAX_VALUES
    return tuple(described) if is_small else ()


def _kind_of(datatype: str, item: tuple[int, ...]) -> InputKind:
    if datatype == "BYTES":
        # A text is the item far more often than a list of texts.
        return InputKind.TEXT if all(size in {ANY, 1} for size in item) else InputKind.TEXTS
    is_one = all(size == 1 for size in item) and datatype != "BOOL"
    return InputKind.NUMBER if is_one else InputKind.NUMBERS


def default_texts(inputs: Sequence[RequestInput]) -> tuple[InputText, ...]:
    """Return the texts of zeros and empty texts."""
    return tuple(InputText(_default_text(item)) for item in inputs)


def _default_text(item: RequestInput) -> str:
    if item.datatype == "BYTES" or item.default_count > MAX_ZEROS_SHOWN:
        return ""
    return ", ".join([_format_value(_zero_of(item))] * item.default_count)


def values_field(index: int) -> str:
    """Return the name of the field with an input's values."""
    return f"input-{index}"


def shape_field(index: int) -> str:
    """Return the name of the field with an input's shape."""
    return f"shape-{index}"


def content_field(index: int) -> str:
    """Return the name of the field with the values that a file became."""
    return f"content-{index}"


def build_body(inputs: Sequence[RequestInput], texts: Sequence[InputText]) -> dict[str, Any]:
    """Build the body of a request without files. Raises Rejected with what is wrong by the name of the field."""
    return build_request(inputs, texts).body


def build_request(inputs: Sequence[RequestInput], texts: Sequence[InputText]) -> BuiltRequest:
    """Build the request. Raises Rejected with what is wrong by the name of the field."""
    tensors: list[dict[str, Any]] = []
    problems, messages, binary = {}, [], b""
    for index, (item, text) in enumerate(zip(inputs, texts, strict=True)):
        head = {"name": item.name, "datatype": item.datatype}
        try:
            if text.content:
                shape, count = _read_content(item, text.content)
                if count > file_inputs.MAX_JSON_VALUES:
                    size = {"binary_data_size": len(text.content)}
                    tensors.append({**head, "shape": list(shape), "parameters": size})
                    binary += text.content
                    continue
                data = file_inputs.read_values(item.datatype, text.content)
            else:
                shape, data = _read_tensor(item, text)
        except _WrongShape as problem:
            problems[shape_field(index)] = str(problem)
            messages.append(f"{item.name}: {problem}")
        except _WrongValues as problem:
            problems[values_field(index)] = str(problem)
            messages.append(f"{item.name}: {problem}")
        else:
            tensors.append({**head, "shape": list(shape), "data": data})
    if problems:
        raise Rejected(" ".join(messages), problems)
    return BuiltRequest({"inputs": tensors}, binary)


def read_texts(
    inputs: Sequence[RequestInput], body: Mapping[str, Any]
) -> tuple[InputText, ...] | None:
    """Return the texts that make the same request. None where the fields cannot express it."""
    tensors = _tensors_by_name(body)
    if tensors is None or sorted(tensors) != sorted(item.name for item in inputs):
        return None
    texts = tuple(_write_text(item, tensors[item.name]) for item in inputs)
    if sum(len(text.values) for text in texts) > MAX_TEXT_LENGTH or any(
        _UNTYPABLE.search(text.values) for text in texts
    ):
        return None
    try:
        made = build_body(inputs, texts)
    except Rejected:
        return None
    # As JSON: in Python 1 equals both 1.0 and True.
    same = json.dumps(made) == json.dumps({"inputs": [tensors[item.name] for item in inputs]})
    return texts if same else None


class _WrongValues(Exception):
    """The values of an input are wrong; the message says how to fix them."""


class _WrongShape(Exception):
    """The shape of an input is wrong; the message says how to fix it."""


def _read_content(item: RequestInput, content: bytes) -> tuple[tuple[int, ...], int]:
    """Return the shape of the values that a file became, and their number."""
    count = None if item.file is None else file_inputs.count_values(item.datatype, content)
    if count is None:
        raise _WrongValues("Choose the file again.")
    return _infer_shape(item, count), count


def _read_tensor(item: RequestInput, text: InputText) -> tuple[tuple[int, ...], list[Any]]:
    stated = _read_shape(item, text.shape) if item.takes_shape else None
    data = _read_values(item, text.values, stated)
    if data is None:
        shape = stated or item.default_shape
        if math.prod(shape) > MAX_VALUES:
            raise _WrongValues("Choose a file.")
        return shape, [_zero_of(item)] * math.prod(shape)
    if item.kind in {InputKind.NUMBER, InputKind.TEXT}:
        if len(data) != 1:
            raise _WrongValues(f"Enter one value, not {len(data):,}.")
        return item.default_shape, data
    return stated or _infer_shape(item, len(data)), data


def _read_shape(item: RequestInput, text: str) -> tuple[int, ...] | None:
    sizes = [size for size in _SIZES.split(text) if size]
    if not sizes:
        return None
    if not all(_WHOLE.fullmatch(size) for size in sizes):
        raise _WrongShape(f"Enter a shape such as {', '.join(map(str, item.default_shape))}.")
    shape = tuple(map(int, sizes))
    fits = len(shape) == len(item.dims) and all(
        size == dim or (dim == ANY and size > 0) for size, dim in zip(shape, item.dims, strict=True)
    )
    if not fits:
        raise _WrongShape(f"Enter a shape that fits {item.shape_text}.")
    if math.prod(shape) > MAX_VALUES:
        raise _WrongShape(f"Enter a shape of at most {MAX_VALUES:,} values.")
    return shape


def _read_values(item: RequestInput, text: str, stated: tuple[int, ...] | None) -> list[Any] | None:
    """Return the values, of the stated shape if there is one. None for zeros."""
    # Browsers send line ends as \r\n.
    text = text.replace("\r\n", "\n")
    data: list[Any]
    if item.kind == InputKind.TEXT:
        return [text]
    if item.kind == InputKind.TEXTS:
        data = text.split("\n") if text else []
    else:
        read = _reader_of(item.datatype)
        data = [read(word) for word in _SEPARATORS.split(text) if word]
    if not data:
        return None
    if stated is not None and len(data) != math.prod(stated):
        raise _WrongValues(f"Enter {_count(math.prod(stated))} for this shape, not {len(data):,}.")
    return data


def _infer_shape(item: RequestInput, count: int) -> tuple[int, ...]:
    """Return the shape of so many values: the last dynamic dimension takes them, other dynamic ones are 1."""
    shape = list(item.default_shape)
    size_of_rest = math.prod(shape)
    if ANY not in item.dims:
        if count != size_of_rest:
            raise _WrongValues(f"Enter {_count(size_of_rest)}, not {count:,}.")
        return tuple(shape)
    if count % size_of_rest:
        raise _WrongValues(f"Enter a multiple of {_count(size_of_rest)}, not {count:,}.")
    last = len(item.dims) - 1 - item.dims[::-1].index(ANY)
    shape[last] = count // size_of_rest
    return tuple(shape)


def _count(values: int) -> str:
    return "1 value" if values == 1 else f"{values:,} values"


def _reader_of(datatype: str) -> Callable[[str], Any]:
    if datatype == "BOOL":
        return _read_flag
    if datatype in _FLOATS:
        return _read_float
    return lambda word: _read_integer(word, *_RANGES[datatype])


def _read_flag(word: str) -> bool:
    if word.lower() not in _FLAGS:
        raise _WrongValues(f"Enter true or false, not {_quote(word)}.")
    return _FLAGS[word.lower()]


def _read_float(word: str) -> int | float:
    if _WHOLE.fullmatch(word):
        return int(word)
    value = float(word) if _DECIMAL.fullmatch(word) else math.nan
    if not math.isfinite(value):
        raise _WrongValues(f"Enter finite numbers, not {_quote(word)}.")
    return value


def _read_integer(word: str, least: int, most: int) -> int:
    if not _WHOLE.fullmatch(word):
        raise _WrongValues(f"Enter whole numbers, not {_quote(word)}.")
    value = int(word)
    if not least <= value <= most:
        raise _WrongValues(f"Enter whole numbers from {least:,} to {most:,}, not {_quote(word)}.")
    return value


def _quote(word: str) -> str:
    return f"“{word[:_MAX_QUOTED]}”"


def _zero_of(item: RequestInput) -> Any:
    return {"BYTES": "", "BOOL": False}.get(item.datatype, 0)


def _tensors_by_name(body: Mapping[str, Any]) -> dict[str, dict[str, Any]] | None:
    """Return the inputs with flat data. None for a body that says more than inputs, or is none."""
    rows = body.get("inputs")
    if set(body) != {"inputs"} or not isinstance(rows, list):
        return None
    tensors: dict[str, dict[str, Any]] = {}
    for row in rows:
        is_tensor = isinstance(row, Mapping) and set(row) == _TENSOR_KEYS
        if not is_tensor or not isinstance(row["data"], list):
            return None
        name = row["name"]
        if not isinstance(name, str) or name in tensors:
            return None
        tensors[name] = {
            "name": name,
            "datatype": row["datatype"],
            "shape": row["shape"],
            "data": flatten(row["data"]),
        }
    return tensors


def flatten(data: list[Any]) -> list[Any]:
    """Return nested lists as one flat list, row by row."""
    while any(isinstance(value, list) for value in data):
        data = list(
            chain.from_iterable(value if isinstance(value, list) else [value] for value in data)
        )
    return data


def _write_text(item: RequestInput, tensor: Mapping[str, Any]) -> InputText:
    data, sizes = tensor["data"], tensor["shape"]
    zero = _zero_of(item)
    is_zeros = all(type(value) is type(zero) and value == zero for value in data)
    is_long = item.datatype == "BYTES" or len(data) > MAX_ZEROS_SHOWN
    is_empty = is_zeros and is_long and (item.takes_shape or sizes == list(item.default_shape))
    values = "" if is_empty else _separator_of(item).join(map(_format_value, data))
    implied = item.default_shape if is_empty else _shape_of_count(item, len(data))
    is_stated = item.takes_shape and isinstance(sizes, list) and sizes != list(implied)
    return InputText(values, ", ".join(map(str, sizes)) if is_stated else "")


def _separator_of(item: RequestInput) -> str:
    return "\n" if item.datatype == "BYTES" else ", "


def _shape_of_count(item: RequestInput, count: int) -> tuple[int, ...]:
    try:
        return _infer_shape(item, count)
    except _WrongValues:
        return ()


def _format_value(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)
