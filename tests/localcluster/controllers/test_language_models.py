"""A language model that the portal deploys with vLLM or SGLang under KServe: real Envoy, and a server
with random weights where these would run.
"""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime

import boto3
import httpx
import pytest

from deployments.manifests.domain.metadata import ServedFile
from fleet.telemetry.domain import metrics_page
from fleet.telemetry.domain.counters import PodReading
from slipway_localcluster.controllers.storage import S3Settings
from slipway_localcluster.kinds import HTTP_ROUTE
from tests import plain_http
from tests.fixtures import language_models as folders
from tests.localcluster.controllers import language_models
from tests.localcluster.controllers.running import BUCKET, Running
from tests.waiting import wait_for

# Two seconds of a stream: a reader that gets no processor for a while still sees it arrive piece by piece.
STREAMED = 100


@pytest.fixture(scope="module")
def served(cluster: Running) -> Running:
    language_models.deploy(cluster, 1, language_models.spec())
    language_models.route(cluster, {1: 100})
    return cluster


def test_it_answers_at_the_stable_address(served: Running) -> None:
    before = language_models.metrics(served, 1)

    answer = language_models.chat(served, max_tokens=4)

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
    whole = language_models.chat(served, max_tokens=STREAMED)

    events = language_models.stream(served, max_tokens=STREAMED)

    role, *tokens, reason, done = events
    assert (role.text, done.data) == ("", "[DONE]")
    assert len(tokens) == STREAMED
    assert "".join(token.text for token in tokens) == whole["choices"][0]["message"]["content"]
    assert '"finish_reason": "length"' in reason.data
    # A step takes at least 20 ms, so a gateway that collected the answer would deliver all at once.
    assert tokens[-1].at - tokens[0].at > 0.5


def test_a_stream_is_not_cut_by_a_limit_on_the_whole_answer(served: Running) -> None:
    live = served.store.get(HTTP_ROUTE, "vision", "chat")
    limited = served.store.get(HTTP_ROUTE, "vision", "chat")
    for rule in limited["spec"]["rules"]:
        rule["timeouts"] = {"request": "300ms"}
    served.store.replace(HTTP_ROUTE, limited)

    def is_cut() -> bool:
        try:
            language_models.stream(served, max_tokens=60)
        except httpx.RemoteProtocolError:
            return True
        return False

    wait_for("a limit of 300 ms cuts the stream", is_cut)
    restored = served.store.get(HTTP_ROUTE, "vision", "chat")
    served.store.replace(HTTP_ROUTE, {**restored, "spec": live["spec"]})
    wait_for("the portal's own route does not", lambda: not is_cut())


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
        (
            "chat/completions",
            {"messages": []},
            400,
            "Cannot apply chat template to an empty conversation",
        ),
        (
            "chat/completions",
            {"messages": [{"role": "user", "content": "a" * 5000}]},
            400,
            "maximum",
        ),
        ("chat/completions", {"max_tokens": -1}, 400, "max_tokens must be at least 1, got -1."),
        ("completions", {}, 400, "must be provided and non-empty"),
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
        wait_for(
            "the candidate alone answers, with its adapters",
            lambda: language_models.model_names(served) == ["chat", "sql", "law"],
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


def reading(cluster: Running, number: int) -> PodReading:
    text = language_models.metrics_text(cluster, number)
    return metrics_page.read(text, models=[], at=datetime.now(UTC))


def test_a_canary_to_sglang_gets_its_share_and_is_counted_as_stable_is(served: Running) -> None:
    candidate = language_models.spec("kserve-sglang", max_num_seqs=4, lora_adapters="sql=org/sql")
    language_models.deploy(served, 3, candidate)
    before = [reading(served, number).counters for number in (1, 3)]
    language_models.route(served, {1: 75, 3: 25})
    try:
        for _ in range(80):
            language_models.chat(served, max_tokens=2)
        after = [reading(served, number) for number in (1, 3)]
        language_models.route(served, {3: 100})
        wait_for(
            "the candidate alone answers, with its adapter",
            lambda: language_models.model_names(served) == ["chat", "sql"],
        )
        adapted = language_models.chat(served, model="chat:sql", max_tokens=1)
        said = language_models.logs(served, 3, "kserve-container")
    finally:
        language_models.route(served, {1: 100})
        served.delete("chat-r3")

    stable, canary = (
        now.counters.increase_from(then) for now, then in zip(after, before, strict=True)
    )
    assert stable.request_success + canary.request_success == 80
    # Four standard deviations around 20.
    assert 4 <= canary.request_success <= 36
    for counted in (stable, canary):
        assert counted.request_failure == 0
        assert counted.prompt_tokens == 22 * counted.request_success
        assert counted.generation_tokens == 2 * counted.request_success
        assert counted.first_tokens == counted.later_tokens == counted.request_success
        assert 0 < counted.first_token_us < counted.request_duration_us
        assert counted.compute_infer_us > 0
    # The last step may report itself after its answer arrived.
    assert all(now.running_requests in (0, 1) for now in after)
    assert [now.pending_requests for now in after] == [0, 0]
    assert all(now.kv_cache_usage is not None for now in after)
    assert adapted["model"] == "chat:sql"
    assert "stand-in for SGLang" in said
    assert "without effect here: --enable-metrics --dtype=auto" in said


@pytest.mark.parametrize(("number", "engine"), [(4, "kserve-vllm"), (5, "kserve-sglang")])
def test_an_uploaded_folder_is_downloaded_compared_and_served(
    served: Running, s3: S3Settings, number: int, engine: str
) -> None:
    contents = {path.removeprefix("chat/"): body for path, body in folders.folder(shards=2).items()}
    client = boto3.client(
        "s3",
        endpoint_url=s3.endpoint_url,
        aws_access_key_id="testing",
        aws_secret_access_key="testing",
        region_name="us-east-1",
    )
    for path, body in contents.items():
        client.put_object(Bucket=BUCKET, Key=f"uploaded/{path}", Body=body)
    files = tuple(
        ServedFile(path, hashlib.sha256(body).hexdigest()) for path, body in contents.items()
    )

    language_models.deploy(
        served,
        number,
        language_models.spec(engine, hugging_face_id=""),
        uri=f"s3://{BUCKET}/uploaded/",
        files=files,
    )

    language_models.route(served, {number: 100})
    try:
        answer = language_models.chat(served, max_tokens=4)
        downloaded = language_models.logs(served, number, "storage-initializer")
        compared = language_models.logs(served, number, "digest-check")
    finally:
        language_models.route(served, {1: 100})
        served.delete(f"chat-r{number}")
    assert len(answer["choices"][0]["message"]["content"]) == 4
    assert f"Successfully copied {len(contents)} objects" in downloaded
    assert "All files are as recorded" in compared
