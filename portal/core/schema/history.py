"""Migrations that fresh ones replace, and the databases that have them on record."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from importlib import import_module
from importlib.util import find_spec
from pkgutil import iter_modules
from typing import Any

from django.apps import apps
from django.db import transaction
from django.db.migrations import Migration

from portal.core import clock

# Of the app and of the migration.
Name = tuple[str, str]
Files = Mapping[Name, type[Migration]]


def read_files() -> dict[Name, type[Migration]]:
    """Import the migrations of all installed apps."""
    found: dict[Name, type[Migration]] = {}
    for app in apps.get_app_configs():
        package = f"{app.name}.migrations"
        if find_spec(package) is None:
            continue
        for file in iter_modules(import_module(package).__path__):
            if not file.ispkg:
                found[app.label, file.name] = import_module(f"{package}.{file.name}").Migration
    return found


def read_recorded(connection: Any) -> set[Name]:
    """Read the migrations that the database has on record; none before its first."""
    with connection.cursor() as cursor:
        if "django_migrations" not in connection.introspection.table_names(cursor):
            return set()
        cursor.execute("SELECT app, name FROM django_migrations")
        return set(cursor.fetchall())


def add_replacing(files: Files, recorded: Collection[Name]) -> set[Name]:
    """Return the recorded migrations and those that replace only recorded ones, which Django takes as applied."""
    replacing = {
        name for name, one in files.items() if one.replaces and set(one.replaces) <= set(recorded)
    }
    return {*recorded, *replacing}


def list_unreleased(files: Files, recorded: Collection[Name]) -> list[Name]:
    """Return recorded migrations that no release has, of a database that lacks what replaces them."""
    half = {app for (app, name), one in files.items() if one.replaces} - {
        app for (app, name), one in files.items() if one.replaces and (app, name) in recorded
    }
    return sorted((app, name) for app, name in recorded if app in half and (app, name) not in files)


def record_replaced(connection: Any) -> None:
    """Put on record what a recorded migration replaces: where it was applied, so was all of that. What replaces
    others may replace further ones since it was applied.
    """
    files, recorded = read_files(), read_recorded(connection)
    missing = {
        old for name in recorded & set(files) for old in files[name].replaces if old not in recorded
    }
    with transaction.atomic(using=connection.alias), connection.cursor() as cursor:
        for app, name in sorted(missing):
            cursor.execute(
                "INSERT INTO django_migrations (app, name, applied) VALUES (%s, %s, %s)",
                [app, name, clock.now()],
            )
