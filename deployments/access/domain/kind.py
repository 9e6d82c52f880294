"""A kind of access: who gets answers at the address of a deployment, and what makes it so."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Any, ClassVar

from deployments.access.domain.callers import Callers
from fleet.clusters.domain.capabilities import Capabilities, Offer


class Credential(Enum):
    """The credential that the portal creates so that someone can call a deployment."""

    # The gateway finds it in the deployment's Secret, or verifies its signature.
    KEY = "key"
    # Of tokens of an identity provider: the policy lists its value.
    CLAIM = "claim"


class AccessKind(ABC):
    """A kind of access. Text that ends in a period is a sentence; other text is part of one, or a label."""

    # As specs and REST have it. It is stored: it never changes.
    name: ClassVar[str]
    label: ClassVar[str]
    # What is not offered on a cluster: "Keys cannot be chosen".
    noun: ClassVar[str]
    # For those who request and approve it.
    description: ClassVar[str]
    requirement: ClassVar[str]
    opens_to_everyone: ClassVar[bool] = False
    # What the cluster must offer, by a name of OPTION_NEEDS, and what a requester does where it does not;
    # {path} is the setting. Empty: any cluster has it.
    option: ClassVar[str] = ""
    fix: ClassVar[str] = ""
    creates: ClassVar[Credential] = Credential.KEY
    # What REST says of creating one.
    creation_help: ClassVar[str] = ""
    # Whether a spec names the identity provider.
    takes_issuer: ClassVar[bool] = False
    # Whether the gateway knows the caller of each request, so that use is read by caller.
    counts_by_caller: ClassVar[bool] = True
    serves_team_address: ClassVar[bool] = False
    # Whether the gateway accepts the key of a pipeline.
    takes_pipeline_key: ClassVar[bool] = False
    # What the gateway would pass on to the model.
    removed_headers: ClassVar[Sequence[str]] = ()
    curl_arguments: ClassVar[str] = ""
    # The header in which a caller's key or token is sent.
    key_header: ClassVar[str] = ""

    def check_offer(self, capabilities: Capabilities) -> Offer:
        return capabilities.offers(self.option) if self.option else Offer(ok=True)

    @abstractmethod
    def security(self, callers: Callers) -> Mapping[str, Any]:
        """Return what the SecurityPolicy of the route says, without its target. Empty if nothing is checked."""

    def route_state(self, generation: int, issuer: str) -> str:
        """Return the route's annotation once its policies are written. Empty if there are none.

        It differs from that of every other kind, so that the policies of a changed kind are written first.
        """
        return f"{self.name}/{generation}"

    def label_for(self, issuer: str) -> str:
        """Return the label of the choice; with the issuer where the kind takes one."""
        return self.label

    def describe_current(self, issuer: str) -> str:
        """Continue "As now: "."""
        return self.label

    def describe_need(self, issuer: str) -> str:
        """Return why a credential of another kind is not used: "callers need a key"."""
        return self.requirement[:1].lower() + self.requirement[1:].rstrip(".")

    def why_not_callable_by_pipeline(self, deployment: str, cluster: str, offer: Offer) -> str:
        """Return why a pipeline cannot call the deployment. Empty if it can. `offer` is the cluster's, of pipelines
        with a key.
        """
        return f"{deployment} does not accept the key of a pipeline."
