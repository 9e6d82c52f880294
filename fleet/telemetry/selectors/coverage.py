"""How much of a workload the latest readings cover: a figure of some of its pods is not its own."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from django.db.models import Exists, OuterRef

from fleet.models import MetricSample, Pod
from portal.core import clock

# Of a model over several nodes only the first pod of each group serves requests and metrics.
_WORKER_INDEX = "leaderworkerset.sigs.k8s.io/worker-index"
_KSERVE_WORKER = "-predictor-worker"


@dataclass(frozen=True, slots=True)
class Coverage:
    """The coverage of a workload's metrics: `read` of `ready` pods gave them. `serving` also counts the pods that
    became ready since.
    """

    read: int
    ready: int
    serving: int

    @property
    def is_complete(self) -> bool:
        return self.read == self.ready


def measure_coverage(*, cluster_id: int, namespace: str, name: str, within: timedelta) -> Coverage:
    """Return the coverage of the readings of the last `within`. A pod that became ready later than that may not
    have been read yet, so it is only among those that serve.
    """
    since = clock.now() - within
    pods = Pod.objects.filter(
        cluster_id=cluster_id,
        namespace=namespace,
        workload__name=name,
        is_ready=True,
        ended_at=None,
        gone_at=None,
    )
    is_read = Exists(MetricSample.objects.filter(pod=OuterRef("pk"), at__gte=since))
    rows = pods.annotate(is_read=is_read).values_list("labels", "ready_at", "is_read")
    serving = [
        (ready_at, bool(pod_is_read)) for labels, ready_at, pod_is_read in rows if _serves(labels)
    ]
    answered = [pod_is_read for ready_at, pod_is_read in serving if ready_at and ready_at < since]
    return Coverage(read=sum(answered), ready=len(answered), serving=len(serving))


def _serves(labels: dict[str, str]) -> bool:
    is_first = labels.get(_WORKER_INDEX, "0") == "0"
    return is_first and not labels.get("app", "").endswith(_KSERVE_WORKER)
