"""The task of the sandbox that reads the signature of a SavedModel, and the sizes of its variables.

Messages: tensorflow/core/protobuf/{saved_model,meta_graph,struct}.proto and framework/{types,tensor_shape}.proto.
Of the graph only the variables are read, and none of their bytes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final

from deployments.registry.domain.artifacts.reading import Artifact, open_file
from deployments.registry.domain.input_sizes import MAX_DIM
from deployments.registry.domain.not_servable import NotServable, printable, quote
from deployments.registry.domain.saved_model.wire import Malformed, WireMessage
from deployments.registry.domain.signatures import ANY

SIGNATURE: Final = "serving_default"
_TAG: Final = "serve"
_INIT: Final = "__saved_model_init_op"
_MAX_TENSORS: Final = 1000
_MAX_NAME: Final = 200
_SHARD: Final = re.compile(r"variables\.data-(\d{5})-of-(\d{5})")
_INDEX: Final = "variables/variables.index"
# Those that Triton's OpenVINO backend has too (openvino_backend, src/openvino_utils.cc).
_DTYPES: Final = {
    1: "FP32",
    3: "INT32",
    4: "UINT8",
    5: "INT16",
    6: "INT8",
    9: "INT64",
    10: "BOOL",
    17: "UINT16",
    19: "FP16",
    22: "UINT32",
    23: "UINT64",
}
_OTHER_DTYPES: Final = {2: "64-bit floats", 7: "strings", 14: "bfloat16"}
_VARIABLES: Final = frozenset({"VarHandleOp", "VariableV2"})
_FLOATS: Final = frozenset({1, 2, 14, 19})
_MAX_ELEMENTS: Final = 2**44
_EXPORT: Final = (
    "Export the model again: model.export('folder') in Keras 3, tf.saved_model.save otherwise."
)


@dataclass(frozen=True, slots=True)
class TensorFact:
    """A row of deployments.registry.domain.signatures.Tensor."""

    name: str
    dtype: str
    dims: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class SavedModelFacts:
    """The facts of a SavedModel. `graph_bytes` is the size of saved_model.pb, which contains constants.
    `parameters` are the elements of all floating-point variables, those of an optimizer that was saved too
    included; None if one has no shape.
    """

    inputs: tuple[TensorFact, ...]
    outputs: tuple[TensorFact, ...]
    tensorflow: str
    graph_bytes: int
    variables_bytes: int
    parameters: int | None

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def read(argument: Mapping[str, Any], artifact: Artifact) -> dict[str, Any]:
    """Read a SavedModel in the sandbox: {"main"}, the path of saved_model.pb, to SavedModelFacts as JSON.
    Raises NotServable.
    """
    main = str(argument["main"])
    folder = main.rpartition("saved_model.pb")[0]
    size = artifact.sizes[main]
    with open_file(artifact, main) as file:
        try:
            graph = _serving_graph(WireMessage(file, 0, size))
            signature = _signature(graph)
            inputs, outputs = _tensors(signature, 1), _tensors(signature, 2)
            version = next((t for m in graph.messages(1) for t in m.texts(5)), "")
            parameters = _parameters(graph)
        except Malformed as error:
            raise NotServable(f"{main} is damaged or cut off: {error}. {_EXPORT}") from error
    if not inputs or not outputs:
        raise NotServable(f"{SIGNATURE} has no {'outputs' if inputs else 'inputs'}. {_EXPORT}")
    return SavedModelFacts(
        inputs=inputs,
        outputs=outputs,
        tensorflow=printable(version)[:40],
        graph_bytes=size,
        variables_bytes=_variables_bytes(artifact.sizes, folder),
        parameters=parameters,
    ).to_json()


def _serving_graph(model: WireMessage) -> WireMessage:
    tags: list[str] = []
    for graph in model.messages(2):
        own = [tag for info in graph.messages(1) for tag in info.texts(4)]
        if own == [_TAG]:
            return graph
        tags.append("+".join(own) or "no tag")
    known = ", ".join(map(quote, tags[:3])) or "no graph"
    raise NotServable(f"The model has no graph with the tag “{_TAG}” alone, but {known}. {_EXPORT}")


def _signature(graph: WireMessage) -> WireMessage:
    signatures = dict(graph.entries(5))
    if SIGNATURE in signatures:
        return signatures[SIGNATURE]
    others = ", ".join(quote(name) for name in sorted(signatures) if name != _INIT)
    raise NotServable(
        f"The model has no signature {SIGNATURE}, but {others or 'none'}. Save it with "
        f"tf.saved_model.save(model, 'folder', signatures={{'{SIGNATURE}': function}})."
    )


def _tensors(signature: WireMessage, number: int) -> tuple[TensorFact, ...]:
    """Return the tensors of a signature, sorted by name because a map has no order. Raises NotServable for too
    many.
    """
    rows = dict(signature.entries(number))
    if len(rows) > _MAX_TENSORS:
        raise NotServable(f"{SIGNATURE} has {len(rows):,} tensors; the limit is {_MAX_TENSORS:,}.")
    return tuple(_tensor(name, rows[name], is_input=number == 1) for name in sorted(rows))


def _tensor(name: str, info: WireMessage, *, is_input: bool) -> TensorFact:
    if not 0 < len(name) <= _MAX_NAME or not name.isprintable():
        raise NotServable(
            f"A tensor is named {quote(name)}. Use 1 to {_MAX_NAME} printable characters."
        )
    numbers = {field.number for field in info.fields()}
    if numbers & {4, 5}:
        raise NotServable(
            f"{quote(name)} is sparse or ragged, but Triton serves dense tensors only."
        )
    dtype = info.number(2)
    if dtype not in _DTYPES:
        kind = _OTHER_DTYPES.get(dtype, f"TensorFlow's type {dtype}")
        raise NotServable(
            f"{quote(name)} has {kind}, which Triton's OpenVINO backend does not serve. Cast it in "
            "the model, or convert it: python -m tf2onnx.convert --saved-model FOLDER --output model.onnx."
        )
    dims = _dims(name, next(info.messages(3), None))
    if is_input and not dims:
        raise NotServable(
            f"{quote(name)} is a scalar, which Triton's OpenVINO backend does not take. Give it a "
            "dimension."
        )
    return TensorFact(name, _DTYPES[dtype], dims)


def _dims(name: str, shape: WireMessage | None) -> tuple[int, ...]:
    if shape is None or shape.number(3):
        raise NotServable(
            f"{quote(name)} has no rank. Export the model with shapes, -1 for dynamic dimensions."
        )
    dims = tuple(dim.number(1) for dim in shape.messages(2))
    wrong = [dim for dim in dims if dim != ANY and not 0 < dim <= MAX_DIM]
    if wrong:
        raise NotServable(
            f"{quote(name)} has the dimension {wrong[0]:,}. Use 1 to {MAX_DIM:,}, or -1."
        )
    return dims


def _parameters(graph: WireMessage) -> int | None:
    """Count the elements of the variables among the nodes of the graph."""
    total = 0
    for definition in graph.messages(2):
        for node in definition.messages(1):
            if next(node.texts(2), "") not in _VARIABLES:
                continue
            attributes = dict(node.entries(5))
            if "dtype" not in attributes or attributes["dtype"].number(6) not in _FLOATS:
                continue
            count = _elements(attributes.get("shape"))
            if count is None:
                return None
            total += count
    return total


def _elements(attribute: WireMessage | None) -> int | None:
    """Count the elements of a tensor by its shape. None for a shape that is not known, or not plausible."""
    shape = None if attribute is None else next(attribute.messages(7), None)
    if shape is None or shape.number(3):
        return None
    count = 1
    for dim in shape.messages(2):
        count *= dim.number(1)
        if not 0 <= count <= _MAX_ELEMENTS:
            return None
    return count


def _variables_bytes(sizes: Mapping[str, int], folder: str) -> int:
    """Sum the bytes of the variables and require all shards. A missing one would be noticed by the server only,
    after a download of the others. Raises NotServable.
    """
    shards = {
        path.removeprefix(f"{folder}variables/"): size
        for path, size in sizes.items()
        if path.startswith(f"{folder}variables/") and _SHARD.fullmatch(path.rpartition("/")[2])
    }
    expected = _expected_shards(shards)
    missing = sorted(expected - shards.keys())
    if shards and f"{folder}{_INDEX}" not in sizes:
        missing = [_INDEX, *missing]
    if missing:
        raise NotServable(f"{missing[0]} is missing. Upload the whole folder of the SavedModel.")
    if f"{folder}{_INDEX}" in sizes and not shards:
        raise NotServable(
            "variables/variables.data-00000-of-00001 is missing. Upload the whole folder of the SavedModel."
        )
    return sum(shards.values())


def _expected_shards(names: Iterable[str]) -> set[str]:
    counts = {int(match[2]) for name in names if (match := _SHARD.fullmatch(name))}
    most = max(counts, default=0)
    return {f"variables.data-{number:05}-of-{most:05}" for number in range(min(most, 2000))}
