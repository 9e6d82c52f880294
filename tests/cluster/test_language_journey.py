"""The whole way of a language model on a real control plane: real KServe makes its pods, a server with
random weights runs in them where vLLM would, and SGLang as the candidate, behind real Envoy.
"""

from __future__ import annotations

from collections.abc import Callable

from django.test import Client

from deployments.spec.domain.engines import Engine
from deployments.spec.domain.serving_spec import (
    KSERVE_SGLANG,
    KSERVE_VLLM,
    Llm,
    Network,
    ServingSpec,
)
from fleet.models import Cluster
from tests.cluster.agents import Agents, agents, served_cluster
from tests.cluster.chats import TOKENS, chat, context_lengths
from tests.cluster.kubectl import Kubectl
from tests.cluster.scene import Scene

__all__ = ["agents", "served_cluster"]
_STABLE, _CANDIDATE = 512, 256


def _spec(engine: Engine, context: int) -> ServingSpec:
    """A server names its longest context, so that one knows which one answered."""
    llm = Llm(hugging_face_id="Qwen/Qwen3-0.6B", max_model_len=context)
    return ServingSpec(
        engine=engine,
        instance_type="g5.xlarge",
        cpu="1",
        memory="2Gi",
        llm=llm,
        network=Network(access="open"),
    )


def test_a_language_model_streams_is_counted_and_replaced_by_a_canary_on_another_engine(
    served_cluster: Cluster,
    agents: Agents,
    namespace: str,
    admin: Kubectl,
    client: Client,
    journey: Callable[[str], None],
) -> None:
    scene = Scene(served_cluster, agents, namespace, admin, client)
    one, two = (scene.upload("chat", number) for number in (1, 2))

    url = scene.deploy(one, "chat", _spec(KSERVE_VLLM, _STABLE))

    scene.until(lambda: bool(chat(url)))
    events = chat(url)
    # The role, each token, the reason, and the end.
    assert len(events) == TOKENS + 3
    assert events[-1][1] == "data: [DONE]"
    assert events[-2][0] - events[1][0] > 0.02 * TOKENS / 2, "each token comes when it was made"
    (pod,) = scene.pods()
    assert pod["metadata"]["labels"]["serving.kserve.io/inferenceservice"] == "chat-r1"
    scene.until(lambda: _counted_tokens(scene) >= 2 * TOKENS)

    scene.start_canary(two, _spec(KSERVE_SGLANG, _CANDIDATE))
    scene.until(lambda: context_lengths(url, 10)[_CANDIDATE] > 0)
    answers = context_lengths(url, 200)
    assert answers[_STABLE] + answers[_CANDIDATE] == 200, answers
    assert 60 < answers[_CANDIDATE] < 140, answers
    scene.promote(lambda: [chat(url) for _ in range(5)])
    assert context_lengths(url, 20) == {_CANDIDATE: 20}

    scene.retire(url, "/v1/models")
    journey(
        "kserve-vllm (random weights): streamed through Envoy, tokens counted through the API server's pod "
        "proxy, replaced by a canary on kserve-sglang, retired"
    )


def _counted_tokens(scene: Scene) -> int:
    scene.read_pods()
    answer = scene.client.get(f"/api/v1/deployments/{scene.deployment().pk}/stats")
    assert answer.status_code == 200, answer.content
    language = (answer.json()["total"] or {}).get("language") or {}
    return int(language.get("generation_tokens") or 0)
