"""Which files name a kind of access instead of asking it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from deployments.access.domain.kind import AccessKind

_KINDS = "deployments.access.domain.kinds"
_PACKAGES = ("deployments", "fleet", "portal", "client/src")
_NOT_THE_PRODUCT = {"migrations", "localcluster"}


def files_naming(kind: AccessKind, root: Path) -> set[str]:
    paths = {path for path in _sources(root) if names(kind, path.read_text())}
    for path in (root / "templates").rglob("*.html"):
        is_own = path.parent.name == "access" and path.stem == f"_{kind.name}"
        if is_own or re.search(rf'access[\w.]* [!=]= "{kind.name}"', path.read_text()):
            paths.add(path)
    own = root / f"{type(kind).__module__.replace('.', '/')}.py"
    return {str(path.relative_to(root)) for path in {*paths, own}}


def names(kind: AccessKind, source: str) -> bool:
    """Whether it imports the kind, compares an access with its name, or states it."""
    if "access" not in source:
        return False
    tree = ast.parse(source)
    is_stated = any(
        isinstance(value, ast.Constant) and value.value == kind.name for value in _accesses(tree)
    )
    return is_stated or _imports(tree, type(kind).__module__.rpartition(".")[2])


def _imports(tree: ast.AST, module: str) -> bool:
    return any(
        isinstance(node, ast.ImportFrom)
        and (
            node.module == f"{_KINDS}.{module}"
            or (node.module == _KINDS and module in {alias.name for alias in node.names})
        )
        for node in ast.walk(tree)
    )


def _accesses(tree: ast.AST) -> Iterator[ast.expr]:
    """Yield what an access is compared with, or set to."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
            if any("access" in ast.unparse(side) for side in sides):
                yield from (inner for side in sides for inner in _items(side))
        elif isinstance(node, ast.keyword) and "access" in (node.arg or ""):
            yield from _items(node.value)
        elif isinstance(node, ast.Dict):
            for key, value in zip(node.keys, node.values, strict=True):
                if isinstance(key, ast.Constant) and "access" in str(key.value):
                    yield from _items(value)


def _items(node: ast.expr) -> list[ast.expr]:
    return node.elts if isinstance(node, ast.Tuple | ast.List | ast.Set) else [node]


def _sources(root: Path) -> Iterator[Path]:
    for package in _PACKAGES:
        for path in (root / package).rglob("*.py"):
            if not _NOT_THE_PRODUCT & set(path.parts):
                yield path
