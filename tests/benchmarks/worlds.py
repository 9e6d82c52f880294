"""Streams of requests as services produce them: quiet, bursty, wandering, ramping, stalling."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from tests.benchmarks.blocks_twin import PAST, Floats, Streams

BASE_MS = 20.0
WEIGHTS = (0.05, 0.25, 0.50)
Random = np.random.Generator
# Factors of (stable, candidate), each of shape (rollouts, PAST + readings).
Factors = Callable[[Random, tuple[int, int]], tuple[Floats, Floats]]


def drift(random: Random, shape: tuple[int, int], *, phi: float, deviation: float) -> Floats:
    """A stationary autoregressive series: each reading remembers `phi` of the one before."""
    values = np.empty(shape)
    values[:, 0] = random.normal(0, deviation, shape[0])
    fresh = random.normal(0, deviation, shape) * np.sqrt(1 - phi**2)
    for t in range(1, shape[1]):
        values[:, t] = phi * values[:, t - 1] + fresh[:, t]
    return values


def _bursts(random: Random, shape: tuple[int, int], *, readings: int, factor: float) -> Floats:
    """One reading in twenty lies in a burst of so many readings."""
    starts = random.random(shape) < 0.05 / readings
    inside = np.zeros(shape, bool)
    for lag in range(readings):
        inside[:, lag:] |= starts[:, : shape[1] - lag]
    return np.where(inside, factor, 1.0)


def own_bursts(readings: int, factor: float = 10.0) -> Factors:
    def factors(random: Random, shape: tuple[int, int]) -> tuple[Floats, Floats]:
        return (
            _bursts(random, shape, readings=readings, factor=factor),
            _bursts(random, shape, readings=readings, factor=factor),
        )

    return factors


def shared_bursts(readings: int, factor: float = 10.0) -> Factors:
    def factors(random: Random, shape: tuple[int, int]) -> tuple[Floats, Floats]:
        both = _bursts(random, shape, readings=readings, factor=factor)
        return both, both

    return factors


def own_wander(deviation: float, seconds: float) -> Factors:
    phi = float(np.exp(-5 / seconds))

    def factors(random: Random, shape: tuple[int, int]) -> tuple[Floats, Floats]:
        sides = [np.exp(drift(random, shape, phi=phi, deviation=deviation)) for _ in range(2)]
        return sides[0], sides[1]

    return factors


def shared_wander(deviation: float, seconds: float) -> Factors:
    phi = float(np.exp(-5 / seconds))

    def factors(random: Random, shape: tuple[int, int]) -> tuple[Floats, Floats]:
        both = np.exp(drift(random, shape, phi=phi, deviation=deviation))
        return both, both

    return factors


def shared_ramp(to: float, *, begins: float, ends: float) -> Factors:
    """From 1 to `to` between two parts of the rollout."""

    def factors(random: Random, shape: tuple[int, int]) -> tuple[Floats, Floats]:
        part = (np.arange(shape[1]) - PAST) / (shape[1] - PAST)
        rise = np.clip((part - begins) / max(ends - begins, 1e-9), 0, 1)
        both = np.broadcast_to(1 + (to - 1) * rise, shape).copy()
        return both, both

    return factors


@dataclass(frozen=True, slots=True)
class World:
    """`errors` and `slower` are what the candidate's rates and times are multiplied by."""

    name: str
    per_second: float = 100.0
    base: float = 0.01
    step_minutes: int = 10
    failing: Factors | None = None
    slow: Factors | None = None
    errors: float = 1.0
    slower: float = 1.0
    weights: Sequence[float] = WEIGHTS
    # Shape of the gamma distribution of a request's time; below 1 has a heavier tail.
    shape: float = 1.0
    # Readings of stable before the rollout that were read.
    known: int = PAST
    # Of the candidate: its first readings take so many times as long, and so many are not judged.
    cold_readings: int = 0
    cold: float = 1.0
    warm_readings: int = 0


def simulate(world: World, *, rollouts: int, seed: int) -> Streams:
    random = np.random.default_rng(seed)
    step = world.step_minutes * 12
    readings = step * len(world.weights)
    shape = (rollouts, PAST + readings)
    one = np.ones(shape)
    fails = world.failing(random, shape) if world.failing else (one, one)
    slows = world.slow(random, shape) if world.slow else (one, one)
    cold = one.copy()
    cold[:, PAST : PAST + world.cold_readings] = world.cold
    weights = np.concatenate([np.zeros(PAST), np.repeat(np.asarray(world.weights), step)])
    total = random.poisson(world.per_second * 5, shape)
    candidate = random.binomial(total, weights)
    stable = total - candidate
    stable_failed = random.binomial(stable, np.minimum(1.0, world.base * fails[0]))
    failed = random.binomial(candidate, np.minimum(1.0, world.base * world.errors * fails[1]))
    times: list[Floats] = [
        np.round(
            random.standard_gamma(np.maximum(n, 1e-9) * world.shape) / world.shape * mean, 3
        ).astype(np.float64)
        for n, mean in (
            (stable - stable_failed, BASE_MS * slows[0]),
            (candidate - failed, BASE_MS * world.slower * slows[1] * cold),
        )
    ]
    return Streams(
        starts=[step * number for number in range(len(world.weights))],
        stable_n=stable,
        stable_failed=stable_failed,
        stable_ms=times[0],
        candidate_n=candidate[:, PAST:],
        candidate_failed=failed[:, PAST:],
        candidate_ms=times[1][:, PAST:],
        known=world.known,
        warm_readings=world.warm_readings,
    )
