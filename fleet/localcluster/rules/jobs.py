"""Jobs."""

from collections.abc import Iterator

from fleet.localcluster.errors import Cause, JsonObject
from fleet.localcluster.rules.causes import required
from fleet.localcluster.rules.formats import find_label_faults, find_number_faults
from fleet.localcluster.rules.pods import find_pod_spec_faults

_RESTART_POLICIES = ("Always", "OnFailure", "Never")
_NUMBERS = (
    "parallelism",
    "completions",
    "activeDeadlineSeconds",
    "backoffLimit",
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
        yield required("spec.template.spec.restartPolicy", 'valid values: "OnFailure", "Never"')
