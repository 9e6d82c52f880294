"""Descriptions of pipelines and changes of them for people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from deployments.access.domain import catalogue
from deployments.pipelines.domain.pipeline_spec import (
    ANYTHING,
    NodeKind,
    PipelineNode,
    PipelineSpec,
    PipelineStep,
)
from deployments.states import PipelineChangeKind

_TITLES: Final[Mapping[PipelineChangeKind, str]] = {
    PipelineChangeKind.CREATE: "Create pipeline {}",
    PipelineChangeKind.CHANGE: "Change the steps of pipeline {}",
    PipelineChangeKind.STOP: "Stop pipeline {}",
    PipelineChangeKind.START: "Start pipeline {} again",
    PipelineChangeKind.RETIRE: "Retire pipeline {}",
}
_CONSEQUENCES: Final[Mapping[PipelineChangeKind, str]] = {
    PipelineChangeKind.CREATE: "Starts a router that calls these deployments.",
    PipelineChangeKind.CHANGE: "Replaces the steps; the address stays.",
    PipelineChangeKind.STOP: (
        "Removes the address and its router until someone starts it again. "
        "The deployments keep serving."
    ),
    PipelineChangeKind.START: "Starts its router again, with the same steps.",
    PipelineChangeKind.RETIRE: "Removes the address. The deployments stay.",
}


def change_title(kind: PipelineChangeKind, pipeline: str) -> str:
    return _TITLES[kind].format(pipeline)


def opens_address(kind: PipelineChangeKind) -> bool:
    """Whether callers get answers that they did not get before. Nobody needs a key for a pipeline."""
    return kind in (PipelineChangeKind.CREATE, PipelineChangeKind.START)


def consequence(kind: PipelineChangeKind) -> str:
    """Describe what approving does."""
    opens = f" {catalogue.UNCHECKED.description}" if opens_address(kind) else ""
    return f"{_CONSEQUENCES[kind]}{opens}"


def reached_through(names: Sequence[str]) -> str:
    """Return a sentence. Empty where no deployment needs a key."""
    if not names:
        return ""
    *others, last = names
    listed = f"{', '.join(others)} and {last}" if others else last
    return f"Anyone who reaches the pipeline can call {listed} through it."


def fields_of(spec: PipelineSpec) -> dict[str, str]:
    """Return the nodes with their steps, and the replicas, for comparison with another spec."""
    nodes = {
        node.name: f"{node.kind.value}: {', '.join(_describe(node, step) for step in node.steps)}"
        for node in spec.nodes
    }
    replicas = {"min_replicas": str(spec.min_replicas), "max_replicas": str(spec.max_replicas)}
    return {**nodes, **replicas}


def step_note(node: PipelineNode, step: PipelineStep) -> str:
    """Say when or how often the step is called. Empty where it always is."""
    if step.weight is not None:
        return f"{step.weight}% of requests"
    if node.kind == NodeKind.SWITCH and step.condition in ("", ANYTHING):
        return "all other requests"
    return f"if {step.condition}" if step.condition else ""


def _describe(node: PipelineNode, step: PipelineStep) -> str:
    target = step.deployment or step.node
    name = target if step.label == target else f"{step.label} → {target}"
    notes = [step_note(node, step), "required" if step.is_required else ""]
    shown = ", ".join(note for note in notes if note)
    return f"{name} ({shown})" if shown else name
