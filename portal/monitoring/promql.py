"""Parts of PromQL that rules and dashboards share: which pods are of the portal, and of which deployment.

A pod is named after its revision: `{deployment}-r{number}-…`. A Prometheus of several clusters tells them apart by the
label `cluster`; where there is none, grouping by it changes nothing.
"""

from __future__ import annotations

from typing import Final

from fleet.telemetry.domain import metric_names

ANY_DEPLOYMENT: Final = ".+"
DEPLOYMENT_LABELS: Final = "cluster, namespace, deployment, revision"
_NOT_SERVED: Final = "abort|cancelled|error"
_NAME: Final = "(.+)-(r[0-9]+)-.+"
VLLM: Final = metric_names.VLLM
API_ERRORS: Final = 'handler=~"/v1/.+",status=~"5.*"'
SERVED: Final = f'finished_reason!~"{_NOT_SERVED}"'


def match_pods(deployment: str = ANY_DEPLOYMENT, *, label: str = "pod") -> str:
    """Return a matcher of pods. `deployment` is a regular expression of names."""
    return f'{label}=~"{deployment}-r[0-9]+-.+"'


def by_deployment(aggregate: str, vector: str, *, extra: str = "") -> str:
    """Aggregate series with the label `pod` into one series for each revision."""
    labels = f"{extra}, {DEPLOYMENT_LABELS}" if extra else DEPLOYMENT_LABELS
    return f"{aggregate} by ({labels}) ({_named(vector)})"


def restrict_to_gpu_owners(vector: str, *, deployment: str = ANY_DEPLOYMENT, more: str = "") -> str:
    """Return a metric of dcgm-exporter for the GPUs that pods of the portal hold. `vector` has `WHERE` in the place
    of its matchers.

    Prometheus renames the exporter's labels, unless its ServiceMonitor says honorLabels.
    """
    renamed = vector.replace("WHERE", match_pods(deployment, label="exported_pod") + more)
    honored = vector.replace("WHERE", match_pods(deployment) + more.replace("exported_", ""))
    moved = f'label_replace({renamed}, "namespace", "$1", "exported_namespace", "(.+)")'
    return f"({_named(moved, pod='exported_pod')} or {_named(honored)})"


def larger(left: str, right: str) -> str:
    """Return the larger of two vectors with equal labels, or the one that exists where the other is missing."""
    return f"(({left}) > ({right}) or ({right}) or ({left}))"


def _named(vector: str, *, pod: str = "pod") -> str:
    named = f'label_replace({vector}, "deployment", "$1", "{pod}", "{_NAME}")'
    return f'label_replace({named}, "revision", "$2", "{pod}", "{_NAME}")'
