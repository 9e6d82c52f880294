"""Writes the client's answer classes from docs/openapi.yaml and client/answers.toml.

`python -m portal.management.client_answers` writes them, and with `--check` says whether they are up to date.
"""

from __future__ import annotations

import difflib
import re
import subprocess
import sys
import textwrap
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import yaml

_REPOSITORY = Path(__file__).resolve().parents[2]
DOCUMENT = _REPOSITORY / "docs" / "openapi.yaml"
CHOICE = _REPOSITORY / "client" / "answers.toml"
ANSWERS = _REPOSITORY / "client" / "src" / "slipway_client" / "types" / "__init__.py"

_HEAD = '''"""The portal's responses as frozen dataclasses. `raw` of each is the whole response.

Written by `make openapi` from docs/openapi.yaml and client/answers.toml; edit those.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from slipway_client.types.base import Answer, ScoreNames

'''
_SCALARS = {"integer": "int", "number": "float", "boolean": "bool", "string": "str"}
_STRINGS = {"date-time": "datetime", "date": "date", "decimal": "Decimal"}
_WIDTH = 96


class UnknownAnswerError(Exception):
    """client/answers.toml names what docs/openapi.yaml does not have, or does not describe."""


class _Type(NamedTuple):
    hint: str
    default: str  # of a field that a response may leave out; empty: none says so

    def or_none(self) -> _Type:
        return _Type(f"{self.hint} | None", "None")


def main() -> int:
    try:
        return _check() if "--check" in sys.argv else _write()
    except UnknownAnswerError as error:
        print(error)
        return 1


def _check() -> int:
    difference = find_difference()
    print(difference)
    return 1 if difference else 0


def _write() -> int:
    ANSWERS.write_text(render_answers(_read_schemas(), _read_choice()))
    print(f"Wrote {ANSWERS.relative_to(_REPOSITORY)}.")
    return 0


def find_difference() -> str:
    """Return the difference between the file and what would be written. Empty if they agree."""
    return "\n".join(
        difflib.unified_diff(
            ANSWERS.read_text().splitlines(),
            render_answers(_read_schemas(), _read_choice()).splitlines(),
            str(ANSWERS),
            "docs/openapi.yaml and client/answers.toml",
            lineterm="",
        )
    )


def render_answers(schemas: Mapping[str, Any], choice: Mapping[str, Any]) -> str:
    """Render the module of all chosen classes. Raises UnknownAnswerError."""
    classes = _Classes(schemas, choice)
    text = _HEAD + "\n\n".join(classes.render(name) for name in choice)
    command = (sys.executable, "-m", "ruff", "format", "--stdin-filename", str(ANSWERS), "-")
    return subprocess.run(command, input=text, capture_output=True, text=True, check=True).stdout


def _read_schemas() -> Mapping[str, Any]:
    document = yaml.load(DOCUMENT.read_text(), Loader=yaml.CSafeLoader)
    schemas: Mapping[str, Any] = document["components"]["schemas"]
    return schemas


def _read_choice() -> Mapping[str, Any]:
    return tomllib.loads(CHOICE.read_text())


class _Classes:
    """The chosen classes, and the names that their schemas have in the document."""

    def __init__(self, schemas: Mapping[str, Any], choice: Mapping[str, Any]) -> None:
        self._schemas = schemas
        self._choice = choice
        self._names = {chosen.get("schema", name): name for name, chosen in choice.items()}

    def render(self, name: str) -> str:
        chosen = self._choice[name]
        schema = self._schema(name)
        if "description" not in schema:
            raise UnknownAnswerError(f"{name} has no description. Give its serializer a docstring.")
        self._check_inherited(name)
        bases = [*([chosen["methods"]] if "methods" in chosen else []), self._base(name)]
        lines = [
            "@dataclass(frozen=True, slots=True, kw_only=True)",
            f"class {name}({', '.join(bases)}):",
            *_docstring(schema["description"]),
            "",
            *(line for field in chosen["fields"] for line in self._field(name, field)),
        ]
        if "text" in chosen:
            lines += ["", "    def __str__(self) -> str:", f'        return f"{chosen["text"]}"']
        return "\n".join(lines) + "\n"

    def _base(self, name: str) -> str:
        base: str = self._choice[name].get("extends", "Answer")
        return base

    def _check_inherited(self, name: str) -> None:
        """Check that the document gives the class the fields of what it extends, of the same types."""
        base = self._base(name)
        while base in self._choice:
            for field in self._choice[base]["fields"]:
                if self._hint(name, field) != self._hint(base, field):
                    raise UnknownAnswerError(f"{name}.{field} has another type than in {base}.")
            base = self._base(base)

    def _schema(self, name: str) -> Mapping[str, Any]:
        schema_name = self._choice[name].get("schema", name)
        if schema_name not in self._schemas:
            raise UnknownAnswerError(f"docs/openapi.yaml has no schema {schema_name}.")
        schema: Mapping[str, Any] = self._schemas[schema_name]
        return schema

    def _hint(self, name: str, field: str) -> _Type:
        properties = self._schema(name)["properties"]
        if field not in properties:
            raise UnknownAnswerError(f"{name} has no field {field} in docs/openapi.yaml.")
        return self._type(properties[field])

    def _field(self, name: str, field: str) -> Iterator[str]:
        hint, default = self._hint(name, field)
        schema = self._schema(name)
        described = schema["properties"][field]
        is_required = field in schema.get("required", ())
        if not is_required and not default:
            raise UnknownAnswerError(f"{name}.{field} may be absent and has no value that says so.")
        yield f"    {field}: {hint}" + ("" if is_required else f" = {default}")
        if "description" in described:
            yield from _docstring(described["description"])

    def _type(self, schema: Mapping[str, Any]) -> _Type:
        found = self._plain_type(schema)
        return found.or_none() if schema.get("nullable") else found

    def _plain_type(self, schema: Mapping[str, Any]) -> _Type:
        if "allOf" in schema:
            return self._type(schema["allOf"][0])
        if "oneOf" in schema:
            return self._union(schema["oneOf"])
        if "$ref" in schema:
            return self._reference(schema["$ref"].rpartition("/")[2])
        if schema.get("type") == "array":
            return _Type(f"tuple[{self._type(schema['items']).hint}, ...]", "()")
        if schema.get("type") == "string":
            return _Type(_STRINGS.get(schema.get("format", ""), "str"), '""')
        return _Type(_SCALARS.get(schema.get("type", ""), "Mapping[str, Any]"), "")

    def _union(self, schemas: list[Mapping[str, Any]]) -> _Type:
        *_, last = types = [self._type(s) for s in schemas if not self._is_null(s)]
        if len({found.hint for found in types}) > 1:
            raise UnknownAnswerError(f"A field of several types is not supported: {schemas}.")
        return last.or_none() if len(types) < len(schemas) else last

    def _is_null(self, schema: Mapping[str, Any]) -> bool:
        name = schema.get("$ref", "").rpartition("/")[2]
        return bool(self._schemas.get(name, schema).get("enum") == [None])

    def _reference(self, schema_name: str) -> _Type:
        schema = self._schemas[schema_name]
        if "properties" not in schema:
            return self._type(schema)
        return _Type(self._names.get(schema_name, "Mapping[str, Any]"), "")


def _docstring(description: str) -> Iterator[str]:
    """Wrap a description as a docstring; what is null in JSON is None in Python.

    The list that drf-spectacular adds, of an enum's values and labels, is left out.
    """
    text = " ".join(line for line in description.splitlines() if not line.startswith("* `"))
    text = re.sub(r"\b[Nn]ull\b", "None", " ".join(text.split())).replace('"', "'")
    lines = textwrap.wrap(text, _WIDTH - len('    """'))
    if not lines:
        return
    if len(lines) == 1:
        yield f'    """{lines[0]}"""'
    else:
        yield f'    """{lines[0]}'
        yield from (f"    {line}" for line in lines[1:])
        yield '    """'


if __name__ == "__main__":
    sys.exit(main())
