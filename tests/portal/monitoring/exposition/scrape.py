"""One scrape of /metrics in this process, parsed as Prometheus does."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from django.test import Client
from prometheus_client.parser import text_string_to_metric_families

TOKEN: Final = "a-token-of-this-test-0123456789"
Samples = Mapping[tuple[str, frozenset[tuple[str, str]]], float]


def get(token: str = TOKEN, **extra: Any) -> Any:
    return Client().get("/metrics", headers={"authorization": f"Bearer {token}"}, **extra)


def scrape() -> Samples:
    response = get()
    assert response.status_code == 200, response.content
    return parse(response.content.decode())


def parse(text: str) -> Samples:
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def value(samples: Samples, name: str, **labels: str) -> float | None:
    return samples.get((name, frozenset(labels.items())))
