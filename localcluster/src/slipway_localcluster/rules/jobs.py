"""Jobs."""

from collections.abc import Iterator

from slipway_localcluster.errors import Cause, JsonObject
from slipway_localcluster.rules.causes import invalid, report_required
from slipway_localcluster.rules.formats import find_label_faults, find_number_faults
from slipway_localcluster.rules.pods import find_pod_spec_faults

_RESTART_POLICIES = ("Always", "OnFailure", "Never")
_NUMBERS = (
    "parallelism",
    "completions",
    "activeDeadlineSeconds",
    "backoffLimit",
    "backoffLimitPerIndex",
    "ttlSecondsAfterFinished",
)


def find_job_faults(obj: JsonObject) -> Iterator[Cause]:
    spec = obj.get("spec") or {}
    for field in _NUMBERS:
        yield from find_number_faults(f"spec.{field}", spec.get(field))
    template = spec.get("template") or {}
    labels = (template.get("metadata") or {}).get("labels")
    yield from find_label_faults("spec.template.metadata.labels", labels)
    pod = template.get("spec") or {}
    yield from find_pod_spec_faults("spec.template.spec", pod, _RESTART_POLICIES)
    # An API server has completed an absent policy to Always before it looks.
    if pod.get("restartPolicy") in (None, "", "Always"):
        yield report_required(
            "spec.template.spec.restartPolicy", 'valid values: "OnFailure", "Never"'
        )
    yield from _find_indexed_faults(spec, pod)


def _find_indexed_faults(spec: JsonObject, pod: JsonObject) -> Iterator[Cause]:
    is_indexed = spec.get("completionMode") == "Indexed"
    if is_indexed and spec.get("completions") is None:
        yield report_required("spec.completions", "when completion mode is Indexed")
    if spec.get("backoffLimitPerIndex") is not None and not is_indexed:
        yield invalid(
            "spec.backoffLimitPerIndex",
            spec["backoffLimitPerIndex"],
            "requires indexed completion mode",
        )
    if spec.get("podFailurePolicy") and pod.get("restartPolicy") == "OnFailure":
        yield invalid(
            "spec.template.spec.restartPolicy",
            "OnFailure",
            'only "Never" is supported when podFailurePolicy is specified',
        )
