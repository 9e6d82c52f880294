"""The forms of fleet actions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any, ClassVar, Final

from django import forms

from fleet.actions.domain.drain_settings import DEFAULT_MINUTES, FEWEST_MINUTES, MOST_MINUTES
from fleet.actions.domain.mig_layouts import Layout
from fleet.actions.domain.plugin_configs import PluginConfig
from fleet.actions.domain.pool_settings import CAPACITY_TYPES, POLICIES, PoolSettings
from fleet.actions.services.node_groups import MOST_NODES
from fleet.clusters.domain.node_groups import GroupSize
from portal.ui.service_form import CommentForm


class DrainForm(CommentForm):
    deadline_minutes = forms.IntegerField(
        label="Deadline",
        initial=DEFAULT_MINUTES,
        min_value=FEWEST_MINUTES,
        max_value=MOST_MINUTES,
        help_text="Minutes from the start. The drain fails if budgets still block pods then.",
    )
    evict_unmanaged = forms.BooleanField(
        label="Evict pods without a controller",
        required=False,
        help_text="Nothing starts them again. If this is off, a node with such pods is not drained.",
    )


class MigForm(DrainForm):
    """The form for a MIG layout. `layouts` are those that the node's GPUs can have."""

    def __init__(self, *args: Any, layouts: Sequence[Layout] = (), **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["layout"] = forms.ChoiceField(
            label="Layout",
            help_text="Applies to every GPU of the node.",
            choices=[(layout.name, str(layout)) for layout in layouts],
        )


class GpuSharingForm(DrainForm):
    """The form for how a node shares GPUs. `configs` are those of the node's device plugin."""

    def __init__(self, *args: Any, configs: Sequence[PluginConfig] = (), **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["config"] = forms.ChoiceField(
            label="Configuration",
            choices=[(config.key, str(config)) for config in configs if not config.problem],
        )


class DecisionForm(CommentForm):
    """One of the buttons of an action's page. `evidence_hash` is what the page showed."""

    ACTIONS: ClassVar = ("approve", "reject", "withdraw", "cancel")
    renamed: ClassVar[Mapping[str, str]] = {"reason": "comment"}

    evidence_hash = forms.CharField(max_length=64, required=False, widget=forms.HiddenInput)
    decision = forms.ChoiceField(choices=[(name, name) for name in ACTIONS])


_CAPACITIES: Final = tuple(
    names
    for count in range(1, len(CAPACITY_TYPES) + 1)
    for names in combinations(CAPACITY_TYPES, count)
)


class PoolForm(CommentForm):
    """The form of a Karpenter NodePool. Lists are written with commas or spaces."""

    instance_types = forms.CharField(
        label="Instance types",
        required=False,
        max_length=1500,
        help_text="For example g5.xlarge, g6.xlarge. Leave empty to keep the instance types.",
    )
    capacity_types = forms.ChoiceField(
        label="Capacity",
        choices=[(",".join(names), " and ".join(names)) for names in _CAPACITIES],
        help_text="With several, Karpenter starts reserved nodes first, then spot nodes.",
    )
    gpu_limit = forms.IntegerField(
        label="GPU limit",
        required=False,
        min_value=0,
        max_value=10_000,
        help_text="Across all its nodes. Leave empty for no limit. 0 starts no nodes.",
    )
    taints = forms.CharField(
        required=False, max_length=1500, help_text="nvidia.com/gpu=true:NoSchedule"
    )
    consolidation = forms.ChoiceField(
        choices=[(name, name) for name in POLICIES],
        help_text="Decides if nodes that are not empty may be replaced by fewer or cheaper ones. Balanced (Karpenter "
        "1.14) does so when the savings outweigh the disruption.",
    )
    consolidate_after = forms.CharField(
        label="Consolidate after",
        initial="5m",
        max_length=20,
        help_text="How long a node must be unchanged: 30s, 5m, 1h, or Never.",
    )

    @property
    def settings(self) -> PoolSettings:
        data = self.cleaned_data
        return PoolSettings(
            instance_types=_split(data["instance_types"]),
            capacity_types=tuple(data["capacity_types"].split(",")),
            gpu_limit=data["gpu_limit"],
            taints=_split(data["taints"]),
            consolidation=data["consolidation"],
            consolidate_after=data["consolidate_after"],
            node_class=data.get("node_class", ""),
        )


class NewPoolForm(PoolForm):
    name = forms.CharField(max_length=63, help_text="Lowercase letters, digits and hyphens.")
    node_class = forms.CharField(
        label="Node class",
        max_length=63,
        help_text="EC2NodeClass of the cluster, on EKS Auto Mode its NodeClass: image, subnets, role.",
    )


def build_initial(settings: PoolSettings) -> dict[str, Any]:
    return {
        **settings.to_json(),
        "instance_types": ", ".join(settings.instance_types),
        "capacity_types": ",".join(sorted(settings.capacity_types)),
        "taints": ", ".join(settings.taints),
    }


def _split(text: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(text.replace(",", " ").split()))


class GroupForm(CommentForm):
    desired_size = forms.IntegerField(label="Desired nodes", min_value=0, max_value=MOST_NODES)
    min_size = forms.IntegerField(label="Min nodes", min_value=0, max_value=MOST_NODES)
    max_size = forms.IntegerField(
        label="Max nodes",
        min_value=1,
        max_value=MOST_NODES,
        help_text="If Cluster Autoscaler runs, it sets the desired number between min and max.",
    )

    @property
    def size(self) -> GroupSize:
        return GroupSize.from_json(self.cleaned_data)
