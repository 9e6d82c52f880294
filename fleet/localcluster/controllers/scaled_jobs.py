"""ScaledJobs: what KEDA does for the trigger redis-streams with its strategy `default`.

Left out: other triggers and strategies, minReplicaCount, rollouts and pausing.
"""

import math
import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from datetime import datetime
from time import monotonic

import redis

from fleet.localcluster.controllers import container_env
from fleet.localcluster.controllers.events import Recorder
from fleet.localcluster.controllers.ownership import (
    controller_reference,
    is_deleted,
    owned_by,
    write_status,
)
from fleet.localcluster.controllers.reconcile import reconcile_each
from fleet.localcluster.errors import ApiError, JsonObject, NotFound
from fleet.localcluster.kinds import JOB, SCALED_JOB, SECRET, TRIGGER_AUTHENTICATION
from fleet.localcluster.objects import timestamp
from fleet.localcluster.store import Store

_TRIGGER = "redis-streams"
_NAME_LABEL = "scaledjob.keda.sh/name"
_SECONDS, _MOST = 30, 100
_TIMEOUT = 2.0
# As KEDA defaults them.
_HISTORY = 100


class UnknownTrigger(Exception):
    """KEDA would refuse it."""


class ScaledJobs:
    """`now` is a monotonic clock in seconds."""

    def __init__(self, store: Store, now: Callable[[], float] = monotonic) -> None:
        self._store, self._now = store, now
        self._events = Recorder(store, "keda-operator")
        self._polled: dict[str, float] = {}

    def reconcile(self) -> None:
        jobs = self._store.list(JOB)

        def reconcile_one(scaled: JsonObject) -> None:
            if not is_deleted(scaled) and self._is_due(scaled):
                self._poll(scaled, owned_by(scaled, jobs))

        reconcile_each(self._store.list(SCALED_JOB), reconcile_one)

    def _is_due(self, scaled: JsonObject) -> bool:
        uid, at = scaled["metadata"]["uid"], self._now()
        if at - self._polled.get(uid, -math.inf) < scaled["spec"].get("pollingInterval", _SECONDS):
            return False
        self._polled[uid] = at
        return True

    def _poll(self, scaled: JsonObject, jobs: list[JsonObject]) -> None:
        demands, problem = [], ""
        for trigger in scaled["spec"]["triggers"]:
            try:
                demands.append(self._demand(scaled, trigger))
            except (redis.RedisError, UnknownTrigger, NotFound, OSError) as error:
                problem = str(error)
        is_active = any(demands)
        most = scaled["spec"].get("maxReplicaCount", _MOST)
        running = sum(not _ended_as(job) for job in jobs)
        if is_active:
            for _ in range(min(max(demands), most) - running):
                self._create(scaled)
        self._forget(scaled, jobs)
        conditions = [
            _condition("Ready", is_true=not problem or bool(demands), message=problem),
            _condition("Active", is_true=is_active),
        ]
        status = dict(scaled.get("status") or {})
        if _values(status.get("conditions") or ()) != _values(conditions):
            write_status(self._store, SCALED_JOB, scaled, {**status, "conditions": conditions})

    def _demand(self, scaled: JsonObject, trigger: JsonObject) -> int:
        """Workers for what the trigger counts."""
        if trigger["type"] != _TRIGGER:
            raise UnknownTrigger(f"no scaler found for type: {trigger['type']}")
        values = trigger["metadata"]
        with _client(values, self._password(scaled, trigger)) as client:
            if "lagCount" in values:
                count = _lag(client, values["stream"], values["consumerGroup"])
                return math.ceil(count / int(values["lagCount"]))
            pending = int(client.xpending(values["stream"], values["consumerGroup"])["pending"])
            return math.ceil(pending / int(values["pendingEntriesCount"]))

    def _password(self, scaled: JsonObject, trigger: JsonObject) -> str:
        reference = trigger.get("authenticationRef")
        if not reference:
            return ""
        namespace = scaled["metadata"]["namespace"]
        found = self._store.get(TRIGGER_AUTHENTICATION, namespace, reference["name"])
        for item in found["spec"].get("secretTargetRef") or ():
            if item["parameter"] == "password":
                secret = self._store.get(SECRET, namespace, item["name"])
                return container_env.secret_values(secret).get(item["key"], "")
        return ""

    def _create(self, scaled: JsonObject) -> None:
        owner = scaled["metadata"]
        spec = scaled["spec"]["jobTargetRef"]
        template = spec["template"]
        metadata = dict(template.get("metadata") or {})
        metadata["labels"] = {**(metadata.get("labels") or {}), _NAME_LABEL: owner["name"]}
        job = {
            "apiVersion": JOB.api_version,
            "kind": JOB.kind,
            "metadata": {
                "name": f"{owner['name']}-{secrets.token_hex(3)[:5]}",
                "generateName": f"{owner['name']}-",
                "namespace": owner["namespace"],
                "labels": {**(owner.get("labels") or {}), _NAME_LABEL: owner["name"]},
                "ownerReferences": [controller_reference(scaled)],
            },
            "spec": {**spec, "template": {**template, "metadata": metadata}},
        }
        try:
            self._store.create(JOB, job)
        except ApiError as error:
            self._events.warning(scaled, "KEDAJobsCreateFailed", error.message)
            return
        self._events.normal(scaled, "KEDAJobsCreated", "Created 1 jobs")

    def _forget(self, scaled: JsonObject, jobs: list[JsonObject]) -> None:
        for kind, field in (
            ("Complete", "successfulJobsHistoryLimit"),
            ("Failed", "failedJobsHistoryLimit"),
        ):
            ended = sorted((job for job in jobs if _ended_as(job) == kind), key=_ended_at)
            kept = scaled["spec"].get(field, _HISTORY)
            for job in ended[: max(0, len(ended) - kept)]:
                metadata = job["metadata"]
                with suppress(NotFound):
                    self._store.delete(JOB, metadata["namespace"], metadata["name"])


def _client(values: Mapping[str, str], password: str) -> redis.Redis:
    host, _, port = values["address"].rpartition(":")
    return redis.Redis(
        host=host,
        port=int(port),
        username=values.get("username") or None,
        password=password or None,
        ssl=values.get("enableTLS") == "true",
        socket_timeout=_TIMEOUT,
        socket_connect_timeout=_TIMEOUT,
    )


def _lag(client: redis.Redis, stream: str, group: str) -> int:
    """All that is in the stream until the group is there, as KEDA counts it."""
    try:
        groups = client.xinfo_groups(stream)
    except redis.ResponseError as error:
        if "no such key" in str(error):
            return 0
        raise
    for item in groups:
        if item["name"].decode() == group:
            return int(item["lag"] or 0)
    return int(client.xlen(stream))


def _ended_as(job: JsonObject) -> str:
    return next((str(item["type"]) for item in _conditions(job) if item["status"] == "True"), "")


def _ended_at(job: JsonObject) -> datetime:
    return datetime.fromisoformat(next(_conditions(job))["lastTransitionTime"])


def _conditions(job: JsonObject) -> Iterator[JsonObject]:
    yield from (job.get("status") or {}).get("conditions") or ()


def _condition(kind: str, *, is_true: bool, message: str = "") -> JsonObject:
    status = "True" if is_true else "False"
    return {
        "type": kind,
        "status": status,
        "reason": f"Scaled{kind}" if is_true else f"ScalerNot{kind}",
        "message": message,
        "lastTransitionTime": timestamp(),
    }


def _values(conditions: Iterable[JsonObject]) -> list[tuple[str, ...]]:
    names = ("type", "status", "message")
    return [tuple(str(item.get(name)) for name in names) for item in conditions]
