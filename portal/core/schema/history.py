"""Migrations that others replaced, and whose files are gone. Databases still have them on record."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pkgutil import iter_modules
from typing import Any

from django.apps import apps
from django.db.migrations import Migration

# Of the app and of the migration.
Name = tuple[str, str]
Files = Mapping[Name, type[Migration]]


@dataclass(frozen=True, slots=True)
class HalfReplaced:
    """Some of what `replacing` replaces was applied: Django would neither apply the rest nor say so."""

    replacing: str
    applied: int
    replaced: int
    first_missing: str

    @property
    def problem(self) -> str:
        return (
            f"the database has {self.applied} of the {self.replaced} migrations that {self.replacing} replaces, "
            f"not {self.first_missing}"
        )

    @property
    def fix(self) -> str:
        name = self.first_missing.partition(".")[2]
        return f"Run `manage.py migrate` with the version before this one, which has {name}.py, then with this one."


def read_files() -> dict[Name, type[Migration]]:
    """Import the migrations of all installed apps."""
    found: dict[Name, type[Migration]] = {}
    for app in apps.get_app_configs():
        package = f"{app.name}.migrations"
        if find_spec(package) is None:
            continue
        for file in iter_modules(import_module(package).__path__):
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


def replaced(files: Files) -> set[Name]:
    """Return the replaced migrations whose files are gone."""
    return {old for one in files.values() for old in one.replaces if old not in files}


def half_replaced(files: Files, recorded: Collection[Name]) -> list[HalfReplaced]:
    gone = replaced(files)
    unfinished = []
    for (app, name), migration in sorted(files.items()):
        old = [one for one in migration.replaces if one in gone]
        missing = [one for one in old if one not in recorded]
        if missing and len(missing) < len(old):
            unfinished.append(
                HalfReplaced(
                    f"{app}.{name}", len(old) - len(missing), len(old), ".".join(missing[0])
                )
            )
    return unfinished
