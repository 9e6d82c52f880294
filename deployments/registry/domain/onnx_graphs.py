"""Walk the nodes and tensors of an ONNX model, including branches and functions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any


def nodes(model: Any) -> Iterator[Any]:
    """Yield all nodes of the graph, its branches and loops, and function bodies."""
    yield from _nodes_of(model.graph.node)
    for function in model.functions:
        yield from _nodes_of(function.node)


def nodes_of_function(function: Any) -> Iterator[Any]:
    return _nodes_of(function.node)


def tensors(model: Any) -> Iterator[Any]:
    """Yield every stored constant; of a sparse one, its values and its indices."""
    yield from _tensors_of_graph(model.graph)
    for function in model.functions:
        for node in function.node:
            yield from _tensors_of_node(node)


def _nodes_of(items: Any) -> Iterator[Any]:
    for node in items:
        yield node
        for attribute in node.attribute:
            for graph in subgraphs(attribute):
                yield from _nodes_of(graph.node)


def _tensors_of_graph(graph: Any) -> Iterator[Any]:
    yield from graph.initializer
    for sparse in graph.sparse_initializer:
        yield from (sparse.values, sparse.indices)
    for node in graph.node:
        yield from _tensors_of_node(node)


def _tensors_of_node(node: Any) -> Iterator[Any]:
    for attribute in node.attribute:
        if attribute.HasField("t"):
            yield attribute.t
        yield from attribute.tensors
        if attribute.HasField("sparse_tensor"):
            yield from (attribute.sparse_tensor.values, attribute.sparse_tensor.indices)
        for sparse in attribute.sparse_tensors:
            yield from (sparse.values, sparse.indices)
        for graph in subgraphs(attribute):
            yield from _tensors_of_graph(graph)


def subgraphs(attribute: Any) -> Iterator[Any]:
    if attribute.HasField("g"):
        yield attribute.g
    yield from attribute.graphs
