"""The MIG layout of a node: drained first, then NVIDIA's MIG manager cuts its GPUs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from fleet.actions.domain import mig_layouts, outcomes, relabeling
from fleet.actions.domain.evidence import Evidence, FieldChange
from fleet.actions.domain.mig_layouts import (
    CAPABLE_LABEL,
    CONFIG_LABEL,
    MANAGER_LABEL,
    MIXED,
    SINGLE,
    STATE_LABEL,
    STRATEGY_LABEL,
    Layout,
)
from fleet.actions.domain.outcomes import Outcome
from fleet.actions.domain.relabeling import RelabelSettings
from fleet.actions.services import cordon, drain, node_facts, relabel
from fleet.kube.domain.errors import ClusterError
from fleet.kube.services import nodes
from fleet.models import FleetAction, Node
from portal.core.errors import Conflict, Invalid, Unavailable

_WHOLE_ONLY: Final = "whole GPUs"


def layouts_of(node: Node) -> tuple[mig_layouts.Layout, ...]:
    """Return the layouts in the MIG manager's default configuration for the node's GPUs. Empty if there are none,
    or they are unknown.
    """
    return mig_layouts.layouts_of(node.gpu_product, node.gpu_memory_mib)


def why_not(node: Node) -> str:
    """Return why no layout can be requested of the node. Empty if one can."""
    if not layouts_of(node):
        product = node.gpu_product or "a GPU that is not known"
        return f"{node} has {product}, which does not support MIG or is unknown to Slipway."
    labels = node.labels
    if labels.get(CAPABLE_LABEL) == "false":
        return f"{node} reports that its GPUs do not support MIG ({CAPABLE_LABEL}=false)."
    has_manager = labels.get(MANAGER_LABEL) == "true" or CONFIG_LABEL in labels
    if not has_manager:
        return (
            f"No MIG manager is known on {node}: it has neither {MANAGER_LABEL}=true, which NVIDIA's GPU operator "
            f"sets, nor {CONFIG_LABEL}."
        )
    return ""


def observe(action: FleetAction) -> Evidence:
    node = node_facts.present_node(action)
    if reason := why_not(node):
        raise Conflict(reason, code="no_mig")
    layout = _layout(action, node)
    live = _live(action)
    labels = relabeling.labels_of(live)
    strategy = _strategy(labels, layout)
    if labels.get(CONFIG_LABEL) == layout.name:
        raise Conflict(_why_same(node, layout, labels), code="no_change")
    drained = drain.observe(action)
    offered = relabeling.gpu_resources_of(live)
    after = layout.resources(node.gpu_count, strategy)
    return replace(
        drained,
        changes=(
            FieldChange("MIG layout", labels.get(CONFIG_LABEL, _WHOLE_ONLY), str(layout)),
            FieldChange(
                "GPU resources",
                relabeling.describe_resources(offered),
                relabeling.describe_resources(after),
            ),
        ),
        warnings=(*drained.warnings, *_warnings(labels, offered, after)),
        bound={**drained.bound, "layout": labels.get(CONFIG_LABEL, ""), "resources": after},
    )


def advance(action: FleetAction) -> Outcome:
    """The state of the layout before is removed with the same patch, so that it is not taken for this one's."""
    value = RelabelSettings.from_json(action.parameters).value
    return relabel.advance(action, {CONFIG_LABEL: value, STATE_LABEL: None}, _judge)


def _judge(action: FleetAction, live: Mapping[str, Any]) -> Outcome:
    labels = relabeling.labels_of(live)
    desired = RelabelSettings.from_json(action.parameters).value
    if labels.get(CONFIG_LABEL) != desired:
        return relabel.fail_cordoned(
            action, f"Someone set {CONFIG_LABEL}={labels.get(CONFIG_LABEL, '')} meanwhile."
        )
    state = labels.get(STATE_LABEL, "")
    if state == mig_layouts.FAILED:
        return relabel.fail_cordoned(
            action,
            f"The MIG manager could not apply {desired}. Its log on the node has the reason.",
        )
    if state != mig_layouts.SUCCESS:
        shown = f" It says {state}." if state else ""
        return relabel.waits(action, f"Waiting for the MIG manager.{shown}")
    return _judge_resources(action, live)


def _judge_resources(action: FleetAction, live: Mapping[str, Any]) -> Outcome:
    """The device plugin starts again after the MIG manager is done."""
    desired: dict[str, int] = Evidence.from_json(action.evidence).bound["resources"]
    offered = relabeling.gpu_resources_of(live)
    if not desired.items() <= offered.items():
        return relabel.waits(
            action,
            "The MIG manager is done. Waiting for the device plugin: the node offers "
            f"{relabeling.describe_resources(offered)}, not yet {relabeling.describe_resources(desired)}.",
        )
    return outcomes.finish(f"The node offers {relabeling.describe_resources(offered)}.")


def _layout(action: FleetAction, node: Node) -> Layout:
    name, known = RelabelSettings.from_json(action.parameters).value, layouts_of(node)
    layout = mig_layouts.find(known, name)
    if layout is None:
        names = ", ".join(item.name for item in known)
        raise Invalid(
            f"{node.gpu_product} has no layout {name[:40]}.",
            fields={"layout": f"use one of {names}"},
        )
    return layout


def _strategy(labels: Mapping[str, str], layout: Layout) -> str:
    """Return the device plugin's MIG strategy, which says how it offers slices. Raises Conflict if it would not
    offer the slices of the layout.
    """
    strategy = labels.get(STRATEGY_LABEL, "")
    if not layout.slices:
        return strategy
    if strategy == SINGLE and len(layout.slices) > 1:
        raise Conflict(
            f"The device plugin's MIG strategy on this node is {SINGLE}, which offers slices of one size only. "
            f"Request a layout of one size, or set {MIXED}.",
            code="mig_strategy",
        )
    if strategy not in (SINGLE, MIXED):
        raise Conflict(
            f"The device plugin's MIG strategy on this node is {strategy or 'not known'} ({STRATEGY_LABEL}), "
            f"so no slice would be offered. Set {MIXED} or {SINGLE} in its configuration.",
            code="mig_strategy",
        )
    return strategy


def _why_same(node: Node, layout: Layout, labels: Mapping[str, str]) -> str:
    state = labels.get(STATE_LABEL, "not known")
    if state == mig_layouts.SUCCESS:
        return f"{node} already has the layout {layout.name}."
    return (
        f"{node} was already given the layout {layout.name}, and its state is {state}. The MIG manager acts on a "
        f"change of the label only: request {mig_layouts.DISABLED} or another layout first."
    )


def _warnings(
    labels: Mapping[str, str], offered: Mapping[str, int], after: Mapping[str, int]
) -> list[str]:
    warnings = []
    if gone := sorted(set(offered) - set(after)):
        warnings.append(
            f"{', '.join(gone)} will no longer be offered here: pods that request it need another node."
        )
    if labels.get(STATE_LABEL) in ("pending", "rebooting"):
        warnings.append("The MIG manager is working on this node now.")
    warnings.append(
        "The MIG manager may reboot the node, if changing the mode of a GPU requires it."
    )
    return warnings


def _live(action: FleetAction) -> dict[str, Any]:
    try:
        live = nodes.get(cluster_id=action.cluster_id, name=action.target)
    except ClusterError as error:
        raise Unavailable(f"{action.cluster.name} cannot be reached: {error}") from error
    if live is None or live["metadata"]["uid"] != cordon.uid_of(action):
        raise Conflict(f"{action.target} left its cluster.", code="node_gone")
    return live
