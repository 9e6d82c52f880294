"""Every rule, judged by Prometheus' own tool: it fires with what it is for, and not with what is close to it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from deployments.spec.domain import engines
from deployments.states import TargetMetric
from deployments.targets.domain import burn
from portal.monitoring.rules import catalogue, rule, targets
from portal.monitoring.rules.targets import TargetFacts
from tests.contract import schemas
from tests.portal.monitoring import rule_cases as cases
from tests.portal.monitoring.portal_rule_cases import PORTAL
from tests.portal.monitoring.promtool import Case, judge, needs_promtool, run
from tests.portal.monitoring.rule_cases import target

_GENERAL = [*cases.TRITON, *cases.VLLM, *cases.GPUS]
_FIRST_TOKEN = target(TargetMetric.FIRST_TOKEN, engine=engines.KSERVE_VLLM, ms=1500)
_OF_VLLM = target(engine=engines.LLM_SERVICE)


def _of_targets(facts: TargetFacts, *, burn_rate: str) -> dict[str, Any]:
    """One of the two rules alone, so that the other one's alert is not in the way."""
    group = targets.group([facts])
    chosen = [made for made in group.rules if made.labels["burn_rate"] == burn_rate]
    assert len(chosen) == 1
    return rule.rule_file([rule.Group(group.name, chosen)])


@needs_promtool
@pytest.mark.parametrize("alert", sorted({case.alert for case in _GENERAL}))
def test_it_fires_with_these_series_and_with_no_others(alert: str, tmp_path: Path) -> None:
    of_alert = [case for case in _GENERAL if case.alert == alert]

    status, printed = judge(tmp_path, rule.rule_file(catalogue.groups()), of_alert)

    assert status == 0, printed


@needs_promtool
@pytest.mark.parametrize("alert", sorted({case.alert for case in PORTAL}))
def test_it_fires_with_these_series_of_the_portal(alert: str, tmp_path: Path) -> None:
    of_alert = [case for case in PORTAL if case.alert == alert]

    status, printed = judge(tmp_path, rule.rule_file(catalogue.portal_groups()), of_alert)

    assert status == 0, printed


@needs_promtool
@pytest.mark.parametrize(
    ("facts", "burn_rate", "chosen"),
    [
        (target(), "14.4", cases.FAST),
        (target(), "6", cases.SLOW),
        (target(engine=engines.TRITON_VLLM), "14.4", cases.FAST),
        (_OF_VLLM, "14.4", cases.OF_VLLM),
        (_FIRST_TOKEN, "14.4", cases.FIRST_TOKEN),
    ],
    ids=["fast", "slow", "vLLM in Triton", "vLLM", "first token"],
)
def test_a_target_burns(
    facts: TargetFacts, burn_rate: str, chosen: list[Case], tmp_path: Path
) -> None:
    status, printed = judge(tmp_path, _of_targets(facts, burn_rate=burn_rate), chosen)

    assert status == 0, printed


@needs_promtool
def test_the_tool_sees_a_rule_that_fires_wrongly(tmp_path: Path) -> None:
    """So that the tests above can fail."""
    made = rule.rule_file(catalogue.groups())
    text = yaml.safe_dump(made).replace(">= 10", ">= 9")
    of_alert = [case for case in cases.TRITON if case.alert == "SlipwayTritonQueue"]

    status, printed = judge(tmp_path, yaml.safe_load(text), of_alert)

    assert status == 1
    assert "SlipwayTritonQueue" in printed


def test_every_rule_has_series_that_fire_and_series_that_do_not() -> None:
    groups = [*catalogue.groups([target()]), *catalogue.portal_groups()]
    every = {made.name for group in groups for made in group.rules}
    tested = [*_GENERAL, *cases.FAST, *PORTAL]
    fires = {case.alert for case in tested if case.labels is not None}
    quiet = {case.alert for case in tested if case.labels is None}

    assert fires == quiet == every
    assert len(every) == 23


@needs_promtool
def test_the_file_is_one_that_prometheus_takes(tmp_path: Path) -> None:
    path = tmp_path / "rules.yml"
    groups = [*catalogue.groups([target(), _FIRST_TOKEN]), *catalogue.portal_groups()]
    path.write_text(yaml.safe_dump(rule.rule_file(groups)))

    done = run("check", "rules", path)

    assert done.returncode == 0, done.stdout + done.stderr
    assert "SUCCESS: 26 rules found" in done.stdout


def test_the_manifest_is_a_prometheus_rule() -> None:
    made = rule.manifest(
        catalogue.groups([target()]), name="slipway", namespace="monitoring", labels={"a": "b"}
    )

    validator = schemas.require_custom()["monitoring.coreos.com/v1", "PrometheusRule"]
    assert [error.message for error in validator.iter_errors(made)] == []


def test_rules_of_targets_are_those_of_the_portal() -> None:
    made = targets.group([target()]).rules

    limits = [round(r.factor * 0.001, 9) for r in burn.RULES]
    assert limits == [0.0144, 0.006]
    for one, own, limit in zip(made, burn.RULES, limits, strict=True):
        assert one.expr.count(f">= {limit} and") == 2
        assert one.expr.count(f"[{own.long_minutes}m]") == 4
        assert one.expr.count(f"[{own.short_minutes}m]") == 3
        assert one.expr.endswith(f">= {burn.LEAST_BAD}")


def test_a_rule_that_cannot_fire_is_left_out() -> None:
    """With 90% not even total failure burns 14.4 times as fast as allowed."""
    made = targets.group([target(objective=90.0)]).rules

    assert [one.labels["burn_rate"] for one in made] == ["6"]


@pytest.mark.parametrize(
    ("facts", "problem"),
    [
        (target(TargetMetric.P95, ms=200), "a summary counts no requests"),
        (target(engine=engines.KSERVE_SGLANG), "for Triton and vLLM only, not for kserve-sglang"),
        (target(engine=""), "nothing serves yet"),
    ],
)
def test_what_prometheus_cannot_know_has_no_rule(facts: TargetFacts, problem: str) -> None:
    assert problem in targets.problem_with(facts)
    assert targets.group([facts]).rules == []


@pytest.mark.parametrize(
    ("ms", "bound"),
    [(1, "0[.]001"), (99, "0[.]08"), (100, "0[.]1"), (1000, "1([.]0)?"), (2499, "1([.]0)?")],
)
def test_a_limit_between_two_bounds_is_the_lower_one(ms: int, bound: str) -> None:
    facts = target(TargetMetric.FIRST_TOKEN, engine=engines.KSERVE_VLLM, ms=ms)

    assert f'le=~"{bound}"' in targets.group([facts]).rules[0].expr
