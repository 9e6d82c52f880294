"""Deployments: read them, request changes of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from slipway_client import waiting
from slipway_client.connection import Connection
from slipway_client.decoding import decode
from slipway_client.errors import Failed, InvalidInput, NotFound
from slipway_client.resources.names import parse_model
from slipway_client.settings import merge_settings
from slipway_client.types import (
    Change,
    ChangePreflight,
    Deployment,
    DeploymentEvent,
    DeploymentStats,
    Log,
    Preflight,
    Preset,
    Promotion,
    Revision,
)

# Of a canary: 5%, 25%, 50%, ten minutes and a hundred requests each.
DEFAULT_STEPS: Final = tuple(
    {"weight": weight, "soak_seconds": 600, "min_requests": 100} for weight in (5, 25, 50)
)


# Fields of a stored spec that no request states.
_SET_BY_PORTAL: Final = frozenset({"image", "schema"})


class Deployments:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def list(self, *, team: str = "", state: str = "", search: str = "") -> Iterator[Deployment]:
        query = {"team": team, "state": state, "search": search}
        return (decode(Deployment, row) for row in self._connection.pages("deployments", query))

    def get(self, deployment: int | str) -> Deployment:
        """Return a deployment by id, or by team/name. Raises NotFound."""
        if isinstance(deployment, int):
            return decode(Deployment, self._connection.get(f"deployments/{deployment}"))
        name = parse_model(deployment)
        for row in self.list(team=name.team, search=name.model):
            if row.name == name.model and row.team == name.team and row.state != "retired":
                return row
        raise NotFound(
            404, {"detail": f"{name} is not a deployment of yours.", "code": "not_found"}
        )

    def check(
        self,
        *,
        version: int,
        cluster: int,
        name: str,
        spec: Mapping[str, Any],
        environment: str,
        preset: int | None = None,
        replaces: int | None = None,
    ) -> Preflight:
        """Return the checks and the cost of a deployment, without requesting it."""
        body = _draft(version, cluster, name, spec, environment, preset, replaces)
        return decode(Preflight, self._connection.post("deployments/preflight", body))

    def request(
        self,
        *,
        version: int,
        cluster: int,
        name: str,
        spec: Mapping[str, Any],
        environment: str = "production",
        preset: int | None = None,
        comment: str = "",
        replaces: int | None = None,
    ) -> Change:
        """Request a new deployment; the change request is then to be approved. What the spec leaves out has the
        values of the preset. `replaces` is the id of your own request whose place it takes (`resubmit` copies its
        values).
        """
        draft = _draft(version, cluster, name, spec, environment, preset, replaces)
        return decode(Change, self._connection.post("deployments", {**draft, "comment": comment}))

    def resubmit(
        self,
        change: Change,
        *,
        spec: Mapping[str, Any] | None = None,
        version: int | None = None,
        name: str = "",
        comment: str | None = None,
    ) -> Change:
        """Request the deployment of `change` again, in its place: your own request that waits, was rejected or expired.

        What is left out is as there; `spec` has the settings that differ. A request that waits is withdrawn.
        """
        cluster = change.raw.get("cluster_id")
        if change.revision is None or not isinstance(cluster, int):
            raise InvalidInput(f"Change request {change.id} has no settings to copy.")
        earlier = {
            key: row for key, row in change.revision.spec.items() if key not in _SET_BY_PORTAL
        }
        return self.request(
            version=change.revision.version_id if version is None else version,
            cluster=cluster,
            name=name or change.deployment,
            spec=merge_settings(earlier, spec or {}),
            environment=change.environment,
            comment=change.comment if comment is None else comment,
            replaces=change.id,
        )

    def presets(self, team: str) -> Sequence[Preset]:
        """Return the presets that a deployment of the team may start from: the platform's, then the team's."""
        rows = self._connection.get(f"teams/{team}/deployment-presets")
        return tuple(decode(Preset, row) for row in rows)

    def check_change(self, deployment: int, kind: str, **settings: Any) -> ChangePreflight:
        path = f"deployments/{deployment}/changes/preflight"
        return decode(ChangePreflight, self._connection.post(path, {"kind": kind, **settings}))

    def request_change(
        self, deployment: int, kind: str, *, comment: str = "", **settings: Any
    ) -> Change:
        """Request a change. `kind` is canary, roll_back, scale, stop, start or retire, with its settings of REST."""
        body = {"kind": kind, "comment": comment, **settings}
        return decode(Change, self._connection.post(f"deployments/{deployment}/changes", body))

    def canary(
        self,
        deployment: int,
        version: int,
        *,
        steps: Sequence[Mapping[str, Any]] = DEFAULT_STEPS,
        plan: Mapping[str, Any] | None = None,
        spec: Mapping[str, Any] | None = None,
        comment: str = "",
    ) -> Change:
        """Request a canary of `version`. Left out, the guards are the portal's defaults and the
        spec is that of the stable revision.
        """
        given = {"steps": list(steps), "plan": plan, "spec": spec}
        settings = {name: value for name, value in given.items() if value is not None}
        return self.request_change(
            deployment, "canary", comment=comment, version_id=version, **settings
        )

    def promotion(self, deployment: int) -> Promotion:
        """Return what a deployment showed of its version, and where that can go next."""
        return decode(Promotion, self._connection.get(f"deployments/{deployment}/promotion"))

    def promote(self, deployment: int, *, name: str = "", comment: str = "") -> Change:
        """Request the version of `deployment` for the next environment: as a canary on the deployment
        `name` there (left out: the only one of its model), else as a new deployment of that name.

        The request carries what this environment showed, and its approval binds to it.
        """
        promotion = self.promotion(deployment)
        targets = [row for row in promotion.targets if name in ("", row.name)]
        if len(targets) == 1:
            return self.canary(targets[0].id, promotion.version_id, comment=comment)
        if not name:
            known = ", ".join(row.name for row in targets) or "there is none yet"
            raise InvalidInput(f"Name the deployment in {promotion.environment}: {known}.")
        body = {**promotion.new_deployment, "name": name, "comment": comment}
        return decode(Change, self._connection.post("deployments", body))

    def stop(self, deployment: int, *, reason: str = "") -> Deployment:
        """Stop it now, without an approval."""
        path = f"deployments/{deployment}/stop"
        return decode(Deployment, self._connection.post(path, {"reason": reason}))

    def revisions(self, deployment: int) -> Sequence[Revision]:
        rows = self._connection.get(f"deployments/{deployment}/revisions")
        return tuple(decode(Revision, row) for row in rows)

    def events(self, deployment: int) -> Iterator[DeploymentEvent]:
        """Iterate over the deployment's events, newest first."""
        pages = self._connection.pages(f"deployments/{deployment}/events")
        return (decode(DeploymentEvent, row) for row in pages)

    def stats(self, deployment: int) -> DeploymentStats:
        return decode(DeploymentStats, self._connection.get(f"deployments/{deployment}/stats"))

    def logs(self, deployment: int, *, pod: str = "", lines: int = 200) -> Log:
        """Return the last lines of one pod's log, by default of the newest pod."""
        query = {"pod": pod, "lines": lines}
        return decode(Log, self._connection.get(f"deployments/{deployment}/logs", query))

    def wait_until_ready(
        self,
        deployment: int,
        *,
        seconds: float = 900,
        on_change: Callable[[Deployment], None] | None = None,
    ) -> Deployment:
        """Wait until the stable revision serves as last approved. Raises Failed if it cannot."""
        ended = waiting.wait_for(
            lambda: self.get(deployment),
            _has_settled,
            seconds=seconds,
            describe=lambda current: f"{current} is {current.state} {current.state_reason}".strip(),
            on_change=on_change,
            sleep=self._connection.sleep,
        )
        if ended.state != "ready":
            raise Failed(f"{ended} is {ended.state}: {ended.state_reason or 'it does not serve'}")
        return ended


def _has_settled(deployment: Deployment) -> bool:
    if deployment.state in ("stopped", "retired"):
        return True
    return deployment.is_current and deployment.state == "ready"


def _draft(
    version: int,
    cluster: int,
    name: str,
    spec: Mapping[str, Any],
    environment: str,
    preset: int | None,
    replaces: int | None,
) -> dict[str, Any]:
    if "/" in name:
        raise InvalidInput(
            f"{name!r}: a deployment is in the team of its model. Leave the team out."
        )
    draft = {
        "version_id": version,
        "cluster_id": cluster,
        "name": name,
        "environment": environment,
        "spec": dict(spec),
        **({} if preset is None else {"preset_id": preset}),
    }
    return draft if replaces is None else {**draft, "replaces_id": replaces}
