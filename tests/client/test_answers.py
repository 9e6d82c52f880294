"""The client's answer classes are those of docs/openapi.yaml, as client/answers.toml chooses them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from portal.management import check, client_answers

TEXT = {"type": "string"}
SCHEMAS: dict[str, Any] = {
    "Kind": {"type": "string", "enum": ["a", "b"]},
    "NullEnum": {"enum": [None]},
    "Settings": {"type": "object", "properties": {"memory": TEXT}},
    "Key": {
        "description": "The group.",
        "properties": {"name": TEXT},
        "required": ["name"],
    },
    "Row": {
        "description": "A row of costs. Null means unknown; a null amount too.",
        "properties": {
            "id": {"type": "integer"},
            "amount": {"type": "string", "format": "decimal", "nullable": True},
            "day": {"type": "string", "format": "date"},
            "ratio": {"type": "number"},
            "is_idle": {"type": "boolean"},
            "at": {"type": "string", "format": "date-time", "nullable": True},
            "key": {"allOf": [{"$ref": "#/components/schemas/Key"}], "nullable": True},
            "keys": {"type": "array", "items": {"$ref": "#/components/schemas/Key"}},
            "kind": {
                "$ref": "#/components/schemas/Kind",
            },
            "state": {
                "oneOf": [
                    {"$ref": "#/components/schemas/Kind"},
                    {"$ref": "#/components/schemas/NullEnum"},
                ],
                "description": "where it is\n\n* `a` - first\n* `b` - second",
            },
            "settings": {"$ref": "#/components/schemas/Settings"},
            "tags": {"type": "object", "additionalProperties": TEXT},
            "note": TEXT,
        },
        "required": [
            *("id", "amount", "day", "ratio", "is_idle", "key", "kind", "state", "settings", "tags")
        ],
    },
    "LongRow": {
        "description": "A row with its name.",
        "properties": {"id": {"type": "integer"}, "name": TEXT, "size": {"type": "integer"}},
        "required": ["id", "name"],
    },
    "Named": {
        "description": "A row whose name may be missing.",
        "properties": {"name": {**TEXT, "nullable": True}},
        "required": ["name"],
    },
    "Nameless": {"properties": {"name": TEXT}},
}


def test_the_client_is_what_the_document_says() -> None:
    assert client_answers.find_difference() == ""


def test_an_edited_answer_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    edited = tmp_path / "answers.py"
    edited.write_text(
        client_answers.ANSWERS.read_text().replace("is_protected: bool", "is_protected: int")
    )
    monkeypatch.setattr(client_answers, "ANSWERS", edited)
    monkeypatch.setattr("sys.argv", ["client_answers", "--check"])

    assert client_answers.main() == 1

    assert [line for line in capsys.readouterr().out.splitlines() if "is_protected:" in line] == [
        "-    is_protected: int",
        "+    is_protected: bool",
    ]


def test_make_check_compares_the_client() -> None:
    (found,) = [c for c in check._checks() if "client_answers" in " ".join(c.command)]

    assert found.command[-3:] == ("-m", "portal.management.client_answers", "--check")


def test_a_field_has_the_type_and_the_description_of_its_schema() -> None:
    choice = {
        "Row": {"fields": [*SCHEMAS["Row"]["properties"]], "text": "row {self.id}"},
        "CostsKey": {"schema": "Key", "fields": ["name"]},
    }

    _, _, text = client_answers.render_answers(SCHEMAS, choice).partition("ScoreNames\n")

    assert text.strip() == (
        "@dataclass(frozen=True, slots=True, kw_only=True)\n"
        "class Row(Answer):\n"
        '    """A row of costs. None means unknown; a None amount too."""\n'
        "\n"
        "    id: int\n"
        "    amount: Decimal | None\n"
        "    day: date\n"
        "    ratio: float\n"
        "    is_idle: bool\n"
        "    at: datetime | None = None\n"
        "    key: CostsKey | None\n"
        "    keys: tuple[CostsKey, ...] = ()\n"
        "    kind: str\n"
        "    state: str | None\n"
        '    """where it is"""\n'
        "    settings: Mapping[str, Any]\n"
        "    tags: Mapping[str, Any]\n"
        '    note: str = ""\n'
        "\n"
        "    def __str__(self) -> str:\n"
        '        return f"row {self.id}"\n'
        "\n"
        "\n"
        "@dataclass(frozen=True, slots=True, kw_only=True)\n"
        "class CostsKey(Answer):\n"
        '    """The group."""\n'
        "\n"
        "    name: str"
    )


def test_a_class_extends_another_and_has_written_methods() -> None:
    choice = {
        "Row": {"fields": ["id"]},
        "LongRow": {"extends": "Row", "methods": "ScoreNames", "fields": ["name"]},
    }

    text = client_answers.render_answers(SCHEMAS, choice)

    assert text.endswith(
        "class LongRow(ScoreNames, Row):\n"
        '    """A row with its name."""\n'
        "\n"
        "    name: str\n"
    )  # fmt: skip


@pytest.mark.parametrize(
    ("choice", "problem"),
    [
        ({"Rows": {"fields": ["id"]}}, "docs/openapi.yaml has no schema Rows."),
        ({"Row": {"fields": ["color"]}}, "Row has no field color in docs/openapi.yaml."),
        (
            {"Row": {"fields": ["day"]}, "LongRow": {"extends": "Row", "fields": ["name"]}},
            "LongRow has no field day in docs/openapi.yaml.",
        ),
        (
            {"Key": {"fields": ["name"]}, "Named": {"extends": "Key", "fields": []}},
            "Named.name has another type than in Key.",
        ),
        (
            {"LongRow": {"fields": ["size"]}},
            "LongRow.size may be absent and has no value that says so.",
        ),
        (
            {"Nameless": {"fields": ["name"]}},
            "Nameless has no description. Give its serializer a docstring.",
        ),
    ],
)
def test_a_choice_that_the_document_cannot_meet_is_refused(
    choice: dict[str, Any], problem: str
) -> None:
    with pytest.raises(client_answers.UnknownAnswerError) as refused:
        client_answers.render_answers(SCHEMAS, choice)

    assert str(refused.value) == problem


def test_a_field_of_several_types_is_refused() -> None:
    schemas = {
        "Row": {
            "description": "A row.",
            "properties": {"id": {"oneOf": [TEXT, {"type": "integer"}]}},
        }
    }

    with pytest.raises(client_answers.UnknownAnswerError, match="of several types"):
        client_answers.render_answers(schemas, {"Row": {"fields": ["id"]}})
