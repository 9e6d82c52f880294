"""How a node's device plugin shares GPUs: drained first, then it gets the label that chooses a configuration."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from fleet.actions.domain import outcomes, plugin_configs, relabeling
from fleet.actions.domain.evidence import Evidence, FieldChange
from fleet.actions.domain.outcomes import Outcome
from fleet.actions.domain.plugin_configs import CONFIG_LABEL, NONE, ConfigSource, PluginConfig
from fleet.actions.domain.relabeling import RelabelSettings
from fleet.actions.services import drain, node_facts, relabel
from fleet.gpus.domain import shares
from fleet.gpus.domain.shares import MIG_PREFIX, WHOLE
from fleet.kube.domain.errors import ClusterError, NotAllowed
from fleet.kube.services import nodes, objects
from fleet.models import FleetAction, Node
from portal.core.errors import Conflict, DomainError, Invalid, Unavailable

_DEFAULT: Final = "the default"


@dataclass(frozen=True, slots=True)
class NodeConfigs:
    """The configurations that a node's device plugin can be given. `problem` says why they are unknown."""

    configs: tuple[PluginConfig, ...] = ()
    source: ConfigSource | None = None
    problem: str = ""


def describe_configs(node: Node) -> NodeConfigs:
    """Return the configurations of a node for a page: a problem instead of an error."""
    try:
        source, configs = _read(node)
    except DomainError as error:
        return NodeConfigs(problem=error.message)
    return NodeConfigs(configs, source)


def observe(action: FleetAction) -> Evidence:
    node = node_facts.present_node(action)
    if shares.read_gpus(node.labels, node.allocatable).neuron_cores:
        raise Conflict(
            f"{node} has Neuron devices. Only GPUs can be shared this way.", code="no_gpus"
        )
    source, configs = _read(node)
    config = _chosen(action, source, configs)
    live = _live(node)
    labels, offered = relabeling.labels_of(live), relabeling.gpu_resources_of(live)
    current = labels.get(CONFIG_LABEL, "")
    if current == config.key:
        raise Conflict(f"{node} already has the configuration {config.key}.", code="no_change")
    if any(name.startswith(MIG_PREFIX) for name in offered):
        raise Conflict(
            f"{node} offers MIG slices, which can't be shared. Request the MIG layout "
            "all-disabled first.",
            code="mig",
        )
    after = config.resources(node.gpu_count)
    drained = drain.observe(action)
    return replace(
        drained,
        changes=(
            FieldChange("Device plugin configuration", current or _DEFAULT, str(config)),
            FieldChange(
                "GPU resources",
                relabeling.describe_resources(offered),
                relabeling.describe_resources(after),
            ),
        ),
        warnings=(*drained.warnings, *_warnings(config, offered, after)),
        bound={**drained.bound, "config": current, "resources": after, "source": str(source)},
    )


def advance(action: FleetAction) -> Outcome:
    value = RelabelSettings.from_json(action.parameters).value
    return relabel.advance(action, {CONFIG_LABEL: value}, _judge)


def _judge(action: FleetAction, live: Mapping[str, Any]) -> Outcome:
    """The device plugin reloads when the label changes, and says nothing else than what it offers then."""
    labels = relabeling.labels_of(live)
    if labels.get(CONFIG_LABEL) != RelabelSettings.from_json(action.parameters).value:
        return relabel.fail_cordoned(
            action, f"Someone set {CONFIG_LABEL}={labels.get(CONFIG_LABEL, '')} meanwhile."
        )
    desired: dict[str, int] = Evidence.from_json(action.evidence).bound["resources"]
    offered = relabeling.gpu_resources_of(live)
    if desired != offered:
        return relabel.waits(
            action,
            f"Waiting for the device plugin: the node offers {relabeling.describe_resources(offered)}, not yet "
            f"{relabeling.describe_resources(desired)}.",
        )
    return outcomes.finish(f"The node offers {relabeling.describe_resources(offered)}.")


def _chosen(
    action: FleetAction, source: ConfigSource, configs: tuple[PluginConfig, ...]
) -> PluginConfig:
    key = RelabelSettings.from_json(action.parameters).value
    config = next((item for item in configs if item.key == key), None)
    if config is None:
        names = ", ".join(item.key for item in configs) or "none"
        raise Invalid(
            f"The ConfigMap {source} has no key {key[:40]}.",
            fields={"config": f"use one of its keys: {names}"},
        )
    if config.problem:
        raise Invalid(
            f"{config}. Fix it in the ConfigMap {source}.", fields={"config": config.problem}
        )
    return config


def _warnings(
    config: PluginConfig, offered: Mapping[str, int], after: Mapping[str, int]
) -> list[str]:
    warnings = []
    if gone := sorted(set(offered) - set(after)):
        warnings.append(
            f"{', '.join(gone)} will no longer be offered here: pods that request it need another node."
        )
    if config.strategy == plugin_configs.TIME_SLICING:
        warnings.append(
            "Time-sliced replicas have no memory of their own: one pod can take all of it, and then the others fail."
        )
    if config.strategy == plugin_configs.MPS:
        warnings.append(
            "With MPS each replica has an equal part of the memory and of the threads of a GPU."
        )
    if config.strategy != NONE and WHOLE in after:
        warnings.append(f"Pods that request {WHOLE} get a share of a GPU here, not a whole one.")
    return warnings


def _read(node: Node) -> tuple[ConfigSource, tuple[PluginConfig, ...]]:
    source: ConfigSource | None = None
    try:
        pods = nodes.list_pods(cluster_id=node.cluster_id, name=node.name)
        source = plugin_configs.find_source(list(pods))
        if source is None:
            raise Conflict(
                f"No device plugin that reads configurations by {CONFIG_LABEL} runs on {node}. Install it with a "
                "ConfigMap of configurations.",
                code="no_device_plugin",
            )
        config_map = objects.get(
            cluster_id=node.cluster_id,
            api_version="v1",
            kind="ConfigMap",
            namespace=source.namespace,
            name=source.name,
        )
    except NotAllowed as error:
        raise Conflict(_how_to_allow(node, source), code="not_permitted") from error
    except ClusterError as error:
        raise Unavailable(f"{node.cluster.name} cannot be reached: {error}") from error
    return source, plugin_configs.read_configs((config_map or {}).get("data") or {})


def _how_to_allow(node: Node, source: ConfigSource | None) -> str:
    if source is None:
        return f"The portal may not list the pods of {node}. Apply the output of `manage.py cluster_rbac` there."
    return (
        f"The portal may not read the ConfigMap {source} on {node.cluster.name}. Apply the output of "
        f"`manage.py cluster_rbac --fleet-actions --device-plugin-config {source}` there."
    )


def _live(node: Node) -> dict[str, Any]:
    try:
        live = nodes.get(cluster_id=node.cluster_id, name=node.name)
    except ClusterError as error:
        raise Unavailable(f"{node.cluster.name} cannot be reached: {error}") from error
    if live is None or live["metadata"]["uid"] != node.uid:
        raise Conflict(f"{node} left its cluster.", code="node_gone")
    return live
