"""Our reader of the text format says what that of prometheus_client says."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from fleet.telemetry.domain import exposition

PAGES = sorted(Path("tests/portal/monitoring/expositions").glob("*.txt"))
values = st.one_of(st.floats(), st.integers(-(10**18), 10**18))
labels = st.dictionaries(
    st.from_regex(r"[a-zA-Z_][a-zA-Z0-9_]{0,5}", fullmatch=True),
    st.text(st.characters(codec="utf-8"), max_size=8),
    max_size=4,
)
names = st.from_regex(r"[a-zA-Z_:][a-zA-Z0-9_:]{0,8}", fullmatch=True)


def ours(text: str) -> list[tuple[str, dict[str, str], str]]:
    return [
        (name, dict(exposition.parse_labels(of_sample)), repr(value))
        for name, of_sample, value in exposition.samples(text)
    ]


def theirs(text: str) -> list[tuple[str, dict[str, str], str]]:
    return [
        (sample.name, dict(sample.labels), repr(float(sample.value)))
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    ]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_pages_of_real_servers(page: Path) -> None:
    # Without the types, by which prometheus_client renames counters.
    text = "".join(
        line for line in page.read_text().splitlines(keepends=True) if not line.startswith("# TYPE")
    )

    read = ours(text)

    assert read
    assert sorted(map(str, read)) == sorted(map(str, theirs(text)))


def written(of_sample: dict[str, str]) -> str:
    return ",".join(f'{name}="{escape(value)}"' for name, value in of_sample.items())


def escape(value: str) -> str:
    return value.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')


@given(st.lists(st.tuples(names, labels, values), max_size=6))
def test_any_samples(rows: list[tuple[str, dict[str, str], float]]) -> None:
    lines = [f"{name}{{{written(of_sample)}}} {value}" for name, of_sample, value in rows]

    read = list(exposition.samples("\n".join(["# HELP x y", "", *lines, ""])))

    assert [
        (name, dict(exposition.parse_labels(text)), repr(value)) for name, text, value in read
    ] == [(name, of_sample, repr(float(value))) for name, of_sample, value in rows]


@pytest.mark.parametrize(
    "line",
    [
        "<html>",
        "a b",
        'a{b="c"}',
        "1a 2",
        "a",
        "a{ 1",
        "a 1 x",
        "\N{LATIN SMALL LETTER E WITH ACUTE} 1",
    ],
)
def test_a_line_that_is_no_sample_takes_no_other_with_it(line: str) -> None:
    read = list(exposition.samples(f"ok 1\n{line}\nlast 2\n"))

    assert (read[0], read[-1]) == (("ok", "", 1.0), ("last", "", 2.0))
    assert all(math.isnan(value) and name == "a" for name, _, value in read[1:-1])


@pytest.mark.parametrize("at", ["9" * 400, "-1", "1764320400.5", "1764320400000"])
def test_any_timestamp_leaves_the_value(at: str) -> None:
    assert list(exposition.samples(f'a{{b="c"}} 3 {at}\n')) == [("a", 'b="c"', 3.0)]


def test_the_trace_of_an_observation_is_no_part_of_its_value() -> None:
    line = 'a_bucket{le="1"} 17 # {trace_id="x"} 0.67 1764320400'

    assert list(exposition.samples(line)) == [("a_bucket", 'le="1"', 17.0)]


@pytest.mark.parametrize("text", ["a", "a=b", 'a="b', 'a="b" c="d"', '="b"', '1="b"'])
def test_labels_that_are_none_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not labels"):
        exposition.parse_labels(text)


@pytest.mark.parametrize(
    "line",
    [
        "a" + " " * 2**20 + "1 2 3",
        "a{" + "} 1 2" * 2**18 + "x y",
        "a" + "\t " * 2**19,
        "a{" + " " * 2**20 + "} 1 2 x",
        'a{b="' + "\\\\" * 2**19 + "} 1 2 3",
    ],
    ids=["spaces", "braces", "tabs", "spaces in labels", "backslashes"],
)
@pytest.mark.timeout(20)
def test_a_line_of_a_mebibyte_that_is_no_sample_takes_no_time(line: str) -> None:
    """With each run of spaces read in two ways it took hours."""
    assert all(math.isnan(value) for _, _, value in exposition.samples(line))
