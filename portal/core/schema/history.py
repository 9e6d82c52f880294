"""Migrations that others replaced, and whose files are gone. Databases still have them on record."""

from __future__ import annotations

from dataclasses import dataclass

from django.db.migrations.loader import MigrationLoader


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


def replaced(loader: MigrationLoader) -> set[tuple[str, str]]:
    """As (app, name)."""
    migrations = loader.disk_migrations or {}
    return {old for one in migrations.values() for old in one.replaces if old not in migrations}


def half_replaced(loader: MigrationLoader) -> list[HalfReplaced]:
    """Needs the loader of a connection."""
    migrations = loader.disk_migrations or {}
    applied, gone = loader.applied_migrations or {}, replaced(loader)
    unfinished = []
    for (app, name), migration in sorted(migrations.items()):
        old = [one for one in migration.replaces if one in gone]
        missing = [one for one in old if one not in applied]
        if missing and len(missing) < len(old):
            unfinished.append(
                HalfReplaced(
                    f"{app}.{name}", len(old) - len(missing), len(old), ".".join(missing[0])
                )
            )
    return unfinished
