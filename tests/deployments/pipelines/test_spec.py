"""Which pipelines can be, and what is written for them: every one against KServe's own schema."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deployments.manifests.domain.metadata import to_yaml
from deployments.pipelines.domain import manifests, pipeline_spec, rules
from deployments.pipelines.domain.manifests import GraphContext
from deployments.pipelines.domain.rules import CallableDeployment
from portal.core.definitions import Rejected
from tests.contract import schemas

PLACE = GraphContext(
    team="vision",
    namespace="vision",
    name="both",
    pipeline_id=7,
    gateway_url="http://gateway.example",
    gateway_namespace="slipway-gateway",
    gateway_name="slipway",
)
IMAGE = (("x", "FP32", (-1, 3)),)
INFER = "v2/models/m/infer"
MEMBERS = {
    "cat": CallableDeployment(name="cat", path=INFER, model="m", inputs=IMAGE),
    "dog": CallableDeployment(name="dog", path="v2/models/n/infer", model="n", inputs=IMAGE),
    "text": CallableDeployment(name="text", path=INFER, model="m", inputs=(("t", "BYTES", (1,)),)),
    "dark": CallableDeployment(name="dark", path=INFER, model="m"),
    "off": CallableDeployment(name="off", path=INFER, why_not="off is stopped: start it first."),
    "llm": CallableDeployment(name="llm", path="v1/chat/completions", model="small", is_chat=True),
    "llm2": CallableDeployment(
        name="llm2", path="v1/chat/completions", model="large", is_chat=True
    ),
}


def spec_of(kind: str, *steps: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"nodes": [{"name": "root", "kind": kind, "steps": list(steps)}], **more}


def faults(data: dict[str, Any]) -> dict[str, str]:
    try:
        rules.check(pipeline_spec.from_json(data), MEMBERS)
    except Rejected as error:
        return error.fields
    return {}


CAT, DOG = {"deployment": "cat"}, {"deployment": "dog"}


@pytest.mark.parametrize(
    "data",
    [
        spec_of("ensemble", CAT, DOG),
        spec_of("ensemble", CAT, {"deployment": "dark"}),
        spec_of("sequence", CAT, {**DOG, "condition": "outputs.0"}),
        spec_of("sequence", CAT, {**DOG, "data": "$request"}),
        spec_of("splitter", {**CAT, "weight": 1}, {**DOG, "weight": 99}),
        spec_of("switch", {**CAT, "condition": "a"}, {"deployment": "text"}),
        spec_of("switch", {"deployment": "llm", "condition": "a"}, {"deployment": "llm2"}),
        spec_of("ensemble", CAT, {**CAT, "name": "again"}),
    ],
)
def test_what_can_answer_is_taken(data: dict[str, Any]) -> None:
    assert faults(data) == {}


ROOT = "nodes.0"


@pytest.mark.parametrize(
    ("data", "where", "message"),
    [
        (spec_of("ensemble", CAT), f"{ROOT}.steps", "2 to 10 steps"),
        (spec_of("ensemble", CAT, CAT), f"{ROOT}.steps.1.name", "Two steps of root"),
        (spec_of("ensemble", CAT, {}), f"{ROOT}.steps.1.deployment", "Name a deployment"),
        (spec_of("ensemble", CAT, {**DOG, "node": "x"}), f"{ROOT}.steps.1.deployment", "not both"),
        (spec_of("ensemble", CAT, {"node": "x"}), f"{ROOT}.steps.1.node", "no node “x”"),
        (spec_of("ensemble", CAT, {"node": "root"}), f"{ROOT}.steps.1.node", "back to the root"),
        (spec_of("ensemble", CAT, {**DOG, "weight": 5}), f"{ROOT}.steps.1.weight", "Only a split"),
        (spec_of("ensemble", CAT, {**DOG, "condition": "a"}), f"{ROOT}.steps.1.condition", "Only"),
        (
            spec_of("ensemble", CAT, {"deployment": "fox"}),
            f"{ROOT}.steps.1.deployment",
            "not a running",
        ),
        (spec_of("ensemble", CAT, {"deployment": "off"}), f"{ROOT}.steps.1.deployment", "stopped"),
        (spec_of("ensemble", CAT, {**DOG, "name": "No!"}), f"{ROOT}.steps.1.name", "lowercase"),
        (spec_of("ensemble", CAT, {**DOG, "data": "$response"}), f"{ROOT}.steps.1.data", "Triton"),
        (spec_of("ensemble", CAT, {**DOG, "url": "x"}), f"{ROOT}.steps.1.url", "no field"),
        (spec_of("ensemble", CAT, {**DOG, "weight": "5"}), f"{ROOT}.steps.1.weight", "whole"),
        (spec_of("ensemble", CAT, {"deployment": "text"}), f"{ROOT}.steps", "cat takes x FP32[any"),
        (spec_of("ensemble", CAT, {"deployment": "llm"}), f"{ROOT}.steps", "different kinds"),
        (
            spec_of("ensemble", {"deployment": "llm"}, {"deployment": "llm2"}),
            f"{ROOT}.steps",
            "names its model",
        ),
        (spec_of("splitter", CAT, {**DOG, "weight": 5}), f"{ROOT}.steps.0.weight", "from 1"),
        (
            spec_of("splitter", {**CAT, "weight": 50}, {**DOG, "weight": 49}),
            f"{ROOT}.steps",
            "add up to 99",
        ),
        (spec_of("switch", CAT, DOG), f"{ROOT}.steps.0.condition", "Only the last"),
        (
            spec_of("switch", {**CAT, "condition": "@this"}, DOG),
            f"{ROOT}.steps.0.condition",
            "get none",
        ),
        (
            spec_of("switch", {**CAT, "condition": 'a.#(b=="c"'}, DOG),
            f"{ROOT}.steps.0.condition",
            "not closed",
        ),
        (
            spec_of("switch", {**CAT, "condition": 'a"b'}, DOG),
            f"{ROOT}.steps.0.condition",
            "quotation mark",
        ),
        (
            spec_of("sequence", {**CAT, "condition": "a"}, DOG),
            f"{ROOT}.steps.0.condition",
            "no previous answer",
        ),
        (spec_of("ensemble", CAT, DOG, min_replicas=0), "min_replicas", "1 to 20"),
        (spec_of("ensemble", CAT, DOG, min_replicas=3), "max_replicas", "Max replicas"),
        (spec_of("ensemble", CAT, DOG, min_replicas=True), "min_replicas", "whole number"),
        (spec_of("single", CAT, DOG), f"{ROOT}.kind", "one of"),
        ({"nodes": []}, "nodes", "root"),
        ({}, "nodes", "State nodes"),
    ],
)
def test_what_cannot_is_refused_at_its_place(
    data: dict[str, Any], where: str, message: str
) -> None:
    problems = faults(data)
    assert message in problems[where]


def test_nodes_are_reached_and_never_go_round() -> None:
    def node(name: str, *steps: dict[str, Any]) -> dict[str, Any]:
        return {"name": name, "kind": "ensemble", "steps": list(steps)}

    deep = {"nodes": [node("root", CAT, {"node": "a"}), node("a", CAT, DOG)]}
    assert faults(deep) == {}
    round_ = {
        "nodes": [
            node("root", CAT, {"node": "a"}),
            node("a", CAT, {"node": "b"}),
            node("b", DOG, {"node": "a"}),
        ]
    }
    assert "loop forever" in faults(round_)["nodes.1.steps.1.node"]
    alone = {"nodes": [node("root", CAT, DOG), node("a", CAT, DOG)]}
    assert faults(alone) == {"nodes.1.name": "No step leads to the node a."}
    twice = {"nodes": [node("root", CAT, DOG), node("root", CAT, DOG)]}
    assert "Two nodes" in faults(twice)["nodes.1.name"]


@st.composite
def specs(draw: st.DrawFn) -> dict[str, Any]:
    """Any legal pipeline over cat and dog: up to three nodes, one inside the other."""
    count = draw(st.integers(1, 3))
    nodes = []
    for number in range(count):
        kind = draw(st.sampled_from([kind.value for kind in pipeline_spec.NodeKind]))
        targets: list[dict[str, Any]] = [CAT, DOG]
        if number + 1 < count:
            targets.append({"node": f"n{number + 1}"})
        weights = draw(st.permutations([20, 30, 50] if len(targets) == 3 else [1, 99]))
        steps = []
        for place, target in enumerate(draw(st.permutations(targets))):
            step = {**target, "is_required": draw(st.booleans())}
            if kind == "splitter":
                step["weight"] = weights[place]
            elif (kind == "switch" and place + 1 < len(targets)) or (kind == "sequence" and place):
                step["condition"] = draw(st.sampled_from(["a.b", 'inputs.#(name=="x")']))
            steps.append(step)
        nodes.append({"name": f"n{number}" if number else "root", "kind": kind, "steps": steps})
    return {"nodes": nodes, "min_replicas": draw(st.integers(1, 3)), "max_replicas": 3}


@given(data=specs())
@settings(max_examples=20, deadline=None)
def test_every_pipeline_is_what_the_published_schemas_take(data: dict[str, Any]) -> None:
    checked = schemas.require_custom()
    spec = pipeline_spec.from_json(data)
    rules.check(spec, MEMBERS)
    paths = {name: member.path for name, member in MEMBERS.items()}

    made = manifests.manifests(PLACE, spec, paths)

    for one in made:
        key = (one["apiVersion"], one["kind"])
        assert [error.message for error in checked[key].iter_errors(one)] == []
    assert pipeline_spec.PipelineSpec.from_json(spec.to_json()) == spec
    assert pipeline_spec.from_json(spec.to_json()) == spec
    assert to_yaml(made) == to_yaml(manifests.manifests(PLACE, spec, paths))
    for node in made[0]["spec"]["nodes"].values():
        targets = ("nodeName", "serviceName", "serviceUrl")
        assert all(sum(target in step for target in targets) == 1 for step in node["steps"])
        names = [step["name"] for step in node["steps"]]
        assert len(set(names)) == len(names)
        if node["routerType"] == "Splitter":
            assert sum(step["weight"] for step in node["steps"]) == 100


def test_steps_call_the_stable_address_of_a_deployment() -> None:
    data = spec_of("switch", {**CAT, "condition": "a", "is_required": True}, DOG)
    spec = pipeline_spec.from_json(data)

    made, route = manifests.manifests(PLACE, spec, {"cat": INFER, "dog": INFER})

    assert made["spec"]["nodes"]["root"]["steps"] == [
        {
            "name": "cat",
            "dependency": "Hard",
            "serviceUrl": "http://gateway.example/vision/cat/v2/models/m/infer",
            "condition": "a",
        },
        {
            "name": "dog",
            "dependency": "Soft",
            "serviceUrl": "http://gateway.example/vision/dog/v2/models/m/infer",
            "condition": "@this",
        },
    ]
    (rule,) = route["spec"]["rules"]
    assert rule["matches"][0]["path"]["value"] == "/vision/both"
    assert rule["backendRefs"] == [{"name": "both", "port": 80, "weight": 1}]
