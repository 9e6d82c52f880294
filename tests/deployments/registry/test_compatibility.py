from __future__ import annotations

import pytest

from deployments.registry.domain.compatibility import incompatibilities
from deployments.registry.domain.signatures import Signature, Tensor

IMAGE = Tensor("image", "FP32", (-1, 3, 224, 224))
LABEL = Tensor("label", "INT64", (-1,))
STABLE = Signature(inputs=(IMAGE,), outputs=(LABEL,))


@pytest.mark.parametrize(
    ("new", "problems"),
    [
        (STABLE, []),
        (Signature((Tensor("image", "FP32", (-1, 3, -1, -1)),), (LABEL,)), []),
        (Signature((IMAGE,), (LABEL, Tensor("score", "FP32", (-1,)))), []),
        (Signature((IMAGE, LABEL), (LABEL,)), ["input label is new"]),
        (Signature((IMAGE,), ()), ["output label was removed"]),
        (
            Signature((Tensor("image", "FP32", (-1, 3, 320, 320)),), (LABEL,)),
            ["input image is [any, 3, 320, 320], was [any, 3, 224, 224]"],
        ),
        (
            Signature((Tensor("image", "UINT8", (-1, 3, 224, 224)),), (LABEL,)),
            ["input image is UINT8, was FP32"],
        ),
    ],
)
def test_what_todays_clients_would_trip_over(new: Signature, problems: list[str]) -> None:
    assert incompatibilities(STABLE, new) == problems
