"""Rules for pipelines that can answer: of form, and of the deployments that the steps name."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from deployments.pipelines.domain.pipeline_spec import (
    ANYTHING,
    LONGEST_NAME,
    ROOT,
    NodeKind,
    PipelineNode,
    PipelineSpec,
    PipelineStep,
)
from portal.core.definitions import Rejected

MOST_NODES: Final = 10
MOST_STEPS: Final = 10
MOST_REPLICAS: Final = 20
_FEWEST_STEPS: Final = 2
_ALL: Final = 100
_NAME: Final = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
_QUOTED: Final = re.compile(r'"(?:[^"\\]|\\.)*"')
_CLOSES: Final = {")": "(", "]": "[", "}": "{"}

Faults = Iterator[tuple[str, str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class CallableDeployment:
    """A deployment that a step may call. `inputs` are its tensors; None: not known.

    `path` is the path below its address; `model` is the name that a chat request must give.
    """

    name: str
    path: str
    model: str = ""
    is_chat: bool = False
    inputs: tuple[tuple[str, str, tuple[int, ...]], ...] | None = None
    # Why it cannot be called; empty when it can.
    why_not: str = ""
    # The pipeline's own key opens it.
    needs_key: bool = False


def check(spec: PipelineSpec, members: Mapping[str, CallableDeployment]) -> None:
    """Check a spec against its deployments. Raises Rejected with the faults by path, such as
    nodes.0.steps.1.weight: all of form, else all of the graph, of the deployments or of their requests.
    """
    faults = (
        dict(_form_faults(spec))
        or dict(_graph_faults(spec))
        or dict(_member_faults(spec, members))
        or dict(_request_faults(spec, members))
    )
    if faults:
        raise Rejected(" ".join(dict.fromkeys(faults.values())), faults)


def _form_faults(spec: PipelineSpec) -> Faults:
    if not 1 <= spec.min_replicas <= MOST_REPLICAS:
        yield "min_replicas", f"Replicas of the router must be 1 to {MOST_REPLICAS}."
    if not spec.min_replicas <= spec.max_replicas <= MOST_REPLICAS:
        yield (
            "max_replicas",
            f"Max replicas must be at least min replicas and at most {MOST_REPLICAS}.",
        )
    if not 1 <= len(spec.nodes) <= MOST_NODES:
        yield "nodes", f"A pipeline has 1 to {MOST_NODES} nodes."
    names = [node.name for node in spec.nodes]
    if ROOT not in names:
        yield "nodes", f"Requests enter at the node “{ROOT}”. Name one node “{ROOT}”."
    for place, node in enumerate(spec.nodes):
        path = f"nodes.{place}"
        if names.index(node.name) != place:
            yield f"{path}.name", f"Two nodes are named “{node.name}”."
        if (problem := _name_problem(node.name)) is not None:
            yield f"{path}.name", problem
        yield from _node_faults(node, path)


def _node_faults(node: PipelineNode, path: str) -> Faults:
    if not _FEWEST_STEPS <= len(node.steps) <= MOST_STEPS:
        yield f"{path}.steps", f"{node.name} needs {_FEWEST_STEPS} to {MOST_STEPS} steps."
    labels = [step.label for step in node.steps]
    for index, step in enumerate(node.steps):
        place = f"{path}.steps.{index}"
        if bool(step.deployment) == bool(step.node):
            yield f"{place}.deployment", "Name a deployment or a node, and not both."
            continue
        if (problem := _name_problem(step.label)) is not None:
            yield f"{place}.name", problem
        if labels.index(step.label) != index:
            problem = f"Two steps of {node.name} are named “{step.label}”: name one differently."
            yield f"{place}.name", problem
        yield from _weight_faults(node, step, place)
        yield from _condition_faults(node, index, place)
    if node.kind == NodeKind.SPLITTER and all(step.weight for step in node.steps):
        total = sum(step.weight or 0 for step in node.steps)
        if total != _ALL:
            yield (
                f"{path}.steps",
                f"The weights of {node.name} add up to {total}. They must add up to 100.",
            )


def _weight_faults(node: PipelineNode, step: PipelineStep, path: str) -> Faults:
    if node.kind != NodeKind.SPLITTER:
        if step.weight is not None:
            yield f"{path}.weight", "Only a splitter has weights."
    elif step.weight is None or not 1 <= step.weight <= _ALL:
        yield f"{path}.weight", "Give a weight from 1 to 100 percent."


def _condition_faults(node: PipelineNode, index: int, path: str) -> Faults:
    condition = node.steps[index].condition
    is_last = index == len(node.steps) - 1
    if node.kind == NodeKind.SWITCH:
        if not condition and not is_last:
            yield (
                f"{path}.condition",
                "Enter a condition. Only the last step can take all requests.",
            )
        elif condition == ANYTHING and not is_last:
            yield f"{path}.condition", "It takes every request, so the steps after it get none."
    elif condition and node.kind != NodeKind.SEQUENCE:
        yield f"{path}.condition", "Only a switch and a sequence have conditions."
    elif condition and index == 0:
        yield f"{path}.condition", "The first step has no previous answer."
    if (problem := _condition_problem(condition)) is not None:
        yield f"{path}.condition", problem


def _condition_problem(condition: str) -> str | None:
    """Say what is wrong with a condition. GJSON accepts any text and matches nothing when it is wrong, so
    certain mistakes are refused.
    """
    if not condition.isprintable():
        return "Write it on one line."
    opened: list[str] = []
    for sign in _QUOTED.sub("", condition):
        if sign in _CLOSES.values():
            opened.append(sign)
        elif sign in _CLOSES and (not opened or opened.pop() != _CLOSES[sign]):
            return f"A “{sign}” has no opening bracket."
        elif sign == '"':
            return "A quotation mark is not closed."
    return f"A “{opened[-1]}” is not closed." if opened else None


def _name_problem(name: str) -> str | None:
    if len(name) <= LONGEST_NAME and _NAME.fullmatch(name):
        return None
    return f"“{name}”: use lowercase letters, digits and '-', at most {LONGEST_NAME}."


def _graph_faults(spec: PipelineSpec) -> Faults:
    names = {node.name for node in spec.nodes}
    for place, node in enumerate(spec.nodes):
        for index, step in enumerate(node.steps):
            if step.node and step.node not in names:
                yield f"nodes.{place}.steps.{index}.node", f"There is no node “{step.node}”."
            elif step.node == ROOT:
                yield f"nodes.{place}.steps.{index}.node", "No step leads back to the root."
            elif step.node and _reaches(spec, step.node, node.name, set()):
                problem = f"{node.name} leads to itself; requests would loop forever."
                yield f"nodes.{place}.steps.{index}.node", problem
        if node.name != ROOT and not _reaches(spec, ROOT, node.name, set()):
            yield f"nodes.{place}.name", f"No step leads to the node {node.name}."


def _reaches(spec: PipelineSpec, start: str, goal: str, visited: set[str]) -> bool:
    if start == goal:
        return True
    if start in visited:
        return False
    visited.add(start)
    nodes = (node for node in spec.nodes if node.name == start)
    return any(
        _reaches(spec, step.node, goal, visited)
        for node in nodes
        for step in node.steps
        if step.node
    )


def _member_faults(spec: PipelineSpec, members: Mapping[str, CallableDeployment]) -> Faults:
    for place, node in enumerate(spec.nodes):
        for index, step in enumerate(node.steps):
            if not step.deployment:
                continue
            member = members.get(step.deployment)
            path = f"nodes.{place}.steps.{index}.deployment"
            if member is None:
                yield (
                    path,
                    f"“{step.deployment}” is not a running deployment of this team on this cluster.",
                )
            elif member.why_not:
                yield path, member.why_not


def _request_faults(spec: PipelineSpec, members: Mapping[str, CallableDeployment]) -> Faults:
    """Yield the nodes whose steps do not all accept the same body. A switch sends it to one only."""
    for place, node in enumerate(spec.nodes):
        if node.kind == NodeKind.SWITCH:
            continue
        first, *others = sorted(set(_below(spec, node)))
        for name in others:
            reason = _difference(members[first], members[name])
            if reason:
                yield f"nodes.{place}.steps", f"{reason} Every step of a {node.kind} gets one body."


def _below(spec: PipelineSpec, node: PipelineNode) -> Iterator[str]:
    for step in node.steps:
        if step.deployment:
            yield step.deployment
        else:
            yield from _below(spec, spec.node(step.node))


def _difference(member: CallableDeployment, other: CallableDeployment) -> str:
    """Say why no single request suits both. Empty when one does, or when that is not known."""
    if _protocol(member) != _protocol(other):
        return (
            f"{member.name} is called at {member.path} and {other.name} at {other.path}. They need "
            "different kinds of request."
        )
    if member.is_chat and member.model != other.model:
        return (
            f"A chat request names its model, and {member.name} serves {member.model} while "
            f"{other.name} serves {other.model}."
        )
    if member.inputs is None or other.inputs is None or member.inputs == other.inputs:
        return ""
    return f"{member.name} takes {_describe_inputs(member)}; {other.name} takes {_describe_inputs(other)}."


def _protocol(member: CallableDeployment) -> str:
    return "chat" if member.is_chat else member.path.rpartition("/")[2]


def _describe_inputs(member: CallableDeployment) -> str:
    return ", ".join(
        f"{name} {dtype}[{', '.join('any' if dim < 0 else str(dim) for dim in dims)}]"
        for name, dtype, dims in member.inputs or ()
    )
