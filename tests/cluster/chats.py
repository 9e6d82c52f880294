"""Requests to a language model by OpenAI's API."""

from __future__ import annotations

import time
from collections import Counter

from tests import plain_http

TOKENS = 12
_SECONDS = 60


def chat(url: str, model: str = "chat") -> list[tuple[float, str]]:
    """The events of a streamed answer and when each arrived; empty for anything but an answer."""
    body = {
        "model": model,
        "messages": [{"role": "user", "content": "Hello"}],
        "max_tokens": TOKENS,
        "temperature": 0,
        "stream": True,
    }
    with plain_http.client.stream(
        "POST", f"{url}/v1/chat/completions", json=body, timeout=_SECONDS
    ) as answer:
        if answer.status_code != 200:
            return []
        return [(time.monotonic(), line) for line in answer.iter_lines() if line]


def context_lengths(url: str, count: int) -> Counter[int]:
    """By the servers that answered, so many times: of each the longest context; 0 for anything but an answer."""
    counter: Counter[int] = Counter()
    for _ in range(count):
        answer = plain_http.client.get(f"{url}/v1/models", timeout=_SECONDS)
        is_good = answer.status_code == 200
        counter[answer.json()["data"][0]["max_model_len"] if is_good else 0] += 1
    return counter
