"""Versions: read, find, wait until one can be served."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from slipway_client import waiting
from slipway_client.connection import Connection
from slipway_client.decoding import decode
from slipway_client.errors import Failed, NotFound
from slipway_client.resources.names import parse_model, parse_version
from slipway_client.types import Attestation, ListedVersion, Version

_IN_PROGRESS = frozenset({"uploading", "verifying"})


class Versions:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def list(self, model: str) -> Iterator[ListedVersion]:
        """Iterate over the versions of a model, newest first. `model` is team/model."""
        path = f"models/{parse_model(model)}/versions"
        return (decode(ListedVersion, row) for row in self._connection.pages(path))

    def list_by_digest(self, sha256: str) -> Iterator[ListedVersion]:
        """Iterate over the versions with these bytes, in every team of the token's owner."""
        pages = self._connection.pages("versions", {"sha256": sha256})
        return (decode(ListedVersion, row) for row in pages)

    def get(self, version: int | str) -> Version:
        """Return a version by id, or by team/model:3, team/model@champion, or team/model for the newest ready one."""
        if isinstance(version, int):
            return decode(Version, self._connection.get(f"versions/{version}"))
        name = parse_version(version)
        number = name.number
        if name.alias:
            alias = self._connection.get(f"models/{name}/aliases/{name.alias}")
            number = int(alias["version"])
        elif number is None:
            number = self._newest_ready(str(name))
        return decode(Version, self._connection.get(f"models/{name}/versions/{number}"))

    def attest(self, version: int, filename: str, body: str) -> Attestation:
        """Add a signature or provenance: the text of a Sigstore bundle or a DSSE envelope."""
        fields = {"filename": filename, "body": body}
        answer = self._connection.post(f"versions/{version}/attestations", fields)
        return decode(Attestation, answer)

    def attestations(self, version: int) -> tuple[Attestation, ...]:
        rows = self._connection.get(f"versions/{version}/attestations")
        return tuple(decode(Attestation, row) for row in rows)

    def wait_for_attestation(
        self, version: int, attestation: int, *, seconds: float = 120
    ) -> Attestation:
        """Wait until a worker has checked the attestation."""

        def find() -> Attestation:
            rows = self.attestations(version)
            return next(row for row in rows if row.id == attestation)

        return waiting.wait_for(
            find,
            lambda current: current.state != "pending",
            seconds=seconds,
            describe=lambda current: f"{current.filename} is {current.state}",
            on_change=None,
            sleep=self._connection.sleep,
        )

    def wait(
        self,
        version: int,
        *,
        seconds: float = 600,
        on_change: Callable[[Version], None] | None = None,
    ) -> Version:
        """Wait until the version's verification ended. Raises Failed unless it is *ready*."""
        ended = waiting.wait_for(
            lambda: self.get(version),
            lambda current: current.state not in _IN_PROGRESS,
            seconds=seconds,
            describe=lambda current: f"{current} is {current.state}",
            on_change=on_change,
            sleep=self._connection.sleep,
        )
        if ended.state != "ready":
            raise Failed(f"{ended} is {ended.state}: {ended.state_reason}")
        return ended

    def _newest_ready(self, model: str) -> int:
        for version in self.list(model):
            if version.state == "ready":
                return version.number
        raise NotFound(404, {"detail": f"{model} has no version that is ready.", "code": "none"})
