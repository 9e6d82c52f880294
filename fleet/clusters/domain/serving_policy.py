"""What is served on a cluster with: images, the role that reads models, and what is installed there.

Empty means as everywhere: the portal's own setting.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Final

from fleet.clusters.domain import images

_NETWORKS: Final = ("egress_cidrs", "control_plane_cidrs")
LISTS: Final = ("allowed_images", "priority_classes", *_NETWORKS)
# What Istio without its CNI plugin, and KServe's router of pipelines, need is the second.
RESTRICTED: Final = "restricted"
POD_SECURITY: Final = (RESTRICTED, "baseline")
ROLE_FORM: Final = (
    "Name one role for each team: arn:aws:iam::123456789012:role/slipway-models-{team}, where {team} "
    "becomes the team's short name."
)
IMAGES: Final = ("triton_image", "triton_vllm_image", "vllm_image", "storage_image")
_IMAGE = re.compile(r"[a-z0-9][-a-z0-9._/:]{0,200}(@sha256:[0-9a-f]{64})?", re.IGNORECASE)
# Stands for the team in the name of its role.
TEAM: Final = "{team}"
_ROLE = re.compile(r"arn:aws[-a-z]*:iam::\d{12}:role/[\w+=,.@/-]*\{team\}[\w+=,.@/-]*")
_LONGEST_ROLE: Final = 160
_NAME = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")
# Without "@": it is shown, so it must not hold a password.
_URL = re.compile(r"https?://[^\s/@]+(/[^\s@]*)?")


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingPolicy:
    triton_image: str = ""
    triton_vllm_image: str = ""
    vllm_image: str = ""
    storage_image: str = ""
    # The role that pods assume by their service account (IRSA): one for each team, by its name.
    role_arn: str = ""
    # A Secret with S3 keys in every team's namespace, for clusters without roles.
    storage_secret: str = ""
    # As the cluster's own KEDA reaches it.
    prometheus_url: str = ""
    cache_node_group: str = ""
    # What members may name: entries of fleet.clusters.domain.images, and PriorityClasses of the cluster.
    allowed_images: tuple[str, ...] = ()
    priority_classes: tuple[str, ...] = ()
    # The Pod Security Standard that namespaces of teams enforce; empty: restricted.
    pod_security: str = ""
    # Addresses that pods may reach by HTTPS: the bucket, the roles' service, a hub of weights.
    egress_cidrs: tuple[str, ...] = ()
    # Where the API server's requests to pods come from: the subnets of the cluster on EKS.
    control_plane_cidrs: tuple[str, ...] = ()

    def role_for(self, team: str) -> str:
        return self.role_arn.replace(TEAM, team)

    def to_json(self) -> dict[str, Any]:
        made = {name: value for name, value in asdict(self).items() if value}
        return {name: list(value) if name in LISTS else value for name, value in made.items()}

    def over(self, usual: ServingPolicy) -> ServingPolicy:
        """With what is usual where it says nothing. A cluster whose pods read with keys has no role,
        whatever the others have.
        """
        found = {**asdict(usual), **self.to_json()}
        if self.storage_secret:
            found["role_arn"] = ""
        return ServingPolicy.from_json(found)

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> ServingPolicy:
        known = {one.name for one in fields(cls)}
        return cls(**{name: _value(name, raw[name]) for name in raw if name in known})


def _value(name: str, raw: Any) -> Any:
    return tuple(map(str, raw)) if name in LISTS else str(raw)


def split(text: str) -> tuple[str, ...]:
    """What was written with commas or on lines of its own, each once."""
    return tuple(dict.fromkeys(re.split(r"[\s,]+", text.strip()))) if text.strip() else ()


def is_role_of_teams(text: str) -> bool:
    """Empty too: no role. One role for all teams would read the models of all."""
    return not text or (len(text) <= _LONGEST_ROLE and _ROLE.fullmatch(text) is not None)


def problems(policy: ServingPolicy) -> dict[str, str]:
    """What cannot be right, by field."""
    found = {
        name: "Enter an image: registry/name:tag."
        for name in IMAGES
        if not _matches(_IMAGE, getattr(policy, name))
    }
    if not is_role_of_teams(policy.role_arn):
        found["role_arn"] = ROLE_FORM
    if not _matches(_NAME, policy.storage_secret):
        found |= {
            "storage_secret": "Enter the name of a Secret: lowercase letters, digits, '-' and '.'."
        }
    if not _matches(_URL, policy.prometheus_url):
        found["prometheus_url"] = "Use an address such as http://prometheus.monitoring:9090."
    if not _matches(_NAME, policy.cache_node_group):
        found["cache_node_group"] = "Enter the name of a KServe LocalModelNodeGroup."
    if policy.pod_security not in ("", *POD_SECURITY):
        found["pod_security"] = f"Use one of {', '.join(POD_SECURITY)}."
    found |= _wrong_lists(policy)
    if policy.role_arn and policy.storage_secret:
        either = "Use a role or a Secret with keys, not both."
        found |= {"storage_secret": either}
    return found


def _wrong_lists(policy: ServingPolicy) -> dict[str, str]:
    found = {}
    wrong = [words for one in policy.allowed_images if (words := images.entry_problem(one))]
    if wrong:
        found["allowed_images"] = " ".join(wrong)
    if any(not _NAME.fullmatch(one) for one in policy.priority_classes):
        found["priority_classes"] = "Enter comma-separated names of PriorityClasses."
    for name in _NETWORKS:
        if any(not _is_network(one) for one in getattr(policy, name)):
            found[name] = "Use networks such as 52.216.0.0/15 or 0.0.0.0/0."
    for name in LISTS:
        if len(getattr(policy, name)) > images.MOST_ENTRIES:
            found[name] = f"List at most {images.MOST_ENTRIES}."
    return found


def _is_network(text: str) -> bool:
    try:
        return str(ipaddress.ip_network(text)) == text
    except ValueError:
        return False


def _matches(pattern: re.Pattern[str], text: str) -> bool:
    return not text or pattern.fullmatch(text) is not None
