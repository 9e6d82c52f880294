"""The devices of a DRA driver that a claim takes, for deployments and batch jobs."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator

from deployments.spec.domain.node_selection import normalized_taints
from portal.core.definitions import setting

ClaimProduct = Annotated[
    str,
    setting(
        "Product of claimed GPUs",
        "Name in the DRA driver, for example NVIDIA A100-SXM4-80GB. Leave empty for any.",
        pattern=r"([A-Za-z0-9][-A-Za-z0-9 ._/+]{0,78}[A-Za-z0-9])?",
        max_length=80,
        fix="Enter the productName of a ResourceSlice, for example NVIDIA L4, or leave it empty.",
    ),
]
ClaimMemory = Annotated[
    int,
    setting(
        "Min memory of claimed GPUs",
        "Only GPUs or slices with at least this much. Leave empty for any.",
        unit="GiB",
        ge=0,
        le=1024,
        fix="Use up to 1024 GiB, or 0 for any.",
        is_empty_zero=True,
    ),
]
ClaimTolerations = Annotated[
    str,
    AfterValidator(normalized_taints),
    setting(
        "Tolerated device taints",
        "Claims may also get devices with these taints, for example example.com/slow:NoSchedule. Comma-separated. The "
        "platform lists what teams may tolerate.",
        max_length=1000,
        fix="Write them as key=value:NoSchedule or key:NoExecute, up to 10.",
    ),
]
