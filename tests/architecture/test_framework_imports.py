"""Product code imports only modules of Django and REST framework that their documentation names, and no private name.

Migrations are left out: Django writes their imports.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import django
import pytest
import rest_framework

from tests.architecture.test_architecture import ROOT, sources

_FRAMEWORKS: Final = {
    "django": Path(django.__file__).parent,
    "rest_framework": Path(rest_framework.__file__).parent,
}
_DOCUMENTED: Final = frozenset(
    {
        "django",
        "django.apps",
        "django.conf",
        "django.contrib.auth",
        "django.contrib.auth.base_user",
        "django.contrib.auth.forms",
        "django.contrib.auth.middleware",
        "django.contrib.auth.models",
        "django.contrib.auth.password_validation",
        "django.contrib.auth.validators",
        "django.contrib.auth.views",
        "django.contrib.messages",
        "django.contrib.postgres.search",
        "django.contrib.sessions.backends.base",
        "django.contrib.sessions.backends.db",
        "django.contrib.sessions.base_session",
        "django.contrib.staticfiles.storage",
        "django.core.asgi",
        "django.core.cache",
        "django.core.checks",
        "django.core.exceptions",
        "django.core.files.uploadedfile",
        "django.core.management",
        "django.core.management.base",
        "django.core.paginator",
        "django.core.serializers.json",
        "django.core.signing",
        "django.core.validators",
        "django.core.wsgi",
        "django.db",
        "django.db.migrations",
        "django.db.migrations.operations",
        "django.db.migrations.operations.base",
        "django.db.migrations.state",
        "django.db.models",
        "django.db.models.expressions",
        "django.db.models.fields.json",
        "django.db.models.functions",
        "django.db.transaction",
        "django.forms",
        "django.http",
        "django.middleware.csrf",
        "django.shortcuts",
        "django.template",
        "django.template.loader",
        "django.urls",
        "django.utils.cache",
        "django.utils.crypto",
        "django.utils.decorators",
        "django.utils.functional",
        "django.utils.html",
        "django.utils.http",
        "django.utils.safestring",
        "django.utils.timezone",
        "django.views",
        "django.views.decorators.cache",
        "django.views.decorators.csrf",
        "django.views.decorators.http",
        "django.views.defaults",
        "rest_framework.authentication",
        "rest_framework.exceptions",
        "rest_framework.generics",
        "rest_framework.negotiation",
        "rest_framework.pagination",
        "rest_framework.parsers",
        "rest_framework.permissions",
        "rest_framework.renderers",
        "rest_framework.request",
        "rest_framework.response",
        "rest_framework.serializers",
        "rest_framework.status",
        "rest_framework.throttling",
        "rest_framework.views",
    }
)


def test_product_code_imports_what_the_frameworks_document() -> None:
    assert [offence for path in sources() for offence in _offences(path)] == []


@pytest.mark.parametrize(
    ("line", "imported"),
    [
        (
            "from django.db.models.query import get_related_populators",
            "django.db.models.query.get_related_populators",
        ),
        ("from django.db.models import _private", "django.db.models._private"),
        ("from django.db.backends.postgresql import base", "django.db.backends.postgresql.base"),
        ("import django.db.migrations.loader as loader", "django.db.migrations.loader"),
        ("from django.core import handlers", "django.core.handlers"),
        ("from rest_framework import relations", "rest_framework.relations"),
        ("from rest_framework.fields import Field", "rest_framework.fields.Field"),
        (
            "def late():\n    from rest_framework.serializers import _cached",
            "rest_framework.serializers._cached",
        ),
    ],
)
def test_other_imports_are_refused(line: str, imported: str, tmp_path: Path) -> None:
    planted = tmp_path / "planted.py"
    planted.write_text(f"from django.db import models, transaction\n{line}\n")

    (offence,) = _offences(planted)

    assert offence.endswith(f" {imported}")


def _offences(path: Path) -> Iterator[str]:
    text = path.read_text()
    for node in ast.walk(ast.parse(text)) if any(name in text for name in _FRAMEWORKS) else ():
        for module, name in _imports(node):
            is_known = module.partition(".")[0] in _FRAMEWORKS
            if is_known and (module not in _DOCUMENTED or name.startswith("_")):
                place = path.relative_to(ROOT) if path.is_relative_to(ROOT) else path
                yield f"{place}:{node.lineno} {f'{module}.{name}'.rstrip('.')}"  # type: ignore[attr-defined]  # a statement


def _imports(node: ast.AST) -> Iterator[tuple[str, str]]:
    """Yield the module and the imported name; the name is empty if a module is imported."""
    if isinstance(node, ast.Import):
        yield from ((alias.name, "") for alias in node.names)
    elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
        for alias in node.names:
            inner = f"{node.module}.{alias.name}"
            yield (inner, "") if _is_module(inner) else (node.module, alias.name)


def _is_module(name: str) -> bool:
    framework, *parts = name.split(".")
    if framework not in _FRAMEWORKS:
        return False
    path = _FRAMEWORKS[framework].joinpath(*parts)
    return path.is_dir() or path.with_suffix(".py").is_file()
