"""A definition states each field once; what is refused, shown and offered follows from it."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

import pytest
from pydantic import Field, model_validator

from portal.api.definition_serializers import serializer_of
from portal.core import definitions
from portal.core.definitions import Definition, Rejected, setting
from portal.ui import definition_fields


class Wheel(Definition):
    """A round part."""

    size_cm: Annotated[
        int, setting("Size", "Across.", unit="cm", ge=10, le=90, fix="Use 10 to 90 cm.")
    ] = 70
    gears: Annotated[tuple[int, ...], Field(strict=False), setting("Gears", "Teeth.")] = ()


class Bicycle(Definition):
    """Two wheels."""

    name: Annotated[str, setting("Name", "Of the bicycle.", max_length=10, pattern="[a-z]+")]
    brake: Annotated[
        Literal["rim", "disc"], setting("Brake", "What stops it.", choices={"disc": "Disc brake"})
    ] = "rim"
    has_light: Annotated[bool, setting("Light", "For the night.")] = False
    wheel: Annotated[Wheel, setting("Wheel", "Both are the same.")] = Wheel()
    spare: Annotated[Wheel | None, setting("Spare wheel", "One more.")] = None
    trailers: Annotated[tuple[Wheel, ...], Field(strict=False), setting("Trailers", "Behind.")] = ()

    @model_validator(mode="after")
    def _check(self) -> Self:
        is_dark = not self.has_light and self.brake == "disc"
        definitions.check([("has_light", not is_dark, "Turn it on.")])
        return self


@pytest.mark.parametrize(
    ("data", "fields"),
    [
        ({}, {"name": "State name."}),
        ({"name": "a", "colour": 1}, {"colour": 'There is no field "colour". Remove it.'}),
        (
            {"name": "a", "brakes": 1},
            {"brakes": 'There is no field "brakes". Did you mean "brake"?'},
        ),
        ({"name": "a", 7: 1}, {"7": 'There is no field "7". Remove it.'}),
        ({"name": 5}, {"name": "5 is not text."}),
        ({"name": "a", "has_light": 1}, {"has_light": "1 is not true or false."}),
        ({"name": "a", "brake": "drum"}, {"brake": "Use one of rim, disc."}),
        ({"name": "a", "brake": ["rim"]}, {"brake": "Use one of rim, disc."}),
        ({"name": "a", "wheel": 3}, {"wheel": "must be an object with size_cm, gears."}),
        ({"name": "a", "wheel": {"size_cm": 5}}, {"wheel.size_cm": "Use 10 to 90 cm."}),
        ({"name": "a", "wheel": {"size_cm": "5"}}, {"wheel.size_cm": '"5" is not a whole number.'}),
        (
            {"name": "a", "wheel": {"size_cm": True}},
            {"wheel.size_cm": "true is not a whole number."},
        ),
        (
            {"name": "a", "wheel": {"gears": [1, "2"]}},
            {"wheel.gears": "must be a list of whole numbers"},
        ),
        ({"name": "a", "wheel": {"gears": 3}}, {"wheel.gears": "must be a list of whole numbers"}),
        (
            {"name": "a", "trailers": [{}, {"size_cm": 1, "x": 2}]},
            {
                "trailers.1.size_cm": "Use 10 to 90 cm.",
                "trailers.1.x": 'There is no field "x". Remove it.',
            },
        ),
        (
            {"name": "a", "trailers": {"size_cm": 20}},
            {"trailers": "must be a list of objects with size_cm, gears."},
        ),
        ({"name": "a", "trailers": [3]}, {"trailers.0": "must be an object with size_cm, gears."}),
        ({"name": "a", "brake": "disc"}, {"has_light": "Turn it on."}),
    ],
)
def test_each_wrong_field_is_named_with_its_fix(
    data: dict[Any, Any], fields: dict[str, str]
) -> None:
    with pytest.raises(Rejected) as refusal:
        Bicycle.from_json(data)

    assert refusal.value.fields == fields


def test_what_is_no_object_is_refused_as_a_whole() -> None:
    with pytest.raises(Rejected, match="must be an object with name, brake"):
        Bicycle.from_json(["name"])


def test_a_changed_copy_is_checked_like_any_other() -> None:
    bicycle = Bicycle(name="a")

    assert bicycle.replace(wheel=Wheel(size_cm=50)).wheel.size_cm == 50
    assert bicycle.wheel.size_cm == 70
    with pytest.raises(Rejected) as refusal:
        bicycle.replace(brake="disc")
    assert refusal.value.fields == {"has_light": "Turn it on."}


def test_rest_takes_type_default_and_help_from_the_definition() -> None:
    fields: Any = serializer_of(Bicycle)().fields

    assert serializer_of(Bicycle) is serializer_of(Bicycle)
    assert serializer_of(Bicycle).__name__ == "BicycleSerializer"
    assert (fields["name"].required, fields["name"].max_length) == (True, 10)
    assert list(fields["brake"].choices) == ["rim", "disc"]
    assert (fields["brake"].default, fields["brake"].help_text) == ("rim", "What stops it.")
    assert fields["spare"].allow_null
    size = fields["wheel"].fields["size_cm"]
    assert (size.default, size.help_text) == (70, "Across. 10 to 90 cm.")


def test_rest_refuses_unknown_fields_at_any_depth_and_leaves_bounds_to_the_definition() -> None:
    unknown = serializer_of(Bicycle)(data={"name": "a", "wheel": {"sise_cm": 1}})
    small = serializer_of(Bicycle)(data={"name": "a", "wheel": {"size_cm": 1}})

    assert not unknown.is_valid()
    assert 'Did you mean "size_cm"?' in str(unknown.errors["wheel"]["sise_cm"])
    assert small.is_valid()
    with pytest.raises(Rejected, match=r"wheel\.size_cm"):
        Bicycle.from_json(small.validated_data)


def test_a_form_field_has_label_help_unit_and_choices_of_the_definition() -> None:
    fields = definitions.deep_fields_of(Bicycle)

    size = definition_fields.form_field(fields["wheel.size_cm"])
    brake: Any = definition_fields.form_field(fields["brake"])

    assert (size.label, size.help_text, size.widget.attrs["data-unit"]) == ("Size", "Across.", "cm")
    assert brake.choices == [("disc", "Disc brake"), ("rim", "rim")]


@pytest.mark.parametrize(
    ("path", "text", "value"),
    [
        ("wheel.size_cm", "20", 20),
        ("wheel.size_cm", "wide", "wide"),
        ("wheel.gears", "4, 8", [4, 8]),
        ("has_light", "on", True),
        ("brake", "disc", "disc"),
    ],
)
def test_texts_of_a_form_become_values_and_back(path: str, text: str, value: Any) -> None:
    definition = definitions.deep_fields_of(Bicycle)[path]

    assert definition_fields.from_text(definition, text) == value
    assert definition_fields.to_text(definition, value) == text
