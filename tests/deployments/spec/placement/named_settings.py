"""Which files name a field of the placement instead of asking the settings."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

_PACKAGES = ("deployments", "fleet", "portal")
# What holds the fields: the placement of a spec, the settings of a batch job, and its row.
_HOLDERS = ("placement", "settings", "pods")
_CLASSES = ("Placement", "BatchSettings")


def files_naming(fields: tuple[str, ...], root: Path) -> set[str]:
    paths = {path for path in _sources(root) if names(fields, path.read_text())}
    pattern = re.compile(rf"\b(placement[._]|pods\.)({'|'.join(fields)})\b")
    templates = (root / "templates").rglob("*.html")
    paths |= {path for path in templates if pattern.search(path.read_text())}
    return {str(path.relative_to(root)) for path in paths}


def names(fields: tuple[str, ...], source: str) -> bool:
    """Whether it reads one of the fields, states it, or writes its path."""
    if not any(field in source for field in fields):
        return False
    return any(_names(fields, node) for node in ast.walk(ast.parse(source)))


def _names(fields: tuple[str, ...], node: ast.AST) -> bool:
    if isinstance(node, ast.Attribute):
        return node.attr in fields and _last_name(node.value) in _HOLDERS
    if isinstance(node, ast.Call):
        return _states(fields, node)
    if isinstance(node, ast.ClassDef):
        targets = [item.target for item in node.body if isinstance(item, ast.AnnAssign)]
        stated = {target.id for target in targets if isinstance(target, ast.Name)}
        return node.name in _CLASSES and not stated.isdisjoint(fields)
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value in {f"placement{mark}{field}" for mark in "._" for field in fields}
    return False


def _states(fields: tuple[str, ...], call: ast.Call) -> bool:
    """Whether a call makes a placement with one of the fields, or replaces one."""
    is_made = _last_name(call.func) == "Placement"
    is_replaced = isinstance(call.func, ast.Attribute) and call.func.attr == "replace"
    is_of_placement = isinstance(call.func, ast.Attribute) and (
        _last_name(call.func.value) == "placement"
    )
    stated = {keyword.arg for keyword in call.keywords}
    return (is_made or (is_replaced and is_of_placement)) and not stated.isdisjoint(fields)


def _last_name(node: ast.expr) -> str:
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def _sources(root: Path) -> Iterator[Path]:
    for package in _PACKAGES:
        for path in (root / package).rglob("*.py"):
            if "migrations" not in path.parts:
                yield path
