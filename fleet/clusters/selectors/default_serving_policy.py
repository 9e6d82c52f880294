"""The portal's own serving policy."""

from __future__ import annotations

from django.conf import settings

from fleet.clusters.domain import serving_policy
from fleet.clusters.domain.serving_policy import ServingPolicy


def default_policy() -> ServingPolicy:
    """Return the values for fields that a cluster's own policy leaves empty."""
    return ServingPolicy(
        triton_image=settings.SLIPWAY_TRITON_IMAGE,
        triton_vllm_image=settings.SLIPWAY_TRITON_VLLM_IMAGE,
        vllm_image=settings.SLIPWAY_VLLM_IMAGE,
        vllm_neuron_image=settings.SLIPWAY_VLLM_NEURON_IMAGE,
        sglang_image=settings.SLIPWAY_SGLANG_IMAGE,
        tensorrt_llm_image=settings.SLIPWAY_TENSORRT_LLM_IMAGE,
        storage_image=settings.SLIPWAY_STORAGE_INITIALIZER_IMAGE,
        role_arn=settings.SLIPWAY_SERVING_ROLE_ARN,
        prometheus_url=settings.SLIPWAY_SCALING_PROMETHEUS_URL,
        cache_node_group=settings.SLIPWAY_MODEL_CACHE_NODE_GROUP,
        allowed_images=serving_policy.split(settings.SLIPWAY_ALLOWED_IMAGES),
        priority_classes=serving_policy.split(settings.SLIPWAY_PRIORITY_CLASSES),
        prometheus_namespaces=serving_policy.split(settings.SLIPWAY_PROMETHEUS_NAMESPACES),
        egress_cidrs=serving_policy.split(settings.SLIPWAY_EGRESS_CIDRS),
        control_plane_cidrs=serving_policy.split(settings.SLIPWAY_CONTROL_PLANE_CIDRS),
    )
