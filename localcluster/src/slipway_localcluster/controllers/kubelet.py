"""Runs the pods that are bound to its nodes and reports their status."""

import functools
import ipaddress
import logging
import shutil
import threading
from collections.abc import Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from time import monotonic

from slipway_localcluster.client.cluster_api import ClusterApi
from slipway_localcluster.controllers import container_env, triton
from slipway_localcluster.controllers.events import Recorder
from slipway_localcluster.controllers.ownership import is_deleted, is_same_status
from slipway_localcluster.controllers.pod_runner import (
    CLAIMS_DIRECTORY,
    PODS_DIRECTORY,
    PORT_ANNOTATION,
    PodRunner,
    directory_name,
    end_orphans,
)
from slipway_localcluster.controllers.reconcile import reconcile_each
from slipway_localcluster.controllers.storage import S3Settings
from slipway_localcluster.controllers.triton_container import memory_prefix, remove_shared_memory
from slipway_localcluster.errors import JsonObject, NotFound
from slipway_localcluster.kinds import POD, SECRET, SERVICE_ACCOUNT, Kind
from slipway_localcluster.objects import DEFAULT_GRACE_PERIOD_SECONDS, FINISHED_PHASES

logger = logging.getLogger(__name__)

# As a network plugin assigns them; an API server proxies to no loopback address.
_POD_NETWORK = ipaddress.ip_network("10.244.0.0/16")
_ADDRESS_PREFIX = "10.244."
_STOP_SECONDS = 4.0
_DOWNLOADS, _PROBES = 2, 4


class Kubelet:
    """All methods but `stop` run on one thread."""

    def __init__(
        self, api: ClusterApi, *, nodes: Collection[str], data_dir: Path, s3: S3Settings
    ) -> None:
        self._api = api
        self._nodes = nodes
        self._pods_directory = data_dir / PODS_DIRECTORY
        self._claims_directory = data_dir / CLAIMS_DIRECTORY
        self._tools_directory = data_dir / "triton"
        self._s3 = s3
        self._events = Recorder(api, "kubelet")
        self._runners: dict[str, PodRunner] = {}
        self._installation: triton.Installation | None = None
        self._downloads = ThreadPoolExecutor(_DOWNLOADS, thread_name_prefix="download")
        self._probes = ThreadPoolExecutor(_PROBES, thread_name_prefix="probe")

    def recover(self) -> None:
        """End processes of an earlier run, remove directories of deleted pods, mark the rest unready."""
        self._pods_directory.mkdir(parents=True, exist_ok=True)
        ended = end_orphans(self._pods_directory)
        if ended:
            logger.warning("ended %s orphan processes of an earlier run", ended)
        existing = {directory_name(pod) for pod in self._bound_pods()}
        for directory in self._pods_directory.iterdir():
            remove_shared_memory(memory_prefix(directory))
            if directory.name not in existing:
                shutil.rmtree(directory, ignore_errors=True)
        self.reconcile()

    def reconcile(self) -> None:
        bound = self._bound_pods()
        reconcile_each(bound, self._reconcile_pod)
        living = {pod["metadata"]["uid"] for pod in bound}
        for uid in [uid for uid in self._runners if uid not in living]:
            self._runners.pop(uid).remove()

    def _bound_pods(self) -> list[JsonObject]:
        return [pod for pod in self._api.list(POD) if pod["spec"].get("nodeName") in self._nodes]

    def _reconcile_pod(self, pod: JsonObject) -> None:
        uid = pod["metadata"]["uid"]
        if is_deleted(pod):
            runner = self._runners.get(uid)
            if runner is None or runner.step_termination(_grace_seconds(pod)):
                self._remove(pod)
            else:
                self._report(pod, runner)
            return
        if (pod.get("status") or {}).get("phase") in FINISHED_PHASES:
            return
        runner = self._runner(pod)
        if runner is not None:
            runner.step(functools.partial(self._settings, pod))
            self._report(pod, runner)

    def _runner(self, pod: JsonObject) -> PodRunner | None:
        uid = pod["metadata"]["uid"]
        if uid not in self._runners:
            try:
                installation = self._install()
            except triton.TritonUnavailable as error:
                self._refuse(pod, str(error))
                return None
            self._runners[uid] = PodRunner(
                pod,
                self._pods_directory / directory_name(pod),
                installation,
                address=self._address(pod),
                downloads=self._downloads,
                probes=self._probes,
                claims_directory=self._claims_directory,
                read_environment=functools.partial(self._environment, uid),
            )
        return self._runners[uid]

    def _environment(self, uid: str, container: JsonObject) -> Mapping[str, str]:
        """Return the environment of a container that starts now. Raises MissingReference."""
        pod = next(pod for pod in self._bound_pods() if pod["metadata"]["uid"] == uid)
        status = {**(pod.get("status") or {}), "podIP": self._runners[uid].address}
        namespace = pod["metadata"]["namespace"]

        def find(kind: Kind, name: str) -> JsonObject | None:
            return self._api.find(kind, namespace, name)

        return container_env.resolve({**pod, "status": status}, container, find)

    def _address(self, pod: JsonObject) -> str:
        """Choose a pod's address, which is of no real network. A pod keeps its own after a restart of the agent."""
        own = str((pod.get("status") or {}).get("podIP", ""))
        if own.startswith(_ADDRESS_PREFIX):
            return own
        taken = {(other.get("status") or {}).get("podIP") for other in self._bound_pods()}
        taken |= {runner.address for runner in self._runners.values()}
        return next(str(host) for host in _POD_NETWORK.hosts() if str(host) not in taken)

    def _install(self) -> triton.Installation:
        if self._installation is None:
            self._installation = triton.install(self._tools_directory)
        return self._installation

    def _refuse(self, pod: JsonObject, message: str) -> None:
        if (pod.get("status") or {}).get("message") == message:
            return
        status = {**(pod.get("status") or {}), "phase": "Failed"}
        status |= {"reason": "TritonUnavailable", "message": message}
        self._api.replace_status(POD, {**pod, "status": status})
        self._events.warning(pod, "Failed", message)

    def _report(self, pod: JsonObject, runner: PodRunner) -> None:
        """Report the pod. Ports come first: a ready pod must be reachable."""
        annotations = dict(pod["metadata"].get("annotations") or {})
        desired = {k: v for k, v in annotations.items() if not k.startswith(PORT_ANNOTATION)}
        desired |= {f"{PORT_ANNOTATION}{port}": str(real) for port, real in runner.ports().items()}
        if annotations != desired:
            pod["metadata"]["annotations"] = desired
            pod = self._api.replace(POD, pod)
        status = runner.status(pod)
        before = pod.get("status") or {}
        if not is_same_status(status, before):
            self._api.replace_status(POD, {**pod, "status": status})
            self._record_changes(pod, before, status)

    def _record_changes(self, pod: JsonObject, before: JsonObject, status: JsonObject) -> None:
        for field in ("initContainerStatuses", "containerStatuses"):
            states = {item["name"]: item["state"] for item in before.get(field) or ()}
            for item in status.get(field) or ():
                if states.get(item["name"]) != item["state"]:
                    self._record_state(pod, item["name"], item["state"])

    def _record_state(self, pod: JsonObject, name: str, state: JsonObject) -> None:
        if "running" in state:
            self._events.normal(pod, "Started", f"Started container {name}")
        reason = (state.get("waiting") or {}).get("reason", "")
        message = (state.get("waiting") or {}).get("message", reason)
        if reason == "CrashLoopBackOff":
            self._events.warning(pod, "BackOff", f"Back-off restarting failed container {name}")
        elif reason not in ("", "ContainerCreating", "PodInitializing"):
            self._events.warning(pod, "Failed", message)

    def _remove(self, pod: JsonObject) -> None:
        metadata = pod["metadata"]
        runner = self._runners.pop(metadata["uid"], None)
        if runner is not None:
            runner.remove()
        with suppress(NotFound):
            self._api.delete(
                POD,
                metadata["namespace"],
                metadata["name"],
                uid=metadata["uid"],
                grace_period_seconds=0,
            )

    def _settings(self, pod: JsonObject) -> S3Settings:
        """Return the S3 settings, with credentials from a Secret that the pod's service account lists, or else the
        cluster's own.
        """
        namespace = pod["metadata"]["namespace"]
        name = pod["spec"].get("serviceAccountName") or "default"
        account = self._api.find(SERVICE_ACCOUNT, namespace, name) or {}
        for reference in account.get("secrets") or ():
            secret = self._api.find(SECRET, namespace, reference["name"])
            values = container_env.secret_values(secret or {})
            if "AWS_ACCESS_KEY_ID" in values:
                annotations = (secret or {})["metadata"].get("annotations") or {}
                return self._s3.with_secret(values, annotations)
        return self._s3

    def stop(self, steps: threading.Event) -> None:
        """End every process; the pods stay in the API and start again with the next run."""
        for runner in self._runners.values():
            runner.terminate()
        deadline = monotonic() + _STOP_SECONDS
        while monotonic() < deadline:
            if all(runner.has_ended() for runner in self._runners.values()):
                break
            steps.wait(0.05)
        for runner in self._runners.values():
            runner.kill()
        self._downloads.shutdown(wait=False, cancel_futures=True)
        self._probes.shutdown(wait=False, cancel_futures=True)


def _grace_seconds(pod: JsonObject) -> float:
    seconds = pod["metadata"].get("deletionGracePeriodSeconds")
    return float(DEFAULT_GRACE_PERIOD_SECONDS if seconds is None else seconds)
