"""The pod of the gateway's proxy, as a Gateway's controller runs it: what offers Envoy's metrics.

Envoy itself is a process beside the cluster, so the pod is bound to no node and starts nothing.
"""

from contextlib import suppress

from slipway_localcluster.client.cluster_api import ClusterApi
from slipway_localcluster.controllers import conditions, envoy_stats
from slipway_localcluster.controllers.ownership import is_same_status
from slipway_localcluster.controllers.pod_runner import PORT_ANNOTATION
from slipway_localcluster.errors import ApiError, JsonObject
from slipway_localcluster.kinds import POD

_NAME = "slipway-envoy"
# Where Envoy Gateway's proxies offer their metrics; annotated as they and Istio's do.
_STATS_PORT = 19001
# Outside the addresses that node agents give.
_ADDRESS = "10.243.0.1"


def maintain(api: ClusterApi, *, namespace: str, gateway: str, stats_port: int) -> None:
    """Create the pod, or point it to the port where Envoy's metrics are now."""
    annotations = {
        "prometheus.io/scrape": "true",
        "prometheus.io/port": str(_STATS_PORT),
        "prometheus.io/path": envoy_stats.PATH,
        f"{PORT_ANNOTATION}{_STATS_PORT}": str(stats_port),
    }
    # Changed or deleted meanwhile, or its namespace is new: the next pass writes it.
    with suppress(ApiError):
        pod = api.find(POD, namespace, _NAME)
        if pod is None:
            pod = api.create(POD, _manifest(namespace, gateway, annotations))
        elif pod["metadata"].get("annotations") != annotations:
            pod["metadata"]["annotations"] = annotations
            pod = api.replace(POD, pod)
        status = _status(pod)
        if not is_same_status(pod.get("status") or {}, status):
            api.replace_status(POD, {**pod, "status": status})


def _manifest(namespace: str, gateway: str, annotations: dict[str, str]) -> JsonObject:
    container = {
        "name": "envoy",
        "image": "envoyproxy/envoy",
        "ports": [{"name": "metrics", "containerPort": _STATS_PORT}],
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": _NAME,
            "namespace": namespace,
            "labels": {"gateway.networking.k8s.io/gateway-name": gateway},
            "annotations": annotations,
        },
        "spec": {
            "schedulerName": "slipway.dev/none",
            "automountServiceAccountToken": False,
            "containers": [container],
        },
    }


def _status(pod: JsonObject) -> JsonObject:
    before = (pod.get("status") or {}).get("conditions")
    ready = [
        conditions.condition(kind, conditions.TRUE)
        for kind in ("PodScheduled", "Initialized", "ContainersReady", "Ready")
    ]
    return {
        "phase": "Running",
        "podIP": _ADDRESS,
        "podIPs": [{"ip": _ADDRESS}],
        "conditions": conditions.merge(before, ready),
    }
