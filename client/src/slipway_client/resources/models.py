"""Models and their aliases."""

from __future__ import annotations

from collections.abc import Iterator

from slipway_client.connection import Connection
from slipway_client.decoding import decode
from slipway_client.resources.names import parse_model
from slipway_client.types import Alias, Model


class Models:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def list(self, *, team: str = "", search: str = "") -> Iterator[Model]:
        query = {"team": team, "search": search}
        return (decode(Model, row) for row in self._connection.pages("models", query))

    def get(self, name: str) -> Model:
        """Return a model; `name` is team/model."""
        return decode(Model, self._connection.get(f"models/{parse_model(name)}"))

    def create(self, name: str, *, description: str = "", task: str = "") -> Model:
        """Create a model without versions. A push creates its model too."""
        model = parse_model(name)
        body = {
            "team": model.team,
            "name": model.model,
            "description": description,
            "task": task,
        }
        return decode(Model, self._connection.post("models", body))

    def set_alias(self, name: str, alias: str, version: int) -> Alias:
        path = f"models/{parse_model(name)}/aliases/{alias}"
        return decode(Alias, self._connection.put(path, {"version": version}))
