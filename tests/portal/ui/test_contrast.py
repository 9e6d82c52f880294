"""WCAG AA contrast of the token pairs that the stylesheet uses, in both themes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

CSS = (Path(__file__).parents[3] / "static/css/slipway.css").read_text()
TEXT, LARGE = 4.5, 3.0
GROUNDS = ("ground", "surface", "raised", "sunken")
PAIRS = [
    *[(text, ground, TEXT) for text in ("text", "text-2", "text-3") for ground in GROUNDS],
    *[(name, f"{name}-soft", TEXT) for name in ("accent", "ok", "warn", "bad")],
    ("stable", "stable-soft", TEXT),
    ("candidate", "candidate-soft", TEXT),
    *[(name, "surface", TEXT) for name in ("accent", "ok", "warn", "bad", "stable", "candidate")],
    ("on-accent", "accent", TEXT),
    ("on-candidate", "candidate", TEXT),
    ("accent", "ground", LARGE),
    ("control", "surface", LARGE),
    *[(f"series-{n}", "surface", LARGE) for n in range(3, 7)],
]


def _tokens() -> dict[str, tuple[str, str]]:
    matches = re.findall(r"--([\w-]+): light-dark\((#\w{6}), (#\w{6})\)", CSS)
    return {name: (light, dark) for name, light, dark in matches}


TOKENS = _tokens()


def _luminance(colour: str) -> float:
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def _contrast(one: str, other: str) -> float:
    light, dark = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("theme", [0, 1], ids=["light", "dark"])
@pytest.mark.parametrize(("front", "back", "least"), PAIRS, ids=str)
def test_token_pair_is_readable(front: str, back: str, least: float, theme: int) -> None:
    assert _contrast(TOKENS[front][theme], TOKENS[back][theme]) >= least


@pytest.mark.parametrize("theme", [0, 1], ids=["light", "dark"])
def test_text_on_gpu_tiles_is_readable(theme: int) -> None:
    tiles = re.findall(
        r"\.gpu \.(use-\d) \{ background: light-dark\((#\w{6}), (#\w{6})\); "
        r"color: light-dark\((#\w{6}), (#\w{6})\)",
        CSS,
    )

    assert len(tiles) == 5
    for _, *colours in tiles:
        assert _contrast(colours[theme], colours[2 + theme]) >= TEXT
