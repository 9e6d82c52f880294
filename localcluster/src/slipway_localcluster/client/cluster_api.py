"""The part of a Kubernetes API that the node agent and the gateway use.

`Store` implements it in the process of the embedded API server, `HttpClusterApi` for any API server.
"""

from typing import Protocol

from slipway_localcluster.errors import JsonObject
from slipway_localcluster.kinds import Kind

Objects = list[JsonObject]


class ClusterApi(Protocol):
    """Reads may be slightly out of date: a write of an outdated object raises Conflict."""

    @property
    def revision(self) -> int:
        """The revision, which grows with every change that `list` returns."""

    def wait(self, revision: int, timeout: float) -> int:
        """Block until a change after `revision`, at most `timeout` seconds."""

    def list(self, kind: Kind, namespace: str | None = None) -> Objects: ...

    def find(self, kind: Kind, namespace: str | None, name: str) -> JsonObject | None: ...

    def create(self, kind: Kind, obj: JsonObject) -> JsonObject: ...

    def replace(self, kind: Kind, obj: JsonObject) -> JsonObject:
        """Write everything except status."""

    def replace_status(self, kind: Kind, obj: JsonObject) -> JsonObject:
        """Write `.status` alone."""

    def delete(
        self,
        kind: Kind,
        namespace: str | None,
        name: str,
        *,
        uid: str | None = None,
        grace_period_seconds: int | None = None,
    ) -> JsonObject:
        """Remove a pod with a grace period of 0 once its processes have ended."""
