"""PersistentVolumeClaims."""

from collections.abc import Iterator

from slipway_localcluster.errors import Cause, JsonObject
from slipway_localcluster.rules.causes import report_required, report_unsupported

_MODES = frozenset({"ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"})


def find_claim_faults(obj: JsonObject) -> Iterator[Cause]:
    spec = obj.get("spec") or {}
    modes = spec.get("accessModes") or ()
    if not modes:
        yield report_required("spec.accessModes", "at least 1 access mode is required")
    for mode in modes:
        if mode not in _MODES:
            yield report_unsupported("spec.accessModes", mode, _MODES)
    if "storage" not in ((spec.get("resources") or {}).get("requests") or {}):
        yield report_required("spec.resources[storage]")
