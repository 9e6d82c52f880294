"""Alert rules of Prometheus, and the files they are written to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

_MANAGED_BY: Final = {"app.kubernetes.io/managed-by": "slipway"}


class Severity(StrEnum):
    CRITICAL = "critical"
    WARNING = "warning"
    INFO = "info"


@dataclass(frozen=True, slots=True)
class AlertRule:
    """An alerting rule of Prometheus. `description` says what holds and `advice` what to do; both may use templates
    of Prometheus. `hold` is how long `expr` must hold; empty: not at all.
    """

    name: str
    expr: str
    severity: Severity
    summary: str
    description: str
    advice: str
    hold: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        made: dict[str, Any] = {"alert": self.name, "expr": self.expr}
        if self.hold:
            made["for"] = self.hold
        made["labels"] = {"severity": str(self.severity), **self.labels}
        made["annotations"] = {
            "summary": self.summary,
            "description": f"{self.description} {self.advice}",
        }
        return made


@dataclass(frozen=True, slots=True)
class Group:
    name: str
    rules: Sequence[AlertRule]

    def to_json(self) -> dict[str, Any]:
        return {"name": self.name, "rules": [rule.to_json() for rule in self.rules]}


def rule_file(groups: Sequence[Group]) -> dict[str, Any]:
    """Return the content of a file for `rule_files` of Prometheus. Groups without rules are left out."""
    return {"groups": [group.to_json() for group in groups if group.rules]}


def manifest(
    groups: Sequence[Group], *, name: str, namespace: str, labels: Mapping[str, str]
) -> dict[str, Any]:
    """Return a PrometheusRule for the Prometheus operator. `labels` are those by which its Prometheus selects rules."""
    return {
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": "PrometheusRule",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "labels": {**_MANAGED_BY, **labels},
        },
        "spec": rule_file(groups),
    }
