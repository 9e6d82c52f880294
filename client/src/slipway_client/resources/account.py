"""The owner of the token, and the clusters to deploy to."""

from __future__ import annotations

from slipway_client.connection import Connection
from slipway_client.decoding import decode
from slipway_client.errors import InvalidInput
from slipway_client.types import Cluster, Me


class Account:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def me(self) -> Me:
        return decode(Me, self._connection.get("me"))

    def clusters(self) -> list[Cluster]:
        return [decode(Cluster, row) for row in self._connection.get("clusters")]

    def cluster(self, name: str = "") -> Cluster:
        """Return a cluster by name; without one, the only cluster. Raises InvalidInput with the names."""
        listed = self.clusters()
        matches = [cluster for cluster in listed if cluster.name == name] if name else listed
        if len(matches) == 1:
            return matches[0]
        names = ", ".join(cluster.name for cluster in listed) or "none"
        problem = f"There is no cluster {name!r}" if name else "Choose a cluster"
        raise InvalidInput(f"{problem}. Registered: {names}.")
