"""A language model that the portal deploys with KServe's vLLM: real Envoy, and a server with random
weights where vLLM would run.
"""

from __future__ import annotations

import httpx
import pytest

from fleet.localcluster.kinds import HTTP_ROUTE
from tests import plain_http
from tests.fleet.localcluster.controllers import language_models
from tests.fleet.localcluster.controllers.running import Running, eventually

pytestmark = pytest.mark.timeout(240)
TOKENS = 30


@pytest.fixture(scope="module")
def served(cluster: Running) -> Running:
    language_models.deploy(cluster, 1, language_models.spec())
    language_models.route(cluster, {1: 100})
    return cluster


def test_it_answers_at_the_stable_address(served: Running) -> None:
    before = language_models.metrics(served, 1)

    answer = language_models.chat(served, max_tokens=4, temperature=0)

    assert answer["model"] == "chat"
    assert len(answer["choices"][0]["message"]["content"]) == 4
    assert answer["choices"][0]["finish_reason"] == "length"
    assert answer["usage"] == {"prompt_tokens": 22, "completion_tokens": 4, "total_tokens": 26}
    after = language_models.metrics(served, 1)
    grown = {name: value - before[name] for name, value in after.items()}
    assert grown["vllm:request_success_total"] == 1
    assert grown["vllm:prompt_tokens_total"] == 22
    assert grown["vllm:generation_tokens_total"] == 4
    assert grown["vllm:time_to_first_token_seconds_count"] == 1
    assert grown["vllm:inter_token_latency_seconds_count"] == 3


def test_tokens_arrive_one_by_one_through_the_gateway(served: Running) -> None:
    whole = language_models.chat(served, max_tokens=TOKENS, temperature=0)

    events = language_models.stream(served, max_tokens=TOKENS, temperature=0)

    role, *tokens, reason, done = events
    assert (role.text, done.data) == ("", "[DONE]")
    assert len(tokens) == TOKENS
    assert "".join(token.text for token in tokens) == whole["choices"][0]["message"]["content"]
    assert '"finish_reason": "length"' in reason.data
    # A step takes at least 20 ms, so a gateway that collected the answer would deliver all at once.
    assert tokens[-1].at - tokens[0].at > 0.02 * (TOKENS - 1) / 2


def test_a_stream_is_not_cut_by_a_limit_on_the_whole_answer(served: Running) -> None:
    live = served.store.get(HTTP_ROUTE, "vision", "chat")
    limited = served.store.get(HTTP_ROUTE, "vision", "chat")
    for rule in limited["spec"]["rules"]:
        rule["timeouts"] = {"request": "300ms"}
    served.store.replace(HTTP_ROUTE, limited)

    def is_cut() -> bool:
        try:
            language_models.stream(served, max_tokens=60, temperature=0)
        except httpx.RemoteProtocolError:
            return True
        return False

    eventually(is_cut, what="a limit of 300 ms cuts the stream")
    restored = served.store.get(HTTP_ROUTE, "vision", "chat")
    served.store.replace(HTTP_ROUTE, {**restored, "spec": live["spec"]})
    eventually(lambda: not is_cut(), what="the portal's own route does not")


def test_it_says_what_it_is(served: Running) -> None:
    listed = plain_http.client.get(served.url("/vision/chat/v1/models"), timeout=10).json()

    assert [model["owned_by"] for model in listed["data"]] == ["slipway-local-random-weights"]
    assert "stand-in for vLLM" in language_models.logs(served, 1, "kserve-container")
    assert (
        "hf://org/model is not downloaded: the local language server needs no weights"
        in language_models.logs(served, 1, "storage-initializer")
    )


@pytest.mark.parametrize(
    ("path", "body", "status", "message"),
    [
        ("chat/completions", {"model": "other"}, 404, "The model `other` does not exist."),
        ("chat/completions", {"messages": []}, 400, "messages must be a non-empty list"),
        (
            "chat/completions",
            {"messages": [{"role": "user", "content": "a" * 5000}]},
            400,
            "maximum",
        ),
        ("chat/completions", {"max_tokens": -1}, 400, "max_tokens must be at least 1, got -1."),
        ("completions", {}, 400, "prompt must be a non-empty string"),
    ],
)
def test_a_bad_request_is_refused_and_counts_as_no_request(
    served: Running, path: str, body: dict[str, object], status: int, message: str
) -> None:
    before = language_models.metrics(served, 1)

    answer = plain_http.client.post(
        served.url(f"/vision/chat/v1/{path}"), json=language_models.chat_body(**body), timeout=10
    )

    assert answer.status_code == status
    assert message in answer.json()["error"]["message"]
    after = language_models.metrics(served, 1)
    assert after["vllm:request_success_total"] == before["vllm:request_success_total"]
    assert after["http_requests_total"] > before["http_requests_total"]


def test_paths_of_administration_are_not_routed(served: Running) -> None:
    assert language_models.get(served, "/metrics") == 404


def test_a_canary_of_a_language_model_gets_its_share(served: Running) -> None:
    adapters = "sql=org/sql-lora, law=org/law-lora"
    language_models.deploy(served, 2, language_models.spec(max_num_seqs=4, lora_adapters=adapters))
    before = [language_models.metrics(served, number) for number in (1, 2)]
    language_models.route(served, {1: 75, 2: 25})
    try:
        for _ in range(80):
            language_models.chat(served, max_tokens=1)
        after = [language_models.metrics(served, number) for number in (1, 2)]
        language_models.route(served, {2: 100})
        eventually(
            lambda: language_models.model_names(served) == ["chat", "sql", "law"],
            what="the candidate alone answers, with its adapters",
        )
        assert language_models.chat(served, model="law", max_tokens=1)["model"] == "law"
    finally:
        language_models.route(served, {1: 100})
        served.delete("chat-r2")

    stable, candidate = (
        now["vllm:request_success_total"] - then["vllm:request_success_total"]
        for now, then in zip(after, before, strict=True)
    )
    assert stable + candidate == 80
    # Four standard deviations around 20.
    assert 4 <= candidate <= 36
