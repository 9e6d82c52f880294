from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest
import time_machine
from django import forms
from django.template import Context, Template

NOW = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)


@pytest.fixture(autouse=True)
def _still_clock() -> Iterator[None]:
    with time_machine.travel(NOW, tick=False):
        yield


def render(template: str, **values: Any) -> str:
    html = Template(template).render(Context(values))
    return re.sub(r"\s+", " ", html).replace("> <", "><").strip()


def test_status_pill_says_the_state_in_its_tone() -> None:
    assert render('{% status_pill "ready" %}') == '<span class="pill ok">Ready</span>'
    assert render('{% status_pill "quarantined" %}') == '<span class="pill bad">Quarantined</span>'
    assert render('{% status_pill "roll_back" %}') == '<span class="pill wait">Roll back</span>'
    assert (
        render('{% status_pill "canary" "Canary 25 %" %}')
        == '<span class="pill run">Canary 25 %</span>'
    )


def test_status_pill_escapes_what_it_is_given() -> None:
    assert "<b>" not in render("{% status_pill s %}", s="<b>")


def test_mini_traffic_shows_the_share_of_the_candidate() -> None:
    assert render("{% mini_traffic 25 %}") == (
        '<svg class="mini" viewBox="0 0 100 6" preserveAspectRatio="none" role="img" '
        'aria-label="25% to the candidate"><rect width="100" height="6" />'
        '<rect class="part" x="75" width="25" height="6" /></svg>'
    )
    assert 'aria-label="no traffic"' in render("{% mini_traffic None %}")
    assert 'aria-label="all traffic to stable"' in render("{% mini_traffic 0 %}")


def test_traffic_bar_distinguishes_requested_observed_and_expected_range() -> None:
    html = render('{% traffic_bar "detector:3" "detector:4" 25 24.6 24.4 25.6 %}')

    assert '<span class="stable w-75">detector:3 — 75%</span>' in html
    assert 'class="candidate w-25"' in html
    assert '<rect class="observed-candidate" x="75.4" y="2" width="24.600" height="4" />' in html
    assert '<rect class="observed-range" x="74.4" width="1.2" height="8" />' in html
    assert "observed <b>24.6%</b> (expected 24.4\N{EN DASH}25.6%)" in html


def test_traffic_bar_writes_not_known_for_what_was_not_observed() -> None:
    html = render('{% traffic_bar "a:1" "a:2" 5 %}')

    assert 'observed <span class="unknown">not known</span>' in html
    assert "<svg" not in html
    assert "NaN" not in html


def test_traffic_bar_without_candidate_is_all_stable() -> None:
    html = render('{% traffic_bar "a:1" "" 0 %}')

    assert '<span class="stable w-100">a:1 — 100%</span>' in html
    assert "candidate" not in html


def test_sparkline_breaks_where_a_value_is_not_known() -> None:
    html = render('{% sparkline values "requests" %}', values=[1, 2, None, 4, 8])

    assert html.count("<polyline") == 2
    assert 'aria-label="requests"' in html
    assert render('{% sparkline values "x" %}', values=[None, 3]) == (
        '<span class="trend">no trend yet</span>'
    )


def test_meter_is_clamped_and_marked() -> None:
    assert render('{% meter 130 70 "warn" "budget" %}') == (
        '<svg class="meter warn" viewBox="0 0 100 6" preserveAspectRatio="none" role="img" '
        'aria-label="budget: 130%"><rect class="fill" width="100.0" height="6" rx="1" />'
        '<rect class="mark" x="70.0" width="1" height="6" /></svg>'
    )
    assert 'aria-label="not known"' in render("{% meter None %}")


def test_checks_write_their_verdict_for_screen_readers() -> None:
    rows = [
        {"name": "Quota", "ok": False, "detail": "6 of 4", "fix": "Ask for more."},
        {"name": "Name", "ok": True, "detail": "", "fix": "never shown"},
        {"name": "Fits", "ok": None, "detail": "node starts"},
    ]
    html = render("{% checks rows %}", rows=rows)

    assert re.search(r'class="bad-text">.*?fails:.*?Quota.*?6 of 4.*?<b>Ask for more\.</b>', html)
    assert re.search(r'class="good">.*?passes:', html)
    assert re.search(r'class="warn-text">.*?not known:', html)
    assert "never shown" not in html


def test_checks_that_pass_are_folded_where_an_id_is_given() -> None:
    rows = [{"name": "Quota", "ok": False, "detail": "6 of 4"}, {"name": "Name", "ok": True}]
    html = render('{% checks rows "passed-checks" %}', rows=rows)

    before, folded = html.split('<details id="passed-checks">')
    assert ("Quota" in before, "Name" in before) == (True, False)
    assert ("Quota" in folded, "Name" in folded) == (False, True)
    assert "1 check passed" in folded


class Limits(forms.Form):
    gpus = forms.IntegerField(label="GPUs", help_text="At most 8.", max_value=8)


def test_field_wires_label_hint_and_error_to_the_input() -> None:
    html = render('{% field form.gpus "GPUs" %}', form=Limits({"gpus": "9"}))

    assert '<label for="id_gpus">' in html
    assert 'aria-describedby="id_gpus_helptext id_gpus_error"' in html
    assert 'aria-invalid="true"' in html
    assert '<span class="unit">GPUs</span>' in html
    assert '<span class="hint" id="id_gpus_helptext">At most 8.</span>' in html
    assert 'id="id_gpus_error"' in html
    assert "less than or equal to 8" in html


def test_icon_is_hidden_from_screen_readers() -> None:
    html = render('{% icon "rocket" 14 %}')

    assert 'aria-hidden="true"' in html
    assert 'width="14"' in html
    assert 'stroke="currentColor"' in html
    assert html.count("<path") == 4
    assert "xmlns" not in html
    assert "ns0:" not in html


def test_since_keeps_the_exact_time_on_hover() -> None:
    assert render("{{ at|since }}", at=datetime(2026, 11, 21, 11, 48, tzinfo=UTC)) == (
        '<time datetime="2026-11-21T11:48:00+00:00" title="2026-11-21 11:48:00 UTC" data-since>'
        "12 min ago</time>"
    )


@pytest.mark.parametrize(
    "name",
    [
        "since",
        "money",
        "filesize",
        "mib",
        "percent",
        "known",
        "gpus",
        "decimals",
        "gpu_time",
        "latency",
    ],
)
def test_none_is_written_as_not_known_and_never_as_zero(name: str) -> None:
    assert render(f"{{{{ value|{name} }}}}", value=None) == (
        '<span class="unknown">not known</span>'
    )


def test_filters_write_units() -> None:
    assert render("{{ v|money }}", v=Decimal("3310.42")) == (
        '<span title="$3,310.42">$3,310</span>'
    )
    assert render("{{ v|money }}", v="1.006") == '<span title="$1.006">$1.01</span>'
    assert render("{{ v|money }}", v=Decimal("12.00")) == "$12"
    assert render("{{ v|money_text }}", v=Decimal("3310.42")) == "$3,310"
    assert render("{{ v|exact_money }}", v=Decimal("27.447050")) == "$27.44705"
    assert render("{{ v|percent }}", v=0.64) == "64%"
    assert render("{{ v|percent }}", v=0.6432) == '<span title="64.32%">64%</span>'
    assert render("{{ v|seconds }}", v=130) == '<span title="130.0 s">2.2 min</span>'
    assert render("{{ v|seconds }}", v=12) == "12 s"
    assert render("{{ v|filesize }}", v=1536) == "1.5 KiB"
    assert render("{{ v|gpus }}", v=Decimal("14.500")) == "14.5"
    assert render("{{ v|gpu_time }}", v=1_800_000) == "0.5 GPU-h"
    assert render("{{ v|gpu_time }}", v=180_000) == "0.0500 GPU-h"
    assert render("{{ v|gpu_time }}", v=1) == "less than 0.0001 GPU-h"
    assert render("{{ v|money }}", v=Decimal("0.605785")) == (
        '<span title="$0.605785">$0.61</span>'
    )
    assert render("{{ v|latency }}", v=12.34) == "12.3 ms"
    assert render("{{ v|latency }}", v=905.2) == '<span title="905.2 ms">905 ms</span>'
    assert render("{{ v|latency }}", v=5290.14) == '<span title="5,290.1 ms">5.3 s</span>'
    assert render("{{ v|decimals }}", v=Decimal("3360.2")) == "3,360.2"
    assert render("{{ v|decimals:2 }}", v=Decimal("0.004")) == "less than 0.01"
    assert render("{{ v|decimals }} {{ none|decimals }}", v=0.003, none=0.0) == "less than 0.1 0.0"
    assert render("{{ v|known }}", v=0) == "0"
    assert render("{{ v|initials }}", v="Ana Lopez") == "AL"


def test_a_flat_zero_raises_no_alarm() -> None:
    assert 'class="spark flat"' in render('{% sparkline values "errors" "bad" %}', values=[0, 0])
    assert 'class="spark bad"' in render('{% sparkline values "errors" "bad" %}', values=[0, 1])
