"""The form of a canary is a version and a named plan, which says what it finds, when it ends and what it costs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from django.test import Client

from deployments.models import ChangeRequest, Rollout, RolloutTemplate
from deployments.plans.domain import descriptions, presets, rollout_plan
from deployments.plans.web import plan_form
from portal.accounts.models import User
from portal.audit.models import AuditEvent
from tests.deployments.guarded_rollouts import calm_hour
from tests.deployments.plans.test_detection import _minutes as minutes_of_traffic
from tests.deployments.world import World
from tests.page import Part, page

URL: Final = "/vision/deployments/detector/canary"
TIMES: Final = "\N{MULTIPLICATION SIGN}"
SIDE: Final[dict[str, Any]] = {"HTTP_HX_REQUEST": "true", "HTTP_HX_TARGET": "plan-side"}
SignIn = Callable[[User], Client]


def open_fields(part: Part) -> Iterator[str]:
    """Name what can be filled in before anything is unfolded."""
    for child in part.children:
        if not isinstance(child, Part):
            continue
        is_field = child.tag in ("input", "select", "textarea")
        if is_field and child.attributes.get("type") != "hidden":
            yield child.attributes["name"]
        if child.tag != "details" or child.is_open:
            yield from open_fields(child)


def form_of(shown: Part) -> Part:
    return next(form for form in shown.all("form") if form.attributes.get("id") == "plan")


def choice(shown: Part, value: str) -> str:
    return next(
        label.text
        for label in shown.all("label")
        if any(field.attributes["value"] == value for field in label.fields("preset"))
    )


def sent(shown: Part, **typed: str) -> dict[str, str]:
    """Return the fields that a browser sends of the page's form, with what someone typed."""
    data = {}
    for field in form_of(shown).all("input", "select", "textarea"):
        kind = field.attributes.get("type", "")
        if kind not in ("radio", "checkbox") or field.is_chosen:
            first = field.options[0] if field.options else "on" if kind == "checkbox" else ""
            data[field.attributes["name"]] = field.value or first
    return {**data, **typed}


def requested() -> ChangeRequest:
    return ChangeRequest.objects.get(kind="canary")


def test_three_fields_are_open(world: World, signed_in: SignIn) -> None:
    world.serving()

    shown = page(signed_in(world.member).get(URL))

    assert list(dict.fromkeys(open_fields(form_of(shown)))) == ["version", "preset", "comment"]
    assert [field.attributes["value"] for field in shown.fields("preset")] == [
        "fast",
        "normal",
        "careful",
    ]
    assert shown.field("preset", "normal").is_chosen


@pytest.mark.parametrize("is_filled", [True, False], ids=["as the page was", "without a script"])
@pytest.mark.parametrize(
    ("name", "steps", "ratio", "watch", "has_baseline"),
    [
        ("fast", [(20, 600, 100), (50, 900, 500)], 1.5, 900, False),
        ("normal", [(5, 1200, 100), (25, 1800, 500), (50, 2400, 1000)], 1.25, 2400, False),
        (
            "careful",
            [(1, 3600, 100), (5, 5400, 500), (25, 7200, 1000), (50, 9000, 5000)],
            1.1,
            7200,
            True,
        ),
    ],
)
def test_the_request_has_the_steps_and_limits_of_the_chosen_plan(
    world: World,
    signed_in: SignIn,
    name: str,
    steps: list[tuple[int, int, int]],
    ratio: float,
    watch: int,
    has_baseline: bool,
    is_filled: bool,
) -> None:
    world.serving()
    client = signed_in(world.member)
    shown = page(client.get(f"{URL}?preset={name}" if is_filled else URL))

    answer = client.post(URL, sent(shown, preset=name))

    change = requested()
    assert answer["Location"] == f"/approvals/{change.pk}"
    assert [
        (step["weight"], step["soak_seconds"], step["min_requests"]) for step in change.steps
    ] == steps
    assert {guard["metric"]: guard["max_ratio"] for guard in change.plan["guards"]} == {
        "error_rate": ratio,
        "lost_requests": ratio,
        "latency_mean": ratio,
    }
    assert (change.plan["watch_seconds"], change.plan["has_baseline"]) == (watch, has_baseline)


def test_without_traffic_each_choice_says_so(world: World, signed_in: SignIn) -> None:
    world.serving()

    shown = page(signed_in(world.member).get(URL))

    assert choice(shown, "normal") == (
        "Normal 5 → 25 → 50 → 100% At least 2 h 10 min; today's traffic is not known "
        "Errors: not known, as no requests were read in the last day, slower answers after 15 min "
        "at least +$2.18"
    )
    assert "Traffic is not known now, so times are the shortest possible." in shown.text


def test_at_eighteen_requests_a_second_each_choice_has_its_consequence(
    world: World, signed_in: SignIn
) -> None:
    world.serving()
    calm_hour(world)
    minutes_of_traffic(world, minutes=30, failures=60)

    shown = page(signed_in(world.member).get(URL))

    assert choice(shown, "fast") == (
        "Fast 20 → 50 → 100% About 40 min Finds errors above 2.3%, latency +53% +$0.67"
    )
    # Stable takes 4 ms, of which a guard ignores 2.
    assert choice(shown, "normal") == (
        "Normal 5 → 25 → 50 → 100% About 2 h 10 min Finds errors above 1.6%, latency +50% +$2.18"
    )
    assert choice(shown, "careful") == (
        "Careful 1 → 5 → 25 → 50 → 100% About 9 h Finds errors above 1.2%, latency +50% +$16, "
        "with a baseline"
    )


def test_a_customised_step_is_kept_in_the_request(world: World, signed_in: SignIn) -> None:
    world.serving()
    client = signed_in(world.member)
    typed = {"steps-0-weight": "8", "steps-0-soak_minutes": "12.5"}

    data = sent(page(client.get(URL)), **typed)
    preview = page(client.post(URL, data, **SIDE))
    client.post(URL, data)

    assert preview.part("plan-changed").text.startswith(
        "Customised: steps or limits differ from Normal."
    )
    assert preview.part("summary-steps").text.startswith("8% ≥ 12 min, 25% ≥ 30 min")
    assert requested().steps[0]["weight"] == 8
    assert requested().steps[0]["soak_seconds"] == 750


def test_another_plan_fills_in_its_values_and_keeps_the_alias(
    world: World, signed_in: SignIn
) -> None:
    world.serving()
    client = signed_in(world.member)
    data = sent(page(client.get(URL)), preset="careful", move_alias="champion", comment="Better.")

    swapped = page(client.post(URL, data, **SIDE)).part("plan-custom")
    without_script = page(client.post(URL, {**data, "fill": "1"}))

    for shown in (swapped, without_script):
        assert shown.field("steps-0-weight").value == "1"
        assert shown.field("steps-3-soak_minutes").value == "150"
        assert shown.field("error_rate-max_ratio").value == "1.1"
        assert shown.field("move_alias").value == "champion"
        assert shown.hidden("filled") == "careful"
    assert without_script.field("comment").value == "Better."
    assert not ChangeRequest.objects.filter(kind="canary").exists()


def test_changed_steps_are_not_lost_when_another_plan_is_sent(
    world: World, signed_in: SignIn
) -> None:
    world.serving()
    client, audited = signed_in(world.member), AuditEvent.objects.count()
    data = sent(page(client.get(URL)), preset="careful", **{"steps-0-weight": "8"})

    answer = client.post(URL, data)

    shown = page(answer)
    assert answer.status_code == 422
    assert shown.part("id_preset_error").text.startswith("Steps or limits of Normal were changed")
    assert shown.field("steps-0-weight").value == "8"
    assert not ChangeRequest.objects.filter(kind="canary").exists()
    assert AuditEvent.objects.count() == audited


@pytest.mark.parametrize(
    ("typed", "fold", "wrong"),
    [
        ({"error_rate-max_ratio": "0.5"}, "Errors", "error_rate-max_ratio"),
        ({"error_rate-max": "100"}, "Errors", "error_rate-max"),
        ({"latency_mean-max_ratio": "x"}, "Speed", "latency_mean-max_ratio"),
        ({"gpu_memory-max": "9999"}, "Money", "gpu_memory-max"),
        ({"quality-label_drift": "7"}, "Answers", "quality-label_drift"),
        ({"warmup_seconds": "-1"}, "Judging", "warmup_seconds"),
        ({"drain_seconds": "1"}, "When finished", "drain_seconds"),
    ],
)
def test_an_error_in_a_fold_opens_it_and_is_the_first_wrong_field(
    world: World, signed_in: SignIn, typed: dict[str, str], fold: str, wrong: str
) -> None:
    world.serving()
    client, audited = signed_in(world.member), AuditEvent.objects.count()

    answer = client.post(URL, sent(page(client.get(URL)), **typed))

    shown = page(answer)
    assert answer.status_code == 422
    assert shown.group("Customise").is_open
    assert shown.group(fold).is_open
    first = next(
        field
        for field in form_of(shown).all("input", "select")
        if field.attributes.get("aria-invalid") == "true"
    )
    assert (first.attributes["name"], first.value) == (wrong, typed[wrong])
    assert not ChangeRequest.objects.filter(kind="canary").exists()
    assert AuditEvent.objects.count() == audited


def test_folds_say_their_values_in_words(world: World, signed_in: SignIn) -> None:
    world.serving()

    shown = page(signed_in(world.member).get(URL))

    assert shown.part("summary-errors").text == (
        f"error ratio and lost requests at most 1.25 {TIMES} stable"
    )
    assert shown.part("summary-speed").text == f"mean latency at most 1.25 {TIMES} stable"
    assert shown.part("summary-money").text == "not guarded"
    assert shown.part("summary-judging").text == "beside stable, default warm-up"
    assert shown.part("summary-end").text == "watched 40 min, drained 15 s"
    assert [item.text for item in shown.part("plan-stairs").all("li")] == [
        "5% for at least 20 min, 100 requests",
        "25% for at least 30 min, 500 requests",
        "50% for at least 40 min, 1,000 requests",
        "100%, watched for 40 min",
    ]


def test_templates_of_the_team_are_choices_too(world: World, signed_in: SignIn) -> None:
    world.serving()
    client = signed_in(world.member)
    data = sent(page(client.get(URL)), keep="1", keep_as="Night", **{"steps-0-weight": "8"})
    client.post(URL, data)
    template = RolloutTemplate.objects.get()

    shown = page(client.get(URL))
    client.post(URL, sent(shown, preset=f"template-{template.pk}"))

    assert choice(shown, f"template-{template.pk}").startswith("Night 8 → 25 → 50 → 100%")
    assert [step["weight"] for step in requested().steps] == [8, 25, 50]
    assert not Rollout.objects.exists()


def test_a_service_that_scales_has_no_baseline(world: World, signed_in: SignIn) -> None:
    world.serving(max_replicas=2)
    client = signed_in(world.member)

    client.post(URL, sent(page(client.get(URL)), preset="careful"))

    assert requested().plan["has_baseline"] is False


@pytest.mark.parametrize("preset", presets.PRESETS, ids=lambda preset: preset.name)
def test_the_form_sends_each_plan_as_it_is(preset: presets.Preset) -> None:
    plan = preset.build_plan()
    data = plan_form.form_data(plan)

    form = plan_form.PlanForm(data, versions=())
    form.is_valid()

    assert rollout_plan.check(form.plan_json(), form.steps_json()) == plan


def test_times_are_in_the_unit_that_people_say() -> None:
    times = (40, 2400, 7800, 252_000, 1_036_800)
    assert [descriptions.format_about(each) for each in times] == [
        "40 s",
        "40 min",
        "2 h 10 min",
        "70 h",
        "12 d",
    ]
    assert [descriptions.format_briefly(each) for each in (1200, 9000)] == ["20 min", "2.5 h"]


@pytest.mark.parametrize("preset", presets.PRESETS, ids=lambda preset: preset.name)
def test_the_document_has_each_plan(preset: presets.Preset) -> None:
    steps = ", ".join(
        f"{weight}% {minutes} min {requests:,}" for weight, minutes, requests in preset.steps
    )
    beside = ", with a baseline" if preset.has_baseline else ""
    row = (
        f"| {preset.label} | {steps} | {preset.max_ratio:g} {TIMES} stable{beside} | "
        f"{preset.watch_minutes} min |"
    )

    assert row in Path("docs/evidence.md").read_text(encoding="utf-8")
