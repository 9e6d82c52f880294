"""Prometheus' own tool on rules and on series that they are tested with."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

PROMTOOL = shutil.which("promtool")
needs_promtool = pytest.mark.skipif(PROMTOOL is None, reason="Debian's prometheus is not installed")

Series = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Case:
    """`labels` beside the name and severity, `says` are summary and description; `labels` None: it does not fire.

    `interval` is that of the samples and of the evaluations.
    """

    alert: str
    series: Series
    at: str = "30m"
    labels: Mapping[str, str] | None = None
    says: tuple[str, str] = ("", "")
    severity: str = "warning"
    interval: str = "1m"

    def to_json(self) -> dict[str, Any]:
        expected = []
        if self.labels is not None:
            summary, description = self.says
            expected.append(
                {
                    "exp_labels": {"severity": self.severity, **self.labels},
                    "exp_annotations": {"summary": summary, "description": description},
                }
            )
        return {
            "interval": self.interval,
            "input_series": [{"series": k, "values": v} for k, v in self.series.items()],
            "alert_rule_test": [
                {"eval_time": self.at, "alertname": self.alert, "exp_alerts": expected}
            ],
        }


def run(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    assert PROMTOOL is not None
    return subprocess.run(
        [PROMTOOL, *map(str, arguments)], capture_output=True, text=True, check=False, timeout=120
    )


def judge(folder: Path, rules: Mapping[str, Any], cases: Sequence[Case]) -> tuple[int, str]:
    """The exit status and what it printed.

    The tool judges the alerts that cases name, but evaluates each rule of the file at each interval: without the
    others it takes a tenth of the time.
    """
    alerts = {case.alert for case in cases}
    (interval,) = {case.interval for case in cases}
    (folder / "rules.yml").write_text(yaml.safe_dump(_rules_of(alerts, rules)))
    tests = {
        "rule_files": ["rules.yml"],
        "evaluation_interval": interval,
        "tests": [case.to_json() for case in cases],
    }
    (folder / "tests.yml").write_text(yaml.safe_dump(tests))
    done = run("test", "rules", folder / "tests.yml")
    return done.returncode, done.stdout + done.stderr


def _rules_of(alerts: Set[str], rules: Mapping[str, Any]) -> dict[str, Any]:
    kept = (
        {**group, "rules": [rule for rule in group["rules"] if rule["alert"] in alerts]}
        for group in rules["groups"]
    )
    return {"groups": [group for group in kept if group["rules"]]}
