"""Read the names that people type: team/model, team/model:3, team/model@champion."""

from __future__ import annotations

import re
from dataclasses import dataclass

from slipway_client.errors import InvalidInput

_NAME = re.compile(
    r"(?P<team>[^/:@\s]+)/(?P<model>[^/:@\s]+)(?::(?P<number>\d{1,9})|@(?P<alias>[^/:@\s]+))?\Z"
)


@dataclass(frozen=True, slots=True)
class ModelName:
    """A model, or one of its versions by `number` or `alias`."""

    team: str
    model: str
    number: int | None = None
    alias: str = ""

    def __str__(self) -> str:
        return f"{self.team}/{self.model}"


def parse_model(text: str) -> ModelName:
    """Raises InvalidInput unless it is team/model."""
    name = parse_version(text)
    if name.number is not None or name.alias:
        raise InvalidInput(f"{text!r} names a version. Use team/model, for example {name}.")
    return name


def parse_version(text: str) -> ModelName:
    """Raises InvalidInput. Without number and alias it means the newest ready version."""
    match = _NAME.match(text)
    if match is None:
        raise InvalidInput(
            f"{text!r} is not a model. Use team/model, team/model:3 or team/model@champion."
        )
    number = match["number"]
    return ModelName(
        match["team"], match["model"], int(number) if number else None, match["alias"] or ""
    )
