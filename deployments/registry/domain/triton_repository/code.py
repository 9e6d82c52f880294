"""The code that a model brings: model.py of the Python backend and its environment. Nothing is run."""

from __future__ import annotations

import ast
import platform
from collections.abc import Iterator
from typing import Any, Final

from deployments.registry.domain.artifacts.reading import Artifact
from deployments.registry.domain.not_servable import NotServable, quote

CLASS: Final = "TritonPythonModel"
_ENVIRONMENT: Final = "EXECUTION_ENV_PATH"
_DIRECTORY: Final = "$$TRITON_MODEL_DIRECTORY/"
_MAX_SOURCE_BYTES: Final = 4 * 2**20
_GZIP: Final = b"\x1f\x8b"


def read_source(artifact: Artifact, path: str, *, needs_class: bool) -> ast.Module:
    """Return the syntax tree of a file. Raises NotServable if Triton could not use it."""
    if artifact.sizes[path] > _MAX_SOURCE_BYTES:
        raise NotServable(
            f"{path} is larger than 4 MiB, too large for code. Move data to other files."
        )
    try:
        tree = ast.parse(artifact.read(path, 0, _MAX_SOURCE_BYTES))
    except (SyntaxError, ValueError, RecursionError) as error:
        line = getattr(error, "lineno", None)
        place = f" line {line}" if line else ""
        version = ".".join(platform.python_version_tuple()[:2])
        message = quote(getattr(error, "msg", None) or str(error))
        raise NotServable(
            f"Python {version} cannot parse {path}{place}: {message}. Fix it."
        ) from error
    if needs_class:
        _check_class(tree, path)
    return tree


def strings_of(tree: ast.Module) -> set[str]:
    """Return text constants, among them the names of models that the code calls."""
    return {
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }


def environment_of(config: Any) -> str:
    """Return the path of the conda-pack environment below the model's directory, or empty. Raises NotServable."""
    if _ENVIRONMENT not in config.parameters:
        return ""
    stated = str(config.parameters[_ENVIRONMENT].string_value)
    path = stated.removeprefix(_DIRECTORY)
    if not stated.startswith(_DIRECTORY) or any(
        part in ("", ".", "..") for part in path.split("/")
    ):
        raise NotServable(
            f"{_ENVIRONMENT} is {quote(stated)}, which is outside the model. Put the environment into "
            f"the directory of the model and write {_DIRECTORY}environment.tar.gz."
        )
    return path


def check_environment(artifact: Artifact, path: str, stated: str) -> None:
    """Check the environment of a model. `path` is its path in the artifact, empty where it is missing. Raises
    NotServable.
    """
    if not path:
        raise NotServable(f"{stated} of {_ENVIRONMENT} is missing. Add it: conda-pack -o {stated}.")
    if artifact.read(path, 0, len(_GZIP)) != _GZIP:
        raise NotServable(
            f"{path} is not a tar.gz archive. Pack the environment again: conda-pack -o {stated}."
        )


def _check_class(tree: ast.Module, path: str) -> None:
    definitions = list(_definitions(tree))
    if not definitions:
        raise NotServable(
            f"{path} defines no class {CLASS}, which Triton's Python backend loads. Add it, with "
            "execute(self, requests)."
        )
    last = definitions[-1]
    if isinstance(last, ast.ClassDef) and not last.bases:
        methods = {
            node.name
            for node in ast.walk(last)
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        }
        if "execute" not in methods:
            raise NotServable(
                f"{CLASS} in {path} has no method execute(self, requests), which answers requests. "
                "Add it."
            )


def _definitions(tree: ast.Module) -> Iterator[ast.stmt]:
    """Yield statements at the top of the module, also in branches, that give it the class."""
    pending: list[ast.stmt] = list(tree.body)
    while pending:
        node = pending.pop(0)
        if isinstance(node, ast.If | ast.Try | ast.With):
            pending = [
                child for child in ast.iter_child_nodes(node) if isinstance(child, ast.stmt)
            ] + pending
            pending += [
                child for handler in getattr(node, "handlers", ()) for child in handler.body
            ]
        elif _gives_class(node):
            yield node


def _gives_class(node: ast.stmt) -> bool:
    match node:
        case ast.ClassDef(name=name):
            return name == CLASS
        case ast.ImportFrom(names=names):
            return any((alias.asname or alias.name) in (CLASS, "*") for alias in names)
        case ast.Assign(targets=targets):
            return any(isinstance(target, ast.Name) and target.id == CLASS for target in targets)
    return False
