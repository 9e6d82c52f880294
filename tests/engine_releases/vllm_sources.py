"""Read a release of vLLM from its sources, without running them: arguments, architectures, quantisation, parsers and metrics."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any, Final

_ARGUMENTS: Final = "vllm/engine/arg_utils.py"
_REGISTRY: Final = "vllm/model_executor/models/registry.py"
_QUANTIZATION: Final = "vllm/model_executor/layers/quantization/__init__.py"
# Read for its literal types, and for the arguments of the server.
_FOLDERS: Final = ("vllm/config/", "vllm/entrypoints/", "vllm/tool_parsers/", "vllm/reasoning/")
_OTHERS: Final = ("vllm/v1/metrics/", "vllm/v1/spec_decode/metrics.py", "vllm/renderers/")
_REMOVED: Final = "_PREVIOUSLY_SUPPORTED_MODELS"
# The classes whose fields are arguments of the server; a batch runner has one of its own.
_SERVER_CLASSES: Final = ("BaseFrontendArgs", "FrontendArgs")
_TWO_WAY_SWITCH: Final = "on/off"
# Others take a value.
_ACTIONS: Final = {"store_true": "on", "BooleanOptionalAction": _TWO_WAY_SWITCH}
# A list of choices; a switch; None takes any value.
Value = list[str] | str | None


class NotReadable(Exception):
    """The sources are not written as those of the releases that are read."""


def is_read(path: str) -> bool:
    """Return whether a file of the release, by its path in it, is needed."""
    exact = (_ARGUMENTS, _REGISTRY, _QUANTIZATION)
    return path.endswith(".py") and (path in exact or path.startswith((*_FOLDERS, *_OTHERS)))


class VllmSources:
    """The sources of one release, by their paths."""

    def __init__(self, files: Mapping[str, str]) -> None:
        self._trees = {path: ast.parse(text) for path, text in files.items()}

    def describe(self) -> dict[str, Any]:
        """Return all that the table has of a release. Raises NotReadable if a part is empty."""
        removed = self._dictionary(_REGISTRY, _REMOVED)
        described: dict[str, Any] = {
            "arguments": dict(sorted(self._arguments())),
            "architectures": self._architectures(),
            "removed_architectures": {
                name: str(ast.literal_eval(last)) for name, last in sorted(removed.items())
            },
            "quantization": sorted(self._literal("QuantizationMethods")),
            "tool_parsers": self._parsers("ToolParserManager", "_TOOL_PARSERS_TO_REGISTER"),
            "reasoning_parsers": self._parsers(
                "ReasoningParserManager", "_REASONING_PARSERS_TO_REGISTER"
            ),
            "metrics": sorted(set(self._metrics())),
        }
        empty = [name for name, part in described.items() if not part]
        if empty:
            raise NotReadable(f"nothing was found of {', '.join(empty)}")
        return described

    def _arguments(self) -> Iterator[tuple[str, Value]]:
        for path, tree in self._trees.items():
            if path == _ARGUMENTS or path.endswith("/cli_args.py"):
                yield from self._added_arguments(tree)
        for name in _SERVER_CLASSES:
            for field, annotation in self._fields.get(name, {}).items():
                yield f"--{field.replace('_', '-')}", self._value_of(annotation)

    def _added_arguments(self, tree: ast.Module) -> Iterator[tuple[str, Value]]:
        configs = _config_variables(tree)
        for call in _calls(tree, "add_argument"):
            names = [text for text in map(_text, call.args) if text and text.startswith("--")]
            for name in names:
                yield name, self._value_of_call(call, configs)

    def _value_of_call(self, call: ast.Call, configs: Mapping[str, str]) -> Value:
        for keyword in call.keywords:
            if keyword.arg == "action":
                return _ACTIONS.get(ast.unparse(keyword.value).rpartition(".")[2].strip("'"))
            if keyword.arg == "choices" and isinstance(keyword.value, ast.List):
                return sorted(str(ast.literal_eval(item)) for item in keyword.value.elts)
            for node in _unpacked(keyword):
                variable, field = ast.unparse(node.value), _text(node.slice)
                annotation = self._fields.get(configs.get(variable, ""), {}).get(field or "")
                return None if annotation is None else self._value_of(annotation)
        return None

    def _value_of(self, annotation: ast.expr) -> Value:
        """Return what an argument takes by the type of its field, as vLLM itself makes arguments of fields."""
        parts = set(_union(annotation))
        if "bool" in parts:
            return None if "str" in parts else _TWO_WAY_SWITCH
        if "str" in parts:
            return None
        choices = [choice for part in _union_nodes(annotation) for choice in self._choices(part)]
        return sorted(set(choices)) or None

    def _choices(self, node: ast.expr) -> list[str]:
        if isinstance(node, ast.Name):
            alias = self._aliases.get(node.id)
            return [] if alias is None else self._choices(alias)
        if not isinstance(node, ast.Subscript) or ast.unparse(node.value) != "Literal":
            return []
        items = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        choices: list[str] = []
        for item in items:
            if isinstance(item, ast.Constant):
                choices.append(str(item.value))
            else:
                choices.extend(self._choices(item))
        return choices

    def _literal(self, name: str) -> set[str]:
        return set(self._choices(ast.Name(name)))

    def _architectures(self) -> dict[str, list[str]]:
        """Return the names in a model's configuration that the release serves, by the group of the registry."""
        found = {}
        for name in self._assigned(_REGISTRY):
            if name.endswith("_MODELS") and name not in {_REMOVED, "_VLLM_MODELS"}:
                group = name.strip("_").removesuffix("_MODELS").lower()
                found[group] = sorted(self._dictionary(_REGISTRY, name))
        return {group: found[group] for group in sorted(found) if not group.startswith("oot")}

    def _parsers(self, manager: str, table: str) -> list[str]:
        """Return the names of parsers: keys of a table, or of decorators in older releases."""
        names: set[str] = set()
        for path, tree in self._trees.items():
            if table in self._assigned(path):
                names |= set(self._dictionary(path, table))
            for call in _calls(tree, "register_module"):
                if ast.unparse(call.func).startswith(manager):
                    names |= {name for argument in call.args for name in _texts(argument)}
        return sorted(names)

    def _metrics(self) -> Iterator[str]:
        for tree in self._trees.values():
            for node in ast.walk(tree):
                for keyword in node.keywords if isinstance(node, ast.Call) else ():
                    text = _text(keyword.value)
                    if keyword.arg == "name" and text and text.startswith("vllm:"):
                        yield text

    def _assigned(self, path: str) -> dict[str, ast.expr]:
        return dict(_assignments(self._trees[path]))

    def _dictionary(self, path: str, name: str) -> dict[str, ast.expr]:
        node = self._assigned(path).get(name)
        if not isinstance(node, ast.Dict):
            raise NotReadable(f"{path} has no {name}")
        keys = (
            (_text(key), value) for key, value in zip(node.keys, node.values, strict=True) if key
        )
        return {key: value for key, value in keys if key}

    @cached_property
    def _aliases(self) -> dict[str, ast.expr]:
        return {name: value for tree in self._trees.values() for name, value in _assignments(tree)}

    @cached_property
    def _fields(self) -> dict[str, dict[str, ast.expr]]:
        """Return the annotations of the fields of each class of the configuration and of the server's arguments."""
        return {
            node.name: {
                item.target.id: item.annotation
                for item in node.body
                if isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name)
            }
            for tree in self._trees.values()
            for node in tree.body
            if isinstance(node, ast.ClassDef)
        }


def _config_variables(tree: ast.Module) -> dict[str, str]:
    """Return the class of each variable that holds the arguments of its fields: cache_kwargs, CacheConfig."""
    classes = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
            call = node.value
            if ast.unparse(call.func) == "get_kwargs" and isinstance(node.targets[0], ast.Name):
                classes[node.targets[0].id] = ast.unparse(call.args[0])
    return classes


def _unpacked(keyword: ast.keyword) -> Iterator[ast.Subscript]:
    """Yield what a keyword of a call unpacks: **kwargs["field"], or that inside of a dictionary."""
    if keyword.arg is None:
        yield from (node for node in ast.walk(keyword.value) if isinstance(node, ast.Subscript))


def _assignments(tree: ast.Module) -> Iterator[tuple[str, ast.expr]]:
    for node in tree.body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            yield node.targets[0].id, node.value
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value:
            yield node.target.id, node.value


def _calls(tree: ast.Module, method: str) -> Iterator[ast.Call]:
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr == method
        ):
            yield node


def _union(annotation: ast.expr) -> Iterator[str]:
    return (ast.unparse(node) for node in _union_nodes(annotation))


def _union_nodes(annotation: ast.expr) -> Iterator[ast.expr]:
    """Yield the members of a union, however it is written."""
    if isinstance(annotation, ast.BinOp):
        yield from _union_nodes(annotation.left)
        yield from _union_nodes(annotation.right)
        return
    if isinstance(annotation, ast.Subscript):
        name = ast.unparse(annotation.value)
        if name in {"Optional", "Union", "Annotated", "SkipValidation"}:
            inner = annotation.slice
            members = inner.elts if isinstance(inner, ast.Tuple) else [inner]
            for member in members[:1] if name == "Annotated" else members:
                yield from _union_nodes(member)
            return
    yield annotation


def _text(node: ast.expr) -> str | None:
    value = node.value if isinstance(node, ast.Constant) else None
    return value if isinstance(value, str) else None


def _texts(node: ast.expr) -> list[str]:
    items = node.elts if isinstance(node, ast.List | ast.Tuple) else [node]
    return [text for text in map(_text, items) if text]
