"""What is served on a cluster with: images, the role that reads models, and what is installed there.

Empty means as everywhere: the portal's own setting.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Final

IMAGES: Final = ("triton_image", "triton_vllm_image", "vllm_image", "storage_image")
_IMAGE = re.compile(r"[a-z0-9][-a-z0-9._/:]{0,200}(@sha256:[0-9a-f]{64})?", re.IGNORECASE)
_ROLE = re.compile(r"arn:aws[-a-z]*:iam::\d{12}:role/[\w+=,.@/-]{1,128}")
_NAME = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")
# Without "@": it is shown, so it must not hold a password.
_URL = re.compile(r"https?://[^\s/@]+(/[^\s@]*)?")


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingPolicy:
    triton_image: str = ""
    triton_vllm_image: str = ""
    vllm_image: str = ""
    storage_image: str = ""
    # The role that pods assume by their service account (IRSA).
    role_arn: str = ""
    # A Secret with S3 keys in every team's namespace, for clusters without roles.
    storage_secret: str = ""
    # As the cluster's own KEDA reaches it.
    prometheus_url: str = ""
    cache_node_group: str = ""

    def to_json(self) -> dict[str, str]:
        return {name: value for name, value in asdict(self).items() if value}

    def over(self, usual: ServingPolicy) -> ServingPolicy:
        """With what is usual where it says nothing. A cluster whose pods read with keys has no role,
        whatever the others have.
        """
        found = {**asdict(usual), **self.to_json()}
        if self.storage_secret:
            found["role_arn"] = ""
        return ServingPolicy(**found)

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> ServingPolicy:
        known = {one.name for one in fields(cls)}
        return cls(**{name: str(value) for name, value in raw.items() if name in known})


def problems(policy: ServingPolicy) -> dict[str, str]:
    """What cannot be right, by field."""
    found = {
        name: "Name an image: registry/name:tag."
        for name in IMAGES
        if not _matches(_IMAGE, getattr(policy, name))
    }
    if not _matches(_ROLE, policy.role_arn):
        found["role_arn"] = "Use the form arn:aws:iam::123456789012:role/slipway-models."
    if not _matches(_NAME, policy.storage_secret):
        found |= {"storage_secret": "Name a Secret: lower-case letters, digits, '-' and '.'."}
    if not _matches(_URL, policy.prometheus_url):
        found["prometheus_url"] = "Use an address such as http://prometheus.monitoring:9090."
    if not _matches(_NAME, policy.cache_node_group):
        found["cache_node_group"] = "Name a LocalModelNodeGroup of KServe."
    if policy.role_arn and policy.storage_secret:
        either = "Pods read by the role or by the keys: leave one of them empty."
        found |= {"storage_secret": either}
    return found


def _matches(pattern: re.Pattern[str], text: str) -> bool:
    return not text or pattern.fullmatch(text) is not None
