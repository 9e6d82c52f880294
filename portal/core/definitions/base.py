"""The base of values that are defined once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

from pydantic import BaseModel, ConfigDict, ValidationError

from portal.core.definitions.refusals import Rejected, describe_type, rejection_of


class Definition(BaseModel):
    """Frozen and strict. Raises Rejected, with the path and the fix of every field that is wrong."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)

    def __init__(self, /, **values: Any) -> None:
        try:
            super().__init__(**values)
        except ValidationError as error:
            raise rejection_of(error, type(self)) from error

    @classmethod
    def from_json(cls, data: Any) -> Self:
        """Raises Rejected for what is not a mapping, and for unknown, missing and wrong fields."""
        if not isinstance(data, Mapping):
            message = describe_type(cls)
            raise Rejected(message, {"": message})
        return cls(**_with_text_keys(data))

    def replace(self, **changes: Any) -> Self:
        """Return a copy with some fields changed, checked like any other."""
        fields = type(self).model_fields.items()
        values = {info.alias or name: getattr(self, name) for name, info in fields}
        return type(self)(**{**values, **changes})


def _with_text_keys(data: Any) -> Any:
    """YAML has numbers as keys; then they are the names of unknown fields."""
    if isinstance(data, Mapping):
        return {str(key): _with_text_keys(value) for key, value in data.items()}
    if isinstance(data, list):
        return [_with_text_keys(value) for value in data]
    return data
