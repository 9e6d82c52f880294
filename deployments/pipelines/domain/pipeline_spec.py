"""The spec of a pipeline: nodes whose steps call deployments, or further nodes, behind one address.

Every step of a pipeline is sent the client's own request. KServe could also send one step's answer
to the next, but an answer of the v2 protocol says "outputs" where a request must say "inputs", and
the router passes bodies on as they are: such a chain could never answer, so it is refused here.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from typing import Annotated, Any, Final

from pydantic import Field

from portal.core.definitions import Definition, Rejected, setting

SCHEMA: Final = 1
# KServe's own word for the node that a request enters.
ROOT: Final = "root"
LONGEST_NAME: Final = 30
LONGEST_CONDITION: Final = 500
# Whatever the request holds; for the last step of a switch.
ANYTHING: Final = "@this"
NO_CHAIN: Final = (
    'KServe forwards request bodies unchanged, and a model that expects {"inputs": …} refuses the '
    '{"outputs": …} of another. To feed one model\'s answer into the next, pack them as a Triton '
    "ensemble and deploy that; here every step gets the client's own request."
)


class NodeKind(StrEnum):
    SEQUENCE = "sequence"
    ENSEMBLE = "ensemble"
    SPLITTER = "splitter"
    SWITCH = "switch"


class PipelineStep(Definition):
    """A step, which sends the request to one deployment, or to the node of that name."""

    name: Annotated[
        str,
        setting(
            "Name",
            "left out: the name of the deployment or node",
            max_length=LONGEST_NAME,
        ),
    ] = ""
    deployment: Annotated[
        str, setting("Deployment", "of the same team and cluster", max_length=LONGEST_NAME)
    ] = ""
    node: Annotated[str, setting("Node", "instead of a deployment", max_length=LONGEST_NAME)] = ""
    weight: Annotated[int | None, setting("Weight", "splitter only; weights add up to 100")] = None
    # KServe's own field: refused with the reason, not as unknown.
    data: Annotated[
        str,
        setting(
            "Data",
            "$request; a step cannot get another step's answer",
            fix=NO_CHAIN,
            pattern=r"\$request",
            max_length=LONGEST_NAME,
            is_derived=True,
        ),
        Field(exclude=True),
    ] = "$request"
    condition: Annotated[
        str,
        setting(
            "Condition",
            "a GJSON path that must exist: in the request for a switch, in the previous answer for "
            "a sequence",
            max_length=LONGEST_CONDITION,
        ),
    ] = ""
    is_required: Annotated[
        bool, setting("Required", "its failure ends the pipeline and is returned")
    ] = False

    @property
    def label(self) -> str:
        """The name of the step in an ensemble's answer."""
        return self.name or self.deployment or self.node


class PipelineNode(Definition):
    name: Annotated[
        str,
        setting("Name", "requests enter at root", max_length=LONGEST_NAME, is_blank_hidden=True),
    ]
    kind: Annotated[NodeKind, Field(strict=False)]
    steps: Annotated[tuple[PipelineStep, ...], Field(strict=False)]


class PipelineSpec(Definition):
    """The spec of a pipeline. Replicas are those of KServe's router, which needs no GPU."""

    schema_version: Annotated[
        int,
        setting(
            "Schema",
            ge=SCHEMA,
            le=SCHEMA,
            fix=f"Use schema {SCHEMA}.",
            alias="schema",
            is_stored=True,
        ),
    ] = SCHEMA
    nodes: Annotated[tuple[PipelineNode, ...], Field(strict=False)]
    min_replicas: Annotated[int, setting("Min replicas", "of KServe's router")] = 1
    max_replicas: Annotated[int, setting("Max replicas")] = 2

    @property
    def root(self) -> PipelineNode:
        return next(node for node in self.nodes if node.name == ROOT)

    def node(self, name: str) -> PipelineNode:
        return next(node for node in self.nodes if node.name == name)

    @property
    def deployments(self) -> tuple[str, ...]:
        """The deployments that steps call, each once, in the order in which they are named."""
        named = (step.deployment for node in self.nodes for step in node.steps)
        return tuple(dict.fromkeys(name for name in named if name))

    def first_deployment(self) -> str:
        """Return a deployment that a request may reach; the first one named on the way from the root."""
        return next(self._deployments_of(self.root))

    def _deployments_of(self, node: PipelineNode) -> Iterator[str]:
        for step in node.steps:
            if step.deployment:
                yield step.deployment
            else:
                yield from self._deployments_of(self.node(step.node))

    def to_json(self) -> dict[str, Any]:
        return self.model_dump(mode="json", by_alias=True)


def from_json(data: Any) -> PipelineSpec:
    """Parse a spec. Raises Rejected with every fault of form by dotted path; `rules` checks the rest."""
    try:
        return PipelineSpec.from_json(data)
    except Rejected as error:
        path, message = next(iter(error.fields.items()))
        raise Rejected(f"{path}: {message}" if path else message, error.fields) from error
