"""Form fields of definitions (portal/core/definitions.py): label, help, unit and choices are theirs.

The form has texts; the definition checks the values that they stand for, so a setting is not
required and keeps what was typed.
"""

from __future__ import annotations

from typing import Any, Final

from django import forms

from portal.core.definitions import FieldDefinition

ON: Final = "on"
OFF: Final = "off"
_LONGEST: Final = 300
# The largest number of any field has fewer; int() itself fails on thousands of digits.
_MOST_DIGITS: Final = 18


def form_field(definition: FieldDefinition) -> forms.Field:
    options: dict[str, Any] = {
        "label": definition.label,
        "help_text": definition.help,
        "required": False,
    }
    if is_switch(definition):
        return forms.ChoiceField(choices=((ON, ON), (OFF, OFF)), **options)
    if definition.values:
        return forms.ChoiceField(choices=list(definition.choices.items()), **options)
    attrs = {"spellcheck": "false", "placeholder": definition.extra.get("placeholder", "")}
    if definition.kind in (int, float) and not definition.is_list:
        attrs |= {"inputmode": "numeric", "data-unit": definition.unit}
    widget = forms.TextInput(attrs={name: value for name, value in attrs.items() if value})
    length = definition.max_length or _LONGEST
    return forms.CharField(max_length=length, widget=widget, **options)


def required_field(definition: FieldDefinition) -> forms.Field:
    options: dict[str, Any] = {
        "label": definition.label,
        "help_text": definition.help,
        "initial": definition.default,
    }
    if definition.kind is int:
        bounds = {"min_value": definition.minimum, "max_value": definition.maximum}
        options["error_messages"] = dict.fromkeys(bounds, definition.fix)
        return forms.IntegerField(**bounds, **options)
    return forms.CharField(max_length=definition.max_length or _LONGEST, **options)


def is_switch(definition: FieldDefinition) -> bool:
    """A part that may be left out is switched on and off as a whole."""
    return definition.kind is bool or (definition.is_nullable and definition.model is not None)


def default_text(definition: FieldDefinition) -> str:
    """A number whose default means "not set" is an empty field, as is one that has no default."""
    if definition.is_required:
        return ""
    default = definition.default
    if definition.extra.get("is_empty_zero") and default == 0:
        return ""
    return to_text(definition, list(default) if definition.is_list else default)


def to_text(definition: FieldDefinition, value: Any) -> str:
    """Format a value for its input. A value of another type stays as it is written, so that it is refused at its
    field.
    """
    if definition.model is not None:
        return OFF if value is None else ON
    if definition.is_list:
        return ", ".join(str(item) for item in value) if isinstance(value, list) else str(value)
    if definition.kind is bool:
        return str(value) if value not in (True, False) else ON if value else OFF
    if definition.unit == "%" and definition.kind is float:
        is_ratio = isinstance(value, int | float) and abs(value) <= 1
        return str(round(value * 100)) if is_ratio else str(value)
    return str(value)


def from_text(definition: FieldDefinition, text: str) -> Any:
    """Parse the text of an input into a JSON value. A part that is switched on has its defaults."""
    if definition.model is not None:
        return {} if text == ON else None
    if definition.is_list:
        return [parse_number(part.strip()) for part in text.split(",") if part.strip()]
    if definition.kind is bool:
        return text == ON
    if definition.kind is float:
        number = parse_number(text)
        is_percent = definition.unit == "%" and isinstance(number, int)
        return int(number) / 100 if is_percent else number
    if definition.kind is int:
        return parse_number(
            text.replace(",", "") if definition.extra.get("has_separators") else text
        )
    return text


def parse_number(text: str) -> int | str:
    """Parse a whole number. Other text stays as typed, so that it is refused at its field."""
    return int(text) if text.isdecimal() and len(text) <= _MOST_DIGITS else text
