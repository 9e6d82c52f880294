"""Jobs: of one pod that is not tried again, as a load test is, or Indexed ones (indexed_jobs.py).

Left out for the first kind: parallelism, completions, retries, suspension and failure policies.
"""

import secrets
from datetime import UTC, datetime, timedelta

from slipway_localcluster.controllers import indexed_jobs
from slipway_localcluster.controllers.events import Recorder
from slipway_localcluster.controllers.ownership import (
    controller_reference,
    filter_owned,
    is_deleted,
    write_status,
)
from slipway_localcluster.controllers.reconcile import reconcile_each
from slipway_localcluster.controllers.scheduler import is_active
from slipway_localcluster.errors import ApiError, JsonObject, NotFound
from slipway_localcluster.kinds import JOB, POD, Kind
from slipway_localcluster.objects import timestamp
from slipway_localcluster.store import Store

_NAME_LABELS = ("batch.kubernetes.io/job-name", "job-name")
_UID_LABELS = ("batch.kubernetes.io/controller-uid", "controller-uid")
_DEADLINE = ("DeadlineExceeded", "Job was active longer than specified deadline")
_LIMIT = ("BackoffLimitExceeded", "Job has reached the specified backoff limit")


class Jobs:
    """Creates the pod of a Job, records how it ended, and removes the Job when its time is over."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._events = Recorder(store, "job-controller")

    def reconcile(self) -> None:
        pods = self._store.list(POD)

        def reconcile_job(job: JsonObject) -> None:
            if not is_deleted(job):
                self._reconcile_one(job, filter_owned(job, pods))

        reconcile_each(self._store.list(JOB), reconcile_job)

    def _reconcile_one(self, job: JsonObject, pods: list[JsonObject]) -> None:
        status = dict(job.get("status") or {})
        if ended_at := _ended_at(status):
            self._expire(job, ended_at)
            return
        status.setdefault("startTime", timestamp())
        if indexed_jobs.is_indexed(job):
            self._reconcile_indexed(job, pods, status)
        else:
            self._reconcile_single(job, pods, status)

    def _reconcile_single(
        self, job: JsonObject, pods: list[JsonObject], status: JsonObject
    ) -> None:
        phases = [(pod.get("status") or {}).get("phase") for pod in pods]
        limit = job["spec"].get("activeDeadlineSeconds")
        if "Succeeded" in phases:
            status |= _condition(
                "Complete", "CompletionsReached", "Reached expected number of succeeded pods"
            )
            status |= {"completionTime": timestamp(), "succeeded": 1}
        elif limit is not None and _age(status["startTime"]) > timedelta(seconds=limit):
            self._stop(job, pods)
            status |= {**_condition("Failed", *_DEADLINE), "failed": 1}
        elif "Failed" in phases or (not pods and "active" in status):
            status |= {**_condition("Failed", *_LIMIT), "failed": 1}
        elif pods or self._create(job):
            status["active"] = 1
        if _ended_at(status):
            status.pop("active", None)
        if status != job.get("status"):
            write_status(self._store, JOB, job, status)

    def _reconcile_indexed(
        self, job: JsonObject, pods: list[JsonObject], status: JsonObject
    ) -> None:
        progress = indexed_jobs.progress_of(job, pods)
        status |= indexed_jobs.status_of(progress)
        limit = job["spec"].get("activeDeadlineSeconds")
        failure = progress.failure
        if len(progress.succeeded) == job["spec"]["completions"]:
            status |= _condition(
                "Complete", "CompletionsReached", "Reached expected number of succeeded pods"
            )
            status |= {"completionTime": timestamp()}
        elif limit is not None and _age(status["startTime"]) > timedelta(seconds=limit):
            failure = _DEADLINE
        if failure is not None:
            self._stop(job, pods, failure)
            status |= _condition("Failed", *failure)
        made = 0 if _ended_at(status) else sum(self._create(job, i) for i in progress.missing)
        status["active"] = progress.active + made
        if _ended_at(status):
            status.pop("active")
        if status != job.get("status"):
            write_status(self._store, JOB, job, status)

    def _create(self, job: JsonObject, index: int | None = None) -> bool:
        template, owner = job["spec"]["template"], job["metadata"]
        labels = (template.get("metadata") or {}).get("labels") or {}
        annotations = dict((template.get("metadata") or {}).get("annotations") or {})
        name, spec = f"{owner['name']}-{owner['uid'][:5]}", template["spec"]
        if index is not None:
            name = f"{owner['name']}-{index}-{secrets.token_hex(3)[:5]}"
            annotations[indexed_jobs.INDEX] = str(index)
            labels = {**labels, indexed_jobs.INDEX: str(index)}
            spec = indexed_jobs.template_of(job, index)
        metadata = {
            "name": name,
            "generateName": f"{owner['name']}-",
            "namespace": owner["namespace"],
            "labels": {
                **labels,
                **dict.fromkeys(_NAME_LABELS, owner["name"]),
                **dict.fromkeys(_UID_LABELS, owner["uid"]),
            },
            "annotations": annotations,
            "ownerReferences": [controller_reference(job)],
        }
        pod = {"metadata": metadata, "spec": spec, "status": {"phase": "Pending"}}
        try:
            created = self._store.create(POD, pod)
        except ApiError as error:
            self._events.warning(job, "FailedCreate", f"Error creating: {error.message}")
            return False
        name = created["metadata"]["name"]
        self._events.normal(job, "SuccessfulCreate", f"Created pod: {name}")
        return True

    def _stop(
        self, job: JsonObject, pods: list[JsonObject], cause: tuple[str, str] = _DEADLINE
    ) -> None:
        self._events.warning(job, *cause)
        for pod in filter(is_active, pods):
            self._delete(POD, pod)

    def _expire(self, job: JsonObject, ended_at: str) -> None:
        seconds = job["spec"].get("ttlSecondsAfterFinished")
        if seconds is not None and _age(ended_at) > timedelta(seconds=seconds):
            self._delete(JOB, job)

    def _delete(self, kind: Kind, item: JsonObject) -> None:
        metadata = item["metadata"]
        try:
            self._store.delete(kind, metadata["namespace"], metadata["name"], uid=metadata["uid"])
        except NotFound:
            return


def _condition(kind: str, reason: str, message: str) -> JsonObject:
    at = timestamp()
    condition = {"type": kind, "status": "True", "reason": reason, "message": message}
    return {"conditions": [condition | {"lastProbeTime": at, "lastTransitionTime": at}]}


def _ended_at(status: JsonObject) -> str:
    return next((str(item["lastTransitionTime"]) for item in status.get("conditions") or ()), "")


def _age(stamp: str) -> timedelta:
    return datetime.now(UTC) - datetime.fromisoformat(stamp)
