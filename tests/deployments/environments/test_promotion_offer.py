"""When the board of a model offers a promotion."""

from __future__ import annotations

from collections.abc import Collection

import pytest

from deployments.environments.domain.promotion_offer import PromotionOffer, offer_promotion


@pytest.mark.parametrize(
    ("environment", "serves_next", "offer"),
    [
        ("development", (), PromotionOffer("staging")),
        ("staging", (), PromotionOffer("production")),
        ("staging", (1,), PromotionOffer("production")),
        ("staging", (1, 2), PromotionOffer("production")),
        ("staging", (2,), PromotionOffer("production", "Version 2 serves in production")),
        ("production", (), None),
    ],
)
def test_a_version_goes_to_the_next_environment_until_all_of_it_serve_it(
    environment: str, serves_next: Collection[int], offer: PromotionOffer | None
) -> None:
    decided = offer_promotion(
        environment=environment, version=2, is_stopped=False, is_busy=False, serves_next=serves_next
    )

    assert decided == offer


@pytest.mark.parametrize(
    ("version", "is_stopped", "is_busy", "note"),
    [
        (None, False, False, "Serves no version yet"),
        (2, True, True, "Stopped"),
        (2, False, True, "A change is under way"),
    ],
)
def test_what_cannot_be_promoted_now_says_why(
    version: int | None, is_stopped: bool, is_busy: bool, note: str
) -> None:
    offer = offer_promotion(
        environment="staging",
        version=version,
        is_stopped=is_stopped,
        is_busy=is_busy,
        serves_next=(),
    )

    assert offer == PromotionOffer("production", note)
    assert not offer.is_open
