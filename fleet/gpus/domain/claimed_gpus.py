"""The label by which pods with a ResourceClaim say which GPUs they hold: a claim's name says nothing of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

CLAIMED_LABEL: Final = "slipway.dev/claimed-gpus"


def label_of(resource: str, units: int) -> str:
    """ "nvidia.com_mig-1g.10gb.2": values of labels have no slash."""
    return f"{resource.replace('/', '_')}.{units}"


def read(labels: Mapping[str, str]) -> tuple[str, int]:
    """Resource and units; "" and 0 without a label that can be read."""
    resource, _, units = labels.get(CLAIMED_LABEL, "").rpartition(".")
    if not units.isdecimal() or len(units) > 3 or not int(units):
        return "", 0
    return resource.replace("_", "/"), int(units)
