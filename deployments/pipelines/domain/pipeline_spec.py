"""What a pipeline is: nodes whose steps ask deployments, or further nodes, behind one address.

Every step of a pipeline is sent the client's own request. KServe could also send one step's answer to
the next, but an answer of the v2 protocol says "outputs" where a request must say "inputs", and the
router passes bodies on as they are: such a chain could never answer, so it is refused here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import Annotated, Any, Final

from pydantic import Field, model_validator

from portal.core.definitions import Definition, Rejected, setting

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


class Step(Definition):
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

    @model_validator(mode="before")
    @classmethod
    def _refuse_chain(cls, values: Any) -> Any:
        """KServe's own field `data` is refused with the reason, not as unknown."""
        if not isinstance(values, Mapping) or "data" not in values:
            return values
        if values["data"] != "$request":
            raise Rejected(NO_CHAIN, {"data": NO_CHAIN})
        return {name: value for name, value in values.items() if name != "data"}

    @property
    def label(self) -> str:
        """As an ensemble's answer names it."""
        return self.name or self.deployment or self.node


class Node(Definition):
    name: str = ROOT
    kind: Annotated[NodeKind, Field(strict=False)]
    steps: Annotated[tuple[Step, ...], Field(strict=False)] = ()


class PipelineSpec(Definition):
    """Replicas are those of KServe's router, which needs no GPU."""

    schema_version: Annotated[
        int, setting("Schema", ge=SCHEMA, le=SCHEMA, fix=f"Use schema {SCHEMA}.", alias="schema")
    ] = SCHEMA
    nodes: Annotated[tuple[Node, ...], Field(strict=False)]
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
        return self.model_dump(mode="json", by_alias=True)


def from_json(data: Any) -> PipelineSpec:
    """Raises Rejected with every fault of form by dotted path; `rules` checks the rest."""
    try:
        return PipelineSpec.from_json(data)
    except Rejected as error:
        path, message = next(iter(error.fields.items()))
        raise Rejected(f"{path}: {message}" if path else message, error.fields) from error


def stored(data: Mapping[str, Any]) -> PipelineSpec:
    """From a row."""
    return PipelineSpec.from_json(data)
