"""Canaries of real models on the running demo, driven as a lead drives them."""

from __future__ import annotations

import statistics
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests import plain_http
from tests.e2e.demo_process import DemoProcess
from tests.e2e.rest import Person
from tests.fixtures import onnx_models
from tests.fixtures.load import Load, body_of
from tests.fixtures.onnx_models import Kind
from tests.rollout_plans import AT_ONCE
from tests.waiting import PATIENCE_SECONDS, wait_for

MODEL = "canary"
# Two nodes of one GPU each; the four of the other tests would not do for all at once.
INSTANCE_TYPE = "g5.xlarge"


@dataclass(slots=True)
class Scene:
    """One deployment whose candidates come and go, and people who decide about them."""

    demo: DemoProcess
    member: Person
    lead: Person
    folder: Path
    name: str = "canary"
    # So few that a shadow keeps up also where processor time is short: nobody waits for its answers.
    most_in_flight: int = 4
    # What callers send with each request: a key, where the deployment asks for one.
    headers: dict[str, str] = field(default_factory=dict)
    deployment: dict[str, Any] = field(default_factory=dict)
    # Answers that one got by asking alone, by key.
    answered: Counter[str] = field(default_factory=Counter)

    def begin(self, kind: Kind, *, instance_type: str = INSTANCE_TYPE, **settings: Any) -> None:
        """The stable revision, ready."""
        change = self.member.request_deployment(
            self.upload("stable", kind), self.name, instance_type=instance_type, **settings
        )
        self.lead.approve(change)
        self.deployment = self.member.wait_until_ready(change["deployment_id"])

    def retire(self) -> None:
        """Gives the GPUs back, also those of a rollout that a failed test has left open."""
        shown = self.member.get(f"deployments/{self.deployment['id']}")
        if shown["rollout_id"]:
            self.abort(shown["rollout_id"], "the test has ended")
            self.wait_for_phase(shown["rollout_id"], "aborted")
        self.member.retire(self.deployment["id"], approved_by=self.lead)

    def upload(self, name: str, kind: Kind) -> dict[str, Any]:
        file = onnx_models.write(self.folder / f"{name}.onnx", kind)
        return self.member.upload(MODEL, file)

    @contextmanager
    def golden_request(self) -> Iterator[None]:
        """Meanwhile the model has one request with the answer that stable gives to it now."""
        request = body_of([0.0] + [0.25] * (onnx_models.WIDTH - 1))
        url = f"{self.deployment['url']}/v2/models/{MODEL}/infer"
        answer = plain_http.client.post(url, json=request, headers=self.headers)
        outputs = answer.raise_for_status().json()["outputs"]
        body = {"name": "quarters", "request": request, "expected": outputs}
        saved = self.member.post(f"models/vision/{MODEL}/golden-requests", body)
        yield
        self.member.http.delete(f"golden-requests/{saved['id']}").raise_for_status()

    def median_ms(self, *, count: int = 60) -> float:
        """What a caller waits for one request at a time."""
        url = f"{self.deployment['url']}/v2/models/{MODEL}/infer"
        request = body_of([0.0] + [0.25] * (onnx_models.WIDTH - 1))
        waited = []
        for _ in range(count):
            began = time.monotonic()
            plain_http.client.post(url, json=request, headers=self.headers).raise_for_status()
            waited.append((time.monotonic() - began) * 1000)
        return statistics.median(waited)

    def load(self, rate: float, *, marked_share: float = 0.0) -> Load:
        return Load(
            self.deployment["url"],
            MODEL,
            rate=rate,
            width=onnx_models.WIDTH,
            marked_share=marked_share,
            most_in_flight=self.most_in_flight,
            headers=self.headers,
        )

    def start(self, version: dict[str, Any], steps: list[dict[str, Any]], **plan: Any) -> int:
        """Ask for a canary, approve it, and return the rollout's number."""
        body = {"kind": "canary", "version_id": version["id"], "steps": steps}
        body["plan"] = {**AT_ONCE, **plan}
        change = self.member.post(f"deployments/{self.deployment['id']}/changes", body)
        self.lead.approve(change)

        def opened() -> int | None:
            shown = self.member.get(f"deployments/{self.deployment['id']}")["rollout_id"]
            return int(shown) if shown else None

        return wait_for("open rollout", opened)

    def read_rollout(self, rollout_id: int) -> dict[str, Any]:
        return dict(self.lead.get(f"rollouts/{rollout_id}"))

    def wait_for_phase(self, rollout_id: int, phase: str) -> dict[str, Any]:
        def reached() -> dict[str, Any] | None:
            rollout = self.read_rollout(rollout_id)
            is_other_end = rollout["is_final"] and rollout["phase"] != phase
            assert not is_other_end, f"{rollout['phase']}: {rollout['phase_reason']}"
            return rollout if rollout["phase"] == phase else None

        return wait_for(f"rollout {phase}", reached)

    def wait_until_promotable(self, rollout_id: int, weight: int) -> dict[str, Any]:
        """The step with this weight, its soak done and every guard passed."""

        def is_promotable() -> dict[str, Any] | None:
            rollout = self.read_rollout(rollout_id)
            assert not rollout["is_final"], f"{rollout['phase']}: {rollout['phase_reason']}"
            is_there = rollout["observed_weight"] == weight and rollout["is_promotable"]
            return rollout if is_there else None

        return wait_for(f"promotable step of {weight} %", is_promotable)

    def promote(self, rollout: dict[str, Any], *, fully: bool = False) -> None:
        action = "promote-fully" if fully else "promote"
        body = {"evidence_hash": rollout["evidence_hash"]}
        self.lead.post(f"rollouts/{rollout['id']}/{action}", body)

    def abort(self, rollout_id: int, reason: str) -> None:
        self.member.post(f"rollouts/{rollout_id}/abort", {"reason": reason})

    def promote_through(self, rollout_id: int, weights: list[int]) -> list[dict[str, Any]]:
        """Every step by the lead's click and then fully; what stood on the screen at each click."""
        shown_steps = []
        for number, weight in enumerate(weights):
            shown = self.wait_until_promotable(rollout_id, weight)
            shown_steps.append(shown)
            self.promote(shown, fully=number == len(weights) - 1)
        self.wait_for_phase(rollout_id, "completed")
        return shown_steps

    def promised_seconds(self, steps: list[dict[str, Any]], **plan: Any) -> float:
        """After which a slower candidate is found at the earliest, as the plan form says now."""
        body = {"steps": steps, "plan": {**AT_ONCE, **plan}}
        figures = self.member.post(f"deployments/{self.deployment['id']}/rollout-figures", body)
        return float(figures["latency"]["seconds"])

    def seconds_until_aborted(
        self, rollout_id: int, *, patience: float = PATIENCE_SECONDS
    ) -> float:
        """From now until the route sends the candidate nothing any more."""
        began = time.monotonic()

        def is_away() -> bool:
            rollout = self.read_rollout(rollout_id)
            return rollout["phase"] in {"aborting", "aborted"} and not rollout["requested_weight"]

        wait_for("automatic abort", is_away, patience=patience)
        return time.monotonic() - began


def is_share_inside_band(rollout: dict[str, Any]) -> bool:
    return bool(rollout["share_low"] <= rollout["observed_share"] <= rollout["share_high"])
