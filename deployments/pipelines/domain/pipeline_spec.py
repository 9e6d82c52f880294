"""What a pipeline is: nodes whose steps ask deployments, or further nodes, behind one address.

Every step of a pipeline is sent the client's own request. KServe could also send one step's answer to
the next, but an answer of the v2 protocol says "outputs" where a request must say "inputs", and the
router passes bodies on as they are: such a chain could never answer, so it is refused here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any, Final

from deployments.errors import Rejected
from deployments.spec.domain import typed_json

SCHEMA: Final = 1
# KServe's own word for the node that a request enters.
ROOT: Final = "root"
# Whatever the request holds; for the last step of a switch.
ANYTHING: Final = "@this"
NO_CHAIN: Final = (
    'KServe forwards request bodies unchanged, and a model that wants {"inputs": …} refuses the '
    '{"outputs": …} of another. To feed one model\'s answer into the next, pack them as a Triton '
    "ensemble and deploy that; here every step gets the client's own request."
)


class NodeKind(StrEnum):
    SEQUENCE = "sequence"
    ENSEMBLE = "ensemble"
    SPLITTER = "splitter"
    SWITCH = "switch"


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """Asks one deployment, or the node of that name. `is_required`: its failure is the answer.

    `weight` is for splitters; `condition` is a GJSON path: of the request in a switch, of the answer
    before in a sequence.
    """

    name: str = ""
    deployment: str = ""
    node: str = ""
    weight: int | None = None
    condition: str = ""
    is_required: bool = False

    @property
    def label(self) -> str:
        """As an ensemble's answer names it."""
        return self.name or self.deployment or self.node


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    name: str
    kind: NodeKind
    steps: tuple[Step, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineSpec:
    """Replicas are those of KServe's router, which needs no GPU."""

    nodes: tuple[Node, ...]
    min_replicas: int = 1
    max_replicas: int = 2

    @property
    def root(self) -> Node:
        return next(node for node in self.nodes if node.name == ROOT)

    def node(self, name: str) -> Node:
        return next(node for node in self.nodes if node.name == name)

    @property
    def deployments(self) -> tuple[str, ...]:
        """Each once, in the order in which they are named."""
        named = (step.deployment for node in self.nodes for step in node.steps)
        return tuple(dict.fromkeys(name for name in named if name))

    def first_asked(self) -> str:
        """A deployment that a request may reach; the first one named on the way from the root."""
        return next(self._asked(self.root))

    def _asked(self, node: Node) -> Iterator[str]:
        for step in node.steps:
            if step.deployment:
                yield step.deployment
            else:
                yield from self._asked(self.node(step.node))

    def to_json(self) -> dict[str, Any]:
        return {"schema": SCHEMA, **asdict(self)}


def from_json(data: Any) -> PipelineSpec:
    """Raises Rejected with every fault of form by dotted path; the rules are checked apart."""
    found: dict[str, str] = {}
    if not isinstance(data, Mapping) or not isinstance(data.get("nodes"), list | tuple):
        raise Rejected("A pipeline has nodes.", {"nodes": "must be a list of nodes"})
    for name in set(data) - {"schema", "nodes", "min_replicas", "max_replicas"}:
        found[name] = f"There is no field {name!r}; leave it out."
    if data.get("schema", SCHEMA) != SCHEMA:
        found["schema"] = f"must be {SCHEMA}"
    nodes = [_node(raw, f"nodes.{index}", found) for index, raw in enumerate(data["nodes"])]
    replicas = {name: data[name] for name in ("min_replicas", "max_replicas") if name in data}
    if not found:
        spec = PipelineSpec(nodes=tuple(node for node in nodes if node), **replicas)
        found |= _wrong_kinds(spec)
    if found:
        raise Rejected(_first_of(found), found)
    return spec


def stored(data: Mapping[str, Any]) -> PipelineSpec:
    """What was checked when it was written."""
    nodes = tuple(
        Node(
            name=raw["name"],
            kind=NodeKind(raw["kind"]),
            steps=tuple(Step(**step) for step in raw["steps"]),
        )
        for raw in data["nodes"]
    )
    return PipelineSpec(
        nodes=nodes, min_replicas=data["min_replicas"], max_replicas=data["max_replicas"]
    )


def _node(raw: Any, path: str, found: dict[str, str]) -> Node | None:
    if not isinstance(raw, Mapping):
        found[path] = "must be an object with name, kind, steps."
        return None
    for name in set(raw) - {"name", "kind", "steps"}:
        found[f"{path}.{name}"] = f"There is no field {name!r}; leave it out."
    kinds = [kind.value for kind in NodeKind]
    if raw.get("kind") not in kinds:
        found[f"{path}.kind"] = f"must be one of {', '.join(kinds)}"
    raw_steps = raw.get("steps", [])
    if isinstance(raw_steps, list | tuple):
        raw_steps = _unchained(raw_steps, path, found)
    steps = typed_json.read_list(Step, raw_steps, f"{path}.steps", found)
    if found:
        return None
    return Node(name=raw.get("name", ROOT), kind=NodeKind(raw["kind"]), steps=steps)


def _unchained(steps: Sequence[Any], path: str, found: dict[str, str]) -> list[Any]:
    """KServe's own field `data`, which is answered with what is the matter, not as unknown."""
    kept = []
    for index, step in enumerate(steps):
        if isinstance(step, Mapping) and "data" in step:
            if step["data"] != "$request":
                found[f"{path}.steps.{index}.data"] = NO_CHAIN
            kept.append({name: value for name, value in step.items() if name != "data"})
        else:
            kept.append(step)
    return kept


def _wrong_kinds(spec: PipelineSpec) -> dict[str, str]:
    found = {}
    for name in ("min_replicas", "max_replicas"):
        value = getattr(spec, name)
        if isinstance(value, bool) or not isinstance(value, int):
            found[name] = f"{value!r} is not a whole number."
    for place, node in enumerate(spec.nodes):
        if not isinstance(node.name, str):
            found[f"nodes.{place}.name"] = f"{node.name!r} must be text"
        for index, step in enumerate(node.steps):
            found |= typed_json.wrong_kinds(step, f"nodes.{place}.steps.{index}.")
    return found


def _first_of(found: Mapping[str, str]) -> str:
    path, words = next(iter(found.items()))
    return f"{path}: {words}"
