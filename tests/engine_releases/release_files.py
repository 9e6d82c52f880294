"""The files of the table: one a release, sorted, an entry a line, so that a review sees what a release changed."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

REPOSITORY: Final = Path(__file__).resolve().parents[2]
FOLDER: Final = REPOSITORY / "deployments" / "engines" / "domain" / "releases"


def path_of(engine: str, release: str) -> Path:
    return FOLDER / f"{engine}-{release}.json"


def list_releases(engine: str) -> list[str]:
    return [path.stem.removeprefix(f"{engine}-") for path in FOLDER.glob(f"{engine}-*.json")]


def read(path: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(path.read_text())
    return content


def write(path: Path, content: Mapping[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    parts = [f" {json.dumps(name)}: {_format_part(name, part)}" for name, part in content.items()]
    path.write_text("{\n" + ",\n".join(parts) + "\n}\n")


def _format_part(name: str, part: Any) -> str:
    """Return a part of the file. An argument has its choices on its line."""
    if name != "arguments":
        return json.dumps(part, indent=1).replace("\n", "\n ")
    lines = [f"  {json.dumps(key)}: {json.dumps(value)}" for key, value in part.items()]
    return "{\n" + ",\n".join(lines) + "\n }"


def describe_changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[str]:
    """Yield for each part of the table what came with a release, and what went."""
    for part in after:
        old, new = set(_entries(part, before)), set(_entries(part, after))
        if part == "source" or old == new:
            continue
        yield f"{part.replace('_', ' ')}: {len(new - old)} new, {len(old - new)} gone"
        yield from (f"  + {entry}" for entry in sorted(new - old))
        yield from (f"  - {entry}" for entry in sorted(old - new))


def _entries(part: str, content: Mapping[str, Any]) -> Iterator[str]:
    value = content.get(part, [])
    if part == "arguments":
        for name, takes in value.items():
            yield name
            choices = takes if isinstance(takes, list) else []
            yield from (f"{name}={choice}" for choice in choices)
    elif part == "architectures":
        yield from (f"{name} ({group})" for group, names in value.items() for name in names)
    elif isinstance(value, list | dict):
        yield from value
    else:
        yield str(value)
