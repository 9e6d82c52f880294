"""The plan of a load test: the requests that its pod sends to the model, as pod_program.py reads them."""

from __future__ import annotations

import json
from typing import Any, Final

from deployments.registry.domain.forests.comparison import Sample
from deployments.registry.domain.load_tests import requests
from deployments.registry.domain.signatures import Signature

# Of the environment of a container; more alternatives than fit are left out.
_MAX_LENGTH: Final = 64 * 1024


def to_text(
    signature: Signature,
    *,
    model: str,
    seconds: int,
    is_on_cpu: bool,
    sample: Sample | None = None,
) -> str:
    plan: dict[str, Any] = {
        "model": model,
        "seconds": seconds,
        "is_on_cpu": is_on_cpu,
        "requests": list(requests.alternatives_of(signature)),
    }
    if sample:
        plan["sample"] = list(requests.describe_sample(signature, sample))
    while len(text := json.dumps(plan)) > _MAX_LENGTH and plan["requests"]:
        plan["requests"].pop()
    # Kubernetes expands $(NAME) in values, and tensors have any name.
    return text.replace("$", "\\u0024")
