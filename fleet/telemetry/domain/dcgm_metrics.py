"""The last XID of each GPU as dcgm-exporter reports it, from its own page or from Prometheus.

The gauge keeps the last error until the exporter or the driver starts anew; 0: there was none.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping
from typing import Final

from fleet.clusters.domain.prometheus import PrometheusSample
from fleet.observation.domain.gpu_errors import GpuError
from fleet.telemetry.domain import exposition

XID: Final = "DCGM_FI_DEV_XID_ERRORS"
# What scrapes call the node; the exporter's own name of it is last, because it may be its pod's.
_NODE_LABELS: Final = ("node", "kubernetes_node", "exported_node", "Hostname", "hostname")
QUERY: Final = f"max by ({', '.join(_NODE_LABELS)}, gpu, UUID) ({XID})"
_LARGEST: Final = 9999


class NotDcgm(Exception):
    """The page is not dcgm-exporter's."""


def parse_page(text: str) -> list[PrometheusSample]:
    """Return the page's samples of the gauge. Empty if the exporter's list of counters leaves it out."""
    try:
        rows = list(exposition.samples(text))
        if not any(name.startswith("DCGM_FI_") for name, _, _ in rows):
            raise NotDcgm
        return [
            PrometheusSample(value, exposition.parse_labels(labels))
            for name, labels, value in rows
            if name == XID
        ]
    except ValueError as error:
        raise NotDcgm from error


def by_node(
    samples: Iterable[PrometheusSample], *, nodes: Collection[str], node: str = ""
) -> Mapping[str, tuple[GpuError, ...]]:
    """Return the GPU errors of these nodes, each GPU once: pods that share a GPU have a series each. `node` names
    the node whose page it is.

    A node of which all GPUs report 0 has an empty tuple.
    """
    found: dict[str, dict[str, GpuError]] = {}
    for sample in samples:
        name = node or next(
            (sample.labels[k] for k in _NODE_LABELS if sample.labels.get(k) in nodes), ""
        )
        if not name or not math.isfinite(sample.value) or not 0 <= sample.value <= _LARGEST:
            continue
        errors = found.setdefault(name, {})
        gpu, xid = sample.labels.get("gpu", ""), int(sample.value)
        if xid and (gpu not in errors or errors[gpu].xid < xid):
            errors[gpu] = GpuError(gpu=gpu, uuid=sample.labels.get("UUID", ""), xid=xid)
    return {
        name: tuple(sorted(errors.values(), key=lambda error: error.gpu))
        for name, errors in found.items()
    }
