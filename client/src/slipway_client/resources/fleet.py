"""Nodes, and actions on them: nothing is done to a node before another person approves it."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from slipway_client import waiting
from slipway_client.connection import Connection
from slipway_client.decoding import decode
from slipway_client.errors import Failed, InvalidInput
from slipway_client.types import FleetAction, FleetActionDetails, Node

_OPEN = frozenset({"submitted", "approved", "applying", "canceling"})


class Fleet:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def nodes(self, *, cluster: int | None = None, name: str = "") -> Iterator[Node]:
        """Iterate over the GPU nodes that exist."""
        pages = self._connection.pages("nodes", {"cluster": cluster, "name": name})
        return (decode(Node, row) for row in pages)

    def node(self, name: str, *, cluster: str = "") -> Node:
        """Return a node by its name. Raises InvalidInput if no cluster, or more than one, has such a node."""
        matches = [node for node in self.nodes(name=name) if cluster in ("", node.cluster_name)]
        if len(matches) == 1:
            return matches[0]
        if not matches:
            where = f"Cluster {cluster}" if cluster else "The fleet"
            raise InvalidInput(f"{where} has no GPU node {name!r}. See: slipway nodes")
        named = ", ".join(node.cluster_name for node in matches)
        raise InvalidInput(f"Several clusters have a node {name!r}: {named}. Choose one.")

    def cordon(self, node: int, *, comment: str = "") -> FleetActionDetails:
        """Request that no new pods start there."""
        return self._request(node, "cordon", {"comment": comment})

    def uncordon(self, node: int, *, comment: str = "") -> FleetActionDetails:
        return self._request(node, "uncordon", {"comment": comment})

    def drain(
        self,
        node: int,
        *,
        deadline_minutes: int | None = None,
        evict_unmanaged: bool = False,
        comment: str = "",
    ) -> FleetActionDetails:
        """Request that its pods are evicted, as their disruption budgets allow. Without a deadline, the
        portal's default.
        """
        body: dict[str, object] = {"comment": comment, "evict_unmanaged": evict_unmanaged}
        if deadline_minutes is not None:
            body["deadline_minutes"] = deadline_minutes
        return self._request(node, "drain", body)

    def actions(self, *, state: str = "", cluster: int | None = None) -> Iterator[FleetAction]:
        """Iterate over the fleet actions, newest first. An empty state matches any."""
        pages = self._connection.pages("fleet-actions", {"state": state, "cluster": cluster})
        return (decode(FleetAction, row) for row in pages)

    def action(self, action: int) -> FleetActionDetails:
        return decode(FleetActionDetails, self._connection.get(f"fleet-actions/{action}"))

    def approve(self, action: FleetActionDetails, *, comment: str = "") -> FleetActionDetails:
        """Approve what `action` shows: refused when its evidence has changed since."""
        body: dict[str, object] = {"evidence_hash": action.evidence_hash, "comment": comment}
        return self._decide(action.id, "approve", body)

    def reject(self, action: int, *, comment: str) -> FleetActionDetails:
        return self._decide(action, "reject", {"comment": comment})

    def withdraw(self, action: int, *, reason: str = "") -> FleetActionDetails:
        """Take a request back before it starts."""
        return self._decide(action, "withdraw", {"reason": reason})

    def cancel(self, action: int, *, reason: str = "") -> FleetActionDetails:
        """Stop a running one; pods that moved stay where they are."""
        return self._decide(action, "cancel", {"reason": reason})

    def wait(
        self,
        action: int,
        *,
        seconds: float = 3600,
        on_change: Callable[[FleetActionDetails], None] | None = None,
    ) -> FleetActionDetails:
        """Wait until the action is done. Raises Failed if it ends in another way."""
        ended = waiting.wait_for(
            lambda: self.action(action),
            lambda current: current.state not in _OPEN,
            seconds=seconds,
            describe=lambda current: f"fleet action {current.id} is {current.state}",
            on_change=on_change,
            sleep=self._connection.sleep,
        )
        if ended.state != "done":
            reason = f": {ended.state_reason}" if ended.state_reason else ""
            raise Failed(f"Fleet action {ended.id} is {ended.state}{reason}")
        return ended

    def _request(self, node: int, what: str, body: dict[str, object]) -> FleetActionDetails:
        return decode(FleetActionDetails, self._connection.post(f"nodes/{node}/{what}", body))

    def _decide(self, action: int, what: str, body: dict[str, object]) -> FleetActionDetails:
        path = f"fleet-actions/{action}/{what}"
        return decode(FleetActionDetails, self._connection.post(path, body))
