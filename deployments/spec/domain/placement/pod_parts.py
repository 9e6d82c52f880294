"""The parts of a pod that settings of the placement write, and the objects beside it."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from fleet.clusters.domain.provisioner import NodeLabels

# Of a node affinity: key, operator and values.
NodeExpression = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class PodContext:
    """The cluster and the workload whose pods are written."""

    # The labels of nodes that the cluster's provisioner lets pods require.
    node_labels: NodeLabels
    # The names of dependent objects begin with it.
    workload: str
    # The labels that select the workload's pods.
    selector: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class DependentObject:
    """An object beside the workload, without the metadata that all objects have."""

    api_version: str
    kind: str
    name: str
    spec: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class PodParts:
    """The parts of a pod that one setting writes, or all of them together."""

    node_selector: Mapping[str, str] = field(default_factory=dict)
    # Expressions that the node must meet, where a node selector does not suffice.
    required: tuple[NodeExpression, ...] = ()
    # Groups of expressions of which the node must meet one.
    alternatives: tuple[tuple[NodeExpression, ...], ...] = ()
    # Preferred terms of the node affinity, as Kubernetes has them.
    preferred: tuple[Mapping[str, Any], ...] = ()
    # Further fields of the pod's spec.
    fields: Mapping[str, Any] = field(default_factory=dict)
    # Amounts that the server's container requests, beside CPU and memory.
    amounts: Mapping[str, str] = field(default_factory=dict)
    # Names of the pod's resource claims that the server's container uses.
    claims: tuple[str, ...] = ()
    # Labels and annotations of pods alone.
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    # Labels of the workload; of its pods too, unless they are those of a Job.
    workload_labels: Mapping[str, str] = field(default_factory=dict)
    objects: tuple[DependentObject, ...] = ()
    # Whether a DaemonSet keeps the images on the nodes that may run the pods.
    pulls_images: bool = False
    # Whether a Job is created suspended.
    suspends_job: bool = False

    @property
    def node_fields(self) -> dict[str, Any]:
        """The fields of the pod's spec that choose nodes: node selector and node affinity. Empty fields are left out."""
        fields: dict[str, Any] = {}
        if self.node_selector:
            fields["nodeSelector"] = dict(self.node_selector)
        if affinity := self._node_affinity:
            fields["affinity"] = {"nodeAffinity": affinity}
        return fields

    @property
    def _node_affinity(self) -> dict[str, Any]:
        affinity: dict[str, Any] = {}
        if self.required or self.alternatives:
            # Terms are alternatives, so that each of them has what is required.
            terms = [[*self.required, *group] for group in self.alternatives or ((),)]
            if self.preferred:
                # Karpenter drops terms from the front before it drops a preferred type: the last has to be its own.
                terms.reverse()
            affinity["requiredDuringSchedulingIgnoredDuringExecution"] = {
                "nodeSelectorTerms": [{"matchExpressions": term} for term in terms]
            }
        if self.preferred:
            affinity["preferredDuringSchedulingIgnoredDuringExecution"] = list(self.preferred)
        return affinity


# Of a setting that writes nothing.
NOTHING: Final = PodParts()


def join(written: Sequence[PodParts]) -> PodParts:
    """Join the parts of settings. A pod meets what each of them requires."""
    parts = [part for part in written if part is not NOTHING]
    alternatives = [part.alternatives for part in parts if part.alternatives]
    return PodParts(
        node_selector=_join_maps(part.node_selector for part in parts),
        required=tuple(one for part in parts for one in part.required),
        # One group of each setting, in every combination.
        alternatives=tuple(
            tuple(itertools.chain.from_iterable(groups))
            for groups in itertools.product(*alternatives)
            if groups
        ),
        preferred=tuple(one for part in parts for one in part.preferred),
        fields=_join_maps(part.fields for part in parts),
        amounts=_join_maps(part.amounts for part in parts),
        claims=tuple(name for part in parts for name in part.claims),
        labels=_join_maps(part.labels for part in parts),
        annotations=_join_maps(part.annotations for part in parts),
        workload_labels=_join_maps(part.workload_labels for part in parts),
        objects=tuple(one for part in parts for one in part.objects),
        pulls_images=any(part.pulls_images for part in parts),
        suspends_job=any(part.suspends_job for part in parts),
    )


def _join_maps(maps: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    return {name: value for one in maps for name, value in one.items()}
