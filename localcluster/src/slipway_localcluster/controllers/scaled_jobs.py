"""ScaledJobs: what KEDA does with its strategy `default`, for the triggers of scaled_job_triggers.py.

Left out: other strategies, minReplicaCount, rollouts and pausing.
"""

import math
import secrets
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from datetime import datetime
from time import monotonic

from slipway_localcluster.controllers import container_env
from slipway_localcluster.controllers import scaled_job_triggers as triggers
from slipway_localcluster.controllers.events import Recorder
from slipway_localcluster.controllers.ownership import (
    controller_reference,
    filter_owned,
    is_deleted,
    write_status,
)
from slipway_localcluster.controllers.reconcile import reconcile_each
from slipway_localcluster.errors import ApiError, JsonObject, NotFound
from slipway_localcluster.kinds import JOB, SCALED_JOB, SECRET, TRIGGER_AUTHENTICATION
from slipway_localcluster.objects import timestamp
from slipway_localcluster.store import Store

_NAME_LABEL = "scaledjob.keda.sh/name"
_SECONDS, _MOST = 30, 100
# As KEDA defaults them.
_HISTORY = 100


class ScaledJobs:
    """The controller of ScaledJobs, in place of KEDA. `now` is a monotonic clock in seconds."""

    def __init__(self, store: Store, now: Callable[[], float] = monotonic) -> None:
        self._store, self._now = store, now
        self._events = Recorder(store, "keda-operator")
        self._polled: dict[str, float] = {}

    def reconcile(self) -> None:
        jobs = self._store.list(JOB)

        def reconcile_one(scaled: JsonObject) -> None:
            if not is_deleted(scaled) and self._is_due(scaled):
                self._poll(scaled, filter_owned(scaled, jobs))

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
            except (triggers.TriggerError, NotFound, OSError) as error:
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
        """Return the workers that the trigger's count requires."""
        return triggers.demand(trigger, self._parameters(scaled, trigger))

    def _parameters(self, scaled: JsonObject, trigger: JsonObject) -> dict[str, str]:
        """Return the parameters of the trigger's TriggerAuthentication. Empty without one."""
        reference = trigger.get("authenticationRef")
        if not reference:
            return {}
        namespace = scaled["metadata"]["namespace"]
        found = self._store.get(TRIGGER_AUTHENTICATION, namespace, reference["name"])
        parameters = {}
        for item in found["spec"].get("secretTargetRef") or ():
            secret = self._store.get(SECRET, namespace, item["name"])
            parameters[item["parameter"]] = container_env.secret_values(secret).get(item["key"], "")
        return parameters

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
