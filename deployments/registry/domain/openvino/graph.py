"""Collect what describes a model from OpenVINO's XML as it is read: layers, their tensors and edges.

Expat is used directly: no tree is built, and a document with a DOCTYPE, which entities need, is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import IO, Any, Final
from xml.parsers import expat

from deployments.registry.domain.not_servable import NotServable, quote

_CHUNK_BYTES: Final = 2**20
_MAX_LAYERS: Final = 500_000
_MAX_DEPTH: Final = 100
# The path of the elements of the model itself; bodies of loops repeat them further down.
_LAYER: Final = ("net", "layers", "layer")
_EDGE: Final = ("net", "edges", "edge")


@dataclass(slots=True)
class Port:
    precision: str = ""
    names: tuple[str, ...] = ()
    dims: list[str] = field(default_factory=list)


@dataclass(slots=True)
class Layer:
    """A layer. `opset` is its version, as "opset1" for a standard one."""

    name: str
    kind: str
    opset: str
    names: tuple[str, ...] = ()
    inputs: dict[str, Port] = field(default_factory=dict)
    outputs: dict[str, Port] = field(default_factory=dict)


@dataclass(slots=True)
class Graph:
    """The graph of a model. `weights` are offset and size of each constant with its element type, those of
    inner bodies included. `edges` leads from a layer's input port to the layer and port that feed it.
    """

    version: str = ""
    layers: dict[str, Layer] = field(default_factory=dict)
    edges: dict[tuple[str, str], tuple[str, str]] = field(default_factory=dict)
    weights: dict[tuple[int, int], str] = field(default_factory=dict)
    opsets: set[str] = field(default_factory=set)


def read(file: IO[bytes]) -> Graph:
    """Read the graph from its XML. Raises NotServable."""
    collector = _Collector()
    parser = expat.ParserCreate()
    parser.StartElementHandler = collector.start
    parser.EndElementHandler = collector.end
    parser.CharacterDataHandler = collector.text
    parser.StartDoctypeDeclHandler = _refuse_doctype
    parser.EntityDeclHandler = _refuse_doctype
    parser.buffer_text = True
    try:
        for chunk in _chunks(file):
            parser.Parse(chunk, False)  # noqa: FBT003  expat has no names for arguments
        parser.Parse(b"", True)  # noqa: FBT003  as above
    except expat.ExpatError as error:
        raise NotServable(
            f"The XML is damaged or cut off: {error}. Save the model again."
        ) from error
    if not collector.graph.layers:
        raise NotServable("The XML has no layers. Save the model again with openvino.save_model.")
    return collector.graph


def _chunks(file: IO[bytes]) -> Iterator[bytes]:
    while chunk := file.read(_CHUNK_BYTES):
        yield chunk


def _refuse_doctype(*_: Any) -> None:
    raise NotServable(
        "The XML has a DOCTYPE or entities, which OpenVINO never writes. Save the model again."
    )


class _Collector:
    def __init__(self) -> None:
        self.graph = Graph()
        self._path: list[str] = []
        self._layer: Layer | None = None
        self._port: Port | None = None
        self._text = ""

    def start(self, tag: str, attributes: Mapping[str, str]) -> None:
        if len(self._path) >= _MAX_DEPTH:
            raise NotServable(f"The XML is nested more than {_MAX_DEPTH} levels deep.")
        self._path.append(tag)
        self._text = ""
        handler: Callable[[Mapping[str, str]], None] | None = getattr(self, f"_start_{tag}", None)
        if handler is not None:
            handler(attributes)

    def end(self, tag: str) -> None:
        if tag == "dim" and self._port is not None:
            self._port.dims.append(self._text.strip())
        elif tag == "port":
            self._port = None
        elif tuple(self._path) == _LAYER:
            self._layer = None
        self._path.pop()

    def text(self, text: str) -> None:
        if self._path and self._path[-1] == "dim":
            self._text = (self._text + text)[:100]

    def _start_net(self, attributes: Mapping[str, str]) -> None:
        if len(self._path) == 1:
            self.graph.version = attributes.get("version", "")

    def _start_layer(self, attributes: Mapping[str, str]) -> None:
        self.graph.opsets.add(attributes.get("version", "")[:100])
        if tuple(self._path) != _LAYER:
            return
        if len(self.graph.layers) >= _MAX_LAYERS:
            raise NotServable(f"The model has more than {_MAX_LAYERS:,} layers.")
        number = attributes.get("id", "")
        if number in self.graph.layers:
            raise NotServable(f"Two layers have the id {quote(number)}. Save the model again.")
        self._layer = self.graph.layers[number] = Layer(
            name=attributes.get("name", ""),
            kind=attributes.get("type", ""),
            opset=attributes.get("version", ""),
            names=split_names(attributes.get("output_names", "")),
        )

    def _start_data(self, attributes: Mapping[str, str]) -> None:
        if "offset" not in attributes or "size" not in attributes:
            return
        try:
            place = (int(attributes["offset"]), int(attributes["size"]))
        except ValueError as error:
            raise NotServable("A constant has no readable offset. Save the model again.") from error
        self.graph.weights[place] = attributes.get("element_type", "")[:20].lower()

    def _start_port(self, attributes: Mapping[str, str]) -> None:
        if self._layer is None or tuple(self._path[:3]) != _LAYER or len(self._path) != 5:
            return
        self._port = Port(attributes.get("precision", ""), split_names(attributes.get("names", "")))
        side = self._layer.inputs if self._path[3] == "input" else self._layer.outputs
        side[attributes.get("id", "")] = self._port

    def _start_edge(self, attributes: Mapping[str, str]) -> None:
        if tuple(self._path) == _EDGE:
            target = (attributes.get("to-layer", ""), attributes.get("to-port", ""))
            self.graph.edges[target] = (
                attributes.get("from-layer", ""),
                attributes.get("from-port", ""),
            )


def split_names(text: str) -> tuple[str, ...]:
    """Split names that are separated by commas. Commas of a name itself have a backslash."""
    names = text.replace("\\,", "\0").split(",")
    return tuple(name.replace("\0", ",") for name in names if name)
