"""A cluster's serving policy: images, access to models, and what teams may use there.

An empty field means the portal's own setting.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal

from fleet.clusters.domain import images
from portal.core.definitions import Definition, setting

_IMAGES: Final = "Images"
_ALLOWED: Final = "Allowed for teams"
_PODS: Final = "Pod restrictions"
_ACCESS: Final = "Model access for pods"
_SERVICES: Final = "Cluster services"
_NETWORKS: Final = ("egress_cidrs", "control_plane_cidrs")
LISTS: Final = (
    "allowed_images",
    "priority_classes",
    "allowed_taints",
    "gateway_namespaces",
    "prometheus_namespaces",
    *_NETWORKS,
)
# Istio without its CNI plugin and KServe's pipeline router need baseline.
RESTRICTED: Final = "restricted"
POD_SECURITY: Final = (RESTRICTED, "baseline")
ROLE_FORM: Final = (
    "Name one role for each team: arn:aws:iam::123456789012:role/slipway-models-{team}, where {team} "
    "becomes the team's short name."
)
IMAGES: Final = (
    "triton_image",
    "triton_vllm_image",
    "vllm_image",
    "vllm_neuron_image",
    "sglang_image",
    "tensorrt_llm_image",
    "storage_image",
)
_IMAGE = re.compile(r"[a-z0-9][-a-z0-9._/:]{0,200}(@sha256:[0-9a-f]{64})?", re.IGNORECASE)
# Placeholder for the team's short name in the name of its role.
TEAM: Final = "{team}"
_ROLE = re.compile(r"arn:aws[-a-z]*:iam::\d{12}:role/[\w+=,.@/-]*\{team\}[\w+=,.@/-]*")
_LONGEST_ROLE: Final = 160
_NAME = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")
_TAINT = re.compile(
    r"[A-Za-z0-9][-A-Za-z0-9_./]{0,316}(=[-A-Za-z0-9_.]{1,63})?:(NoSchedule|NoExecute)"
)
_ENTRIES: Final = {
    "priority_classes": (_NAME, "Enter comma-separated names of PriorityClasses."),
    "allowed_taints": (_TAINT, "Write them as key=value:NoSchedule or key:NoSchedule."),
    "gateway_namespaces": (_NAME, "Enter comma-separated names of namespaces."),
    "prometheus_namespaces": (_NAME, "Enter comma-separated names of namespaces."),
}
# Without "@": the address is shown, so it must not contain a password.
_URL = re.compile(r"https?://[^\s/@]+(/[^\s@]*)?")


def _text(group: str, label: str, help_text: str, *, longest: int = 300) -> Any:
    return setting(label, help_text, group=group, max_length=longest)


def _list(group: str, label: str, help_text: str = "", *, longest: int) -> Any:
    most = images.MAX_ENTRIES
    return setting(label, help_text, group=group, most_items=most, longest_item=longest)


Texts = tuple[str, ...]
_OWN_LIST: Final = "Leave empty for the portal's own list."


class ServingPolicy(Definition):
    triton_image: Annotated[
        str, _text(_IMAGES, "Triton", "Image for new revisions and the runtime in each namespace.")
    ] = ""
    triton_vllm_image: Annotated[
        str, _text(_IMAGES, "Triton with vLLM", "Image for new triton-vllm revisions.")
    ] = ""
    vllm_image: Annotated[str, _text(_IMAGES, "vLLM", "Image for new kserve-vllm revisions.")] = ""
    vllm_neuron_image: Annotated[
        str,
        _text(_IMAGES, "vLLM on Neuron", "Image for new kserve-vllm revisions on Neuron devices."),
    ] = ""
    sglang_image: Annotated[
        str, _text(_IMAGES, "SGLang", "Image for new kserve-sglang revisions.")
    ] = ""
    tensorrt_llm_image: Annotated[
        str, _text(_IMAGES, "TensorRT-LLM", "Image for new kserve-tensorrt-llm revisions.")
    ] = ""
    storage_image: Annotated[
        str,
        _text(
            _IMAGES,
            "Storage initializer",
            "Image that downloads models into pods.",
        ),
    ] = ""
    role_arn: Annotated[
        str,
        _text(
            _ACCESS,
            "IAM role per team (IRSA)",
            "Pods assume it to read the bucket. {team} is replaced with the team's short name.",
            longest=200,
        ),
    ] = ""
    storage_secret: Annotated[
        str,
        _text(
            _ACCESS,
            "Secret with S3 keys",
            "Used instead of a role. Create one with this name in each team's namespace, with keys "
            "that read that team's models only.",
            longest=253,
        ),
    ] = ""
    prometheus_url: Annotated[
        str,
        _text(
            _SERVICES,
            "Prometheus for KEDA",
            "Address of Prometheus inside the cluster.",
            longest=200,
        ),
    ] = ""
    cache_node_group: Annotated[
        str,
        _text(_SERVICES, "Model cache node group", "A KServe LocalModelNodeGroup.", longest=253),
    ] = ""
    # Entries of fleet.clusters.domain.images.
    allowed_images: Annotated[
        Texts,
        _list(
            _ALLOWED,
            "Allowed images",
            "registry/name, registry/path/* for everything below it, or registry/name@sha256 to "
            f"require a digest. {_OWN_LIST}",
            longest=300,
        ),
    ] = ()
    priority_classes: Annotated[
        Texts, _list(_ALLOWED, "Allowed priority classes", _OWN_LIST, longest=253)
    ] = ()
    allowed_taints: Annotated[
        Texts,
        _list(
            _ALLOWED,
            "Allowed taints",
            "Taints of nodes and of claimed devices that deployments may tolerate: reserved=batch:NoSchedule. Leave empty for none but "
            "nvidia.com/gpu and those of spot nodes.",
            longest=400,
        ),
    ] = ()
    gateway_namespaces: Annotated[
        Texts,
        _list(
            _PODS,
            "Gateway proxy namespaces",
            "Namespaces of the gateway's proxies, in addition to the Gateway's own. Envoy Gateway: "
            "envoy-gateway-system.",
            longest=253,
        ),
    ] = ()
    prometheus_namespaces: Annotated[
        Texts,
        _list(
            _PODS,
            "Prometheus namespaces",
            "Namespaces whose pods read metrics of models. Language models answer requests on that port, without a "
            "key. Leave empty for those of the Prometheus resources found in the cluster, else monitoring.",
            longest=63,
        ),
    ] = ()
    egress_cidrs: Annotated[
        Texts,
        _list(
            _PODS,
            "HTTPS egress networks",
            "Networks that pods reach over HTTPS, such as the bucket, STS and a model hub.",
            longest=50,
        ),
    ] = ()
    control_plane_cidrs: Annotated[
        Texts,
        _list(
            _PODS,
            "API server networks",
            "Networks of the API server; on EKS, the subnets of the cluster. Golden requests, trials and "
            "readings of metrics come from them. Leave empty for the addresses that the API server reports.",
            longest=50,
        ),
    ] = ()
    pod_security: Annotated[
        Literal["", "restricted", "baseline"],
        setting(
            "Pod Security",
            "Enforced in team namespaces. Pipelines, and Istio without its CNI plugin, need baseline.",
            choices={"": f"default ({RESTRICTED})"},
            group=_PODS,
        ),
    ] = ""

    def role_for(self, team: str) -> str:
        return self.role_arn.replace(TEAM, team)

    def to_json(self) -> dict[str, Any]:
        filled = {name: value for name, value in self.model_dump().items() if value}
        return {name: list(value) if name in LISTS else value for name, value in filled.items()}

    def with_defaults(self, defaults: ServingPolicy) -> ServingPolicy:
        """Fill empty fields from the defaults. A cluster whose pods read with S3 keys gets no role, even if
        the defaults name one.
        """
        merged = {**defaults.model_dump(), **self.to_json()}
        if self.storage_secret:
            merged["role_arn"] = ""
        return ServingPolicy.from_json(merged)

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> ServingPolicy:
        """Read a policy from a row. Unknown names are ignored."""
        return cls(**{name: _value(name, raw[name]) for name in raw if name in cls.model_fields})


def _value(name: str, raw: Any) -> Any:
    return tuple(map(str, raw)) if name in LISTS else str(raw)


def split(text: str) -> tuple[str, ...]:
    """Split at commas and white space, without duplicates."""
    return tuple(dict.fromkeys(re.split(r"[\s,]+", text.strip()))) if text.strip() else ()


def is_role_of_teams(text: str) -> bool:
    """Whether the role differs by team, or is empty. One role for all teams could read all models."""
    return not text or (len(text) <= _LONGEST_ROLE and _ROLE.fullmatch(text) is not None)


def problems(policy: ServingPolicy) -> dict[str, str]:
    """Return the problems by field. Empty if the policy is valid."""
    problems_by_field = {
        name: "Enter an image: registry/name:tag."
        for name in IMAGES
        if not _matches(_IMAGE, getattr(policy, name))
    }
    if not is_role_of_teams(policy.role_arn):
        problems_by_field["role_arn"] = ROLE_FORM
    if not _matches(_NAME, policy.storage_secret):
        problems_by_field |= {
            "storage_secret": "Enter the name of a Secret: lowercase letters, digits, '-' and '.'."
        }
    if not _matches(_URL, policy.prometheus_url):
        problems_by_field["prometheus_url"] = (
            "Use an address such as http://prometheus.monitoring:9090."
        )
    if not _matches(_NAME, policy.cache_node_group):
        problems_by_field["cache_node_group"] = "Enter the name of a KServe LocalModelNodeGroup."
    if policy.pod_security not in ("", *POD_SECURITY):
        problems_by_field["pod_security"] = f"Use one of {', '.join(POD_SECURITY)}."
    problems_by_field |= _list_problems(policy)
    if policy.role_arn and policy.storage_secret:
        either = "Use a role or a Secret with keys, not both."
        problems_by_field |= {"storage_secret": either}
    return problems_by_field


def _list_problems(policy: ServingPolicy) -> dict[str, str]:
    problems_by_field = {}
    wrong = [problem for entry in policy.allowed_images if (problem := images.entry_problem(entry))]
    if wrong:
        problems_by_field["allowed_images"] = " ".join(wrong)
    for name, (pattern, fix) in _ENTRIES.items():
        if any(not pattern.fullmatch(entry) for entry in getattr(policy, name)):
            problems_by_field[name] = fix
    for name in _NETWORKS:
        if any(not _is_network(cidr) for cidr in getattr(policy, name)):
            problems_by_field[name] = "Use networks such as 52.216.0.0/15 or 0.0.0.0/0."
    for name in LISTS:
        if len(getattr(policy, name)) > images.MAX_ENTRIES:
            problems_by_field[name] = f"List at most {images.MAX_ENTRIES}."
    return problems_by_field


def _is_network(text: str) -> bool:
    try:
        return str(ipaddress.ip_network(text)) == text
    except ValueError:
        return False


def _matches(pattern: re.Pattern[str], text: str) -> bool:
    return not text or pattern.fullmatch(text) is not None
