"""The end of pods: the grace that Kubernetes gives them, and the time in which their server finishes its
requests.

A revision that was requested before the grace was a setting has none stored, and ends as it always did: its pods
must not restart because the portal was upgraded.
"""

from __future__ import annotations

from typing import Any, Final

from deployments.engines.domain import images, table
from deployments.manifests.domain.metadata import ServedRevision
from deployments.spec.domain import serving_spec
from deployments.spec.domain.engines import OTHER_GRACE_SECONDS
from deployments.spec.domain.serving_spec import ServingSpec

# Requests still arrive for a moment after a pod is deleted, until routes have followed.
_FOLLOW_SECONDS: Final = 5
# For what a server does after its last request, before Kubernetes kills it.
_EXIT_SECONDS: Final = 10
# Knative's own limits of a request, unless its configuration was changed (revision-timeout-seconds and
# max-revision-timeout-seconds).
_KNATIVE_DEFAULT_SECONDS: Final = 300
_KNATIVE_MOST_SECONDS: Final = 600
# Ends once the server runs no request in two readings, or is gone. A server that does not answer in time is busy.
_WAIT_UNTIL_IDLE: Final = """\
import ssl, sys, time, urllib.request
port, end = sys.argv[1], time.monotonic() + int(sys.argv[2])
names = ("vllm:num_requests_running", "vllm:num_requests_waiting")
def busy():
    for scheme in ("http", "https"):
        url = f"{scheme}://127.0.0.1:{port}/metrics"
        try:
            page = urllib.request.urlopen(url, timeout=5, context=ssl._create_unverified_context())
            lines = page.read().decode().splitlines()
        except Exception as error:
            if isinstance(getattr(error, "reason", error), ConnectionRefusedError):
                return False
            continue
        return any(float(line.split()[-1]) > 0 for line in lines if line.startswith(names))
    return True
time.sleep(int(sys.argv[3]))
idle = 0
while idle < 2 and time.monotonic() < end:
    idle = 0 if busy() else idle + 1
    time.sleep(1)
"""
# Ray starts a process for each part of a model, and ends it with the server on the first node.
_WAIT_FOR_FIRST_NODE: Final = """\
import pathlib, sys, time
end = time.monotonic() + int(sys.argv[1])
def works():
    for path in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
        try:
            name = path.read_bytes()
        except OSError:
            continue
        if name.startswith(b"ray::") and not name.startswith(b"ray::IDLE"):
            return True
    return False
while works() and time.monotonic() < end:
    time.sleep(1)
"""


def grace_seconds(spec: ServingSpec) -> int:
    """Return the seconds between the deletion of a pod and its kill."""
    seconds = spec.termination_grace_seconds or OTHER_GRACE_SECONDS
    is_knative = spec.scaling.kind == serving_spec.KNATIVE
    return min(seconds, _KNATIVE_MOST_SECONDS) if is_knative else seconds


def drain_seconds(spec: ServingSpec) -> int:
    """Return the seconds in which a server may finish its requests after SIGTERM."""
    return grace_seconds(spec) - _FOLLOW_SECONDS - _EXIT_SECONDS


def knative_request_seconds(spec: ServingSpec) -> int:
    """Return the seconds that Knative lets a request take, which is also the grace of its pods. 0 means as
    Knative is configured.
    """
    seconds = grace_seconds(spec)
    return seconds if seconds > _KNATIVE_DEFAULT_SECONDS else 0


def triton_args(spec: ServingSpec) -> list[str]:
    """Return the argument for the exit timeout, which follows the one of the command and replaces it. Empty
    where that one is right.
    """
    if grace_seconds(spec) == OTHER_GRACE_SECONDS:
        return []
    return [f"--exit-timeout-secs={drain_seconds(spec)}"]


def vllm_args(spec: ServingSpec, image: str) -> list[str]:
    """Return the drain of vLLM itself, where the image is known to have it: an older one refuses the argument."""
    if not (spec.termination_grace_seconds and _drains(image)):
        return []
    return [f"{table.SHUTDOWN_TIMEOUT}={drain_seconds(spec)}"]


def lifecycle(served: ServedRevision, image: str) -> dict[str, Any]:
    """Return the hook that the container of `image` runs before SIGTERM."""
    spec = served.spec
    is_vllm = spec.engine == serving_spec.KSERVE_VLLM
    has_drain = spec.nodes == 1 and _drains(image)
    if not is_vllm or has_drain or not spec.termination_grace_seconds:
        return _before(["sleep", str(_FOLLOW_SECONDS)])
    most = grace_seconds(spec) - _EXIT_SECONDS
    return _before(["python3", "-c", _WAIT_UNTIL_IDLE, "8080", str(most), str(_FOLLOW_SECONDS)])


def worker_fields(spec: ServingSpec) -> dict[str, Any]:
    """Return the fields of the pod on each further node: it ends no sooner than the one that answers."""
    if not spec.termination_grace_seconds:
        return {}
    return {"terminationGracePeriodSeconds": grace_seconds(spec)}


def worker_lifecycle(spec: ServingSpec) -> dict[str, Any]:
    if not spec.termination_grace_seconds:
        return {}
    most = grace_seconds(spec) - _EXIT_SECONDS
    return {"lifecycle": _before(["python3", "-c", _WAIT_FOR_FIRST_NODE, str(most)])}


def _before(command: list[str]) -> dict[str, Any]:
    return {"preStop": {"exec": {"command": command}}}


def _drains(image: str) -> bool:
    """vLLM aborts what runs at SIGTERM, unless it has a shutdown timeout and is given one."""
    release = images.read_vllm_release(image)
    return release is not None and release >= table.find_first_with(table.SHUTDOWN_TIMEOUT)
