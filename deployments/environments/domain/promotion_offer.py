"""Whether a board offers to promote what a deployment serves, and why not."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from deployments.environments.domain import environment_rules


@dataclass(frozen=True, slots=True)
class PromotionOffer:
    """An offer to promote a version to `environment`. `note` says why there is none now; empty if there is."""

    environment: str
    note: str = ""

    @property
    def is_open(self) -> bool:
        return not self.note


def offer_promotion(
    *,
    environment: str,
    version: int | None,
    is_stopped: bool,
    is_busy: bool,
    serves_next: Collection[int | None],
) -> PromotionOffer | None:
    """Decide about the stable `version` of a deployment in `environment`. `serves_next` are the versions of the same
    model that deployments of the next environment serve. None in the last environment.
    """
    target = environment_rules.next_of(environment)
    if target is None:
        return None
    name = target.value
    if version is None:
        return PromotionOffer(name, "Serves no version yet")
    if serves_next and set(serves_next) == {version}:
        return PromotionOffer(name, f"Version {version} serves in {name}")
    if is_stopped:
        return PromotionOffer(name, "Stopped")
    if is_busy:
        return PromotionOffer(name, "A change is under way")
    return PromotionOffer(name)
