"""A language model from its request to a canary, on the demo: the portal, real Envoy, and a server with
random weights where vLLM would run, and SGLang as the candidate.
"""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from tests import plain_http
from tests.e2e.demo_process import DemoProcess
from tests.e2e.rest import Person
from tests.e2e.test_canary import start_canary, wait_for_phase, wait_for_weight
from tests.fixtures import onnx_models
from tests.waiting import wait_for

MODEL = "chat"
ANSWERS = 6
TOKENS = 12


WEIGHTS = {"hugging_face_id": "Qwen/Qwen3-0.6B"}


def chat(url: str, *, stream: bool = False) -> list[str]:
    """Return the lines of the answer."""
    messages = [{"role": "user", "content": "Hello"}]
    body = {"model": MODEL, "messages": messages, "max_tokens": TOKENS, "temperature": 0}
    with plain_http.client.stream(
        "POST", f"{url}/v1/chat/completions", json={**body, "stream": stream}, timeout=30
    ) as answer:
        assert answer.status_code == 200
        return [line for line in answer.iter_lines() if line]


@pytest.fixture(scope="module")
def versions(tmp_path_factory: pytest.TempPathFactory, member: Person) -> list[dict[str, Any]]:
    """A language model of a hub has no file here; the registry's versions number its requests."""
    file: Path = onnx_models.write(
        tmp_path_factory.mktemp("language") / "m.onnx", onnx_models.Kind(rounds=1)
    )
    return [member.upload(MODEL, file) for _ in range(2)]


@pytest.fixture(scope="module")
def language_model(
    demo: DemoProcess, member: Person, lead: Person, versions: list[dict[str, Any]]
) -> Iterator[dict[str, Any]]:
    change = member.request_deployment(
        versions[0],
        MODEL,
        engine="kserve-vllm",
        instance_type="g5.xlarge",
        llm=WEIGHTS,
    )
    lead.approve(change)
    yield member.wait_until_ready(change["deployment_id"])
    member.retire(change["deployment_id"], approved_by=lead)


def test_tokens_are_streamed_counted_and_paid(
    member: Person, language_model: dict[str, Any]
) -> None:
    for _ in range(ANSWERS - 1):
        chat(language_model["url"])
    events = chat(language_model["url"], stream=True)

    # The role, each token, the reason, and the end.
    assert len(events) == TOKENS + 3
    assert events[-1] == "data: [DONE]"

    def counted() -> dict[str, Any] | None:
        total = member.get(f"deployments/{language_model['id']}/stats")["total"]
        language = total and total["language"]
        return total if language and language["generation_tokens"] >= ANSWERS * TOKENS else None

    total = wait_for("tokens of the deployment", counted)
    assert total["success"] >= ANSWERS
    assert total["failure"] == 0
    assert total["language"]["prompt_tokens"] >= ANSWERS * len("user: Hello\nassistant:")
    assert 0 < total["language"]["time_to_first_token_ms"] < total["mean_latency_ms"]
    assert total["language"]["inter_token_ms"] >= 15
    assert total["language"]["kv_cache_usage"] is not None
    assert total["language"]["time_to_first_token_p95_ms"] > 0

    def priced() -> bool:
        rows = member.get("costs?group_by=deployment")["rows"]
        own = [row for row in rows if row["key"]["deployment"] == MODEL]
        return any(Decimal(row["estimated_amount"]) > 0 for row in own)

    wait_for("cost of the deployment", priced)


def test_a_canary_on_sglang_splits_the_requests_and_is_judged_by_its_metrics(
    member: Person, lead: Person, language_model: dict[str, Any], versions: list[dict[str, Any]]
) -> None:
    spec = {
        "engine": "kserve-sglang",
        "instance_type": "g5.xlarge",
        "memory": "2Gi",
        "llm": WEIGHTS,
    }
    rollout_id = start_canary(member, lead, language_model["id"], versions[1]["id"], spec=spec)
    wait_for_weight(lead, rollout_id, 20)

    def is_promotable() -> dict[str, Any] | None:
        for _ in range(5):
            chat(language_model["url"])
        rollout = lead.get(f"rollouts/{rollout_id}")
        assert not rollout["is_final"], rollout["phase_reason"]
        return rollout if rollout["is_promotable"] else None

    rollout = wait_for("promotable step", is_promotable)

    assert 0 < rollout["candidate_requests"] < rollout["stable_requests"]
    member.post(f"rollouts/{rollout_id}/abort", {"reason": "enough seen"})
    wait_for_phase(member, rollout_id, "aborted")


def test_the_team_s_address_serves_the_model_that_a_request_names_to_its_own_keys(
    demo: DemoProcess, member: Person, lead: Person, versions: list[dict[str, Any]]
) -> None:
    change = member.request_deployment(
        versions[0],
        "team-chat",
        engine="kserve-vllm",
        instance_type="g5.xlarge",
        llm=WEIGHTS,
        network={"access": "keys", "team_address": True},
    )
    lead.approve(change)
    deployment = member.wait_until_ready(change["deployment_id"])
    team_url = deployment["team_url"]
    body = {"caller": "billing", "kind": "service", "contact": "ana@example.org", "days": 30}
    key = lead.post(f"deployments/{deployment['id']}/callers", body)["key"]
    sent = {"model": MODEL, "messages": [{"role": "user", "content": "Hello"}], "max_tokens": 4}

    def ask(key: str, model: str = MODEL) -> int:
        headers = {"Authorization": f"Bearer {key}"}
        url = f"{team_url}/chat/completions"
        return plain_http.client.post(
            url, json={**sent, "model": model}, headers=headers, timeout=30
        ).status_code

    wait_for("the gateway knows the key", lambda: ask(key) == 200)
    listed = plain_http.client.get(
        f"{team_url}/models", headers={"Authorization": f"Bearer {key}"}, timeout=10
    )

    assert team_url == deployment["url"].replace("/team-chat", "/v1")
    assert (ask("nobody's"), ask(key, "other")) == (401, 404)
    assert [row["id"] for row in listed.json()["data"]] == [MODEL]
    member.retire(deployment["id"], approved_by=lead)
