"""Every operation that the OpenAPI document names, whom it is for, and a request for it.

What is not listed here as shared has to be hidden.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from django.apps import apps
from rest_framework.test import APIClient

from portal.core import clock
from tests.deployments.attestations import signing
from tests.deployments.attestations.sigstore_instance import Sigstore
from tests.portal import api_document
from tests.portal.api.full_world import STEPS

_PEM = signing.public_pem(signing.new_key())
_ROOT = json.dumps(Sigstore(clock.now()).trusted_root())
METHODS = ("get", "post", "put", "patch", "delete")
# Everyone who is signed in may read these; they name no team's objects.
SHARED = {
    "get clusters",
    "get clusters/{cluster_id}",
    "get clusters/{cluster_id}/node-classes",
    "get clusters/{cluster_id}/node-groups",
    "get clusters/{cluster_id}/node-pools",
    "get clusters/{cluster_id}/office-hours",
    "get clusters/{cluster_id}/shares",
    "get prices",
    "get trust-roots",
    "get trust-roots/{root_id}",
    # One for all teams.
    "get trusted-signers/{signer_id}",
}
# About the caller.
OWN = {"get me", "get me/tokens", "post me/tokens"}
# Of these a stranger sees what is there, but neither names nor numbers of another team.
ANONYMOUS = {
    "get nodes",
    "get nodes/{node_id}",
    "get nodes/{node_id}/hours",
    "get nodes/{node_id}/starts",
    "get nodes/{node_id}/utilisation",
    "get fleet-actions",
    "get fleet-actions/{action_id}",
}
# Nodes belong to no team: a lead of any may request, and refusals hide nothing.
FLEET = {
    "get nodes/{node_id}/drain-preview",
    "post clusters/{cluster_id}/node-classes",
    "post clusters/{cluster_id}/node-classes/{node_class}",
    "post clusters/{cluster_id}/node-pools",
    "post clusters/{cluster_id}/node-pools/{pool}",
    "post clusters/{cluster_id}/node-groups/{group}",
    "post clusters/{cluster_id}/office-hours/{kind}/{pool}",
    "post clusters/{cluster_id}/office-hours/{kind}/{pool}/end",
    "post nodes/{node_id}/cordon",
    "post nodes/{node_id}/drain",
    "post nodes/{node_id}/mig",
    "post nodes/{node_id}/gpu-sharing",
    "post nodes/{node_id}/uncordon",
    "post fleet-actions/{action_id}/approve",
    "post fleet-actions/{action_id}/cancel",
    "post fleet-actions/{action_id}/reject",
    "post fleet-actions/{action_id}/withdraw",
}
# Only a platform admin may, whatever the team: refused by name, because it hides nothing.
ADMINS = {
    "get audit",
    "post teams",
    "post prices",
    "post deployment-presets",
    "delete deployment-presets/{preset_id}",
    "post clusters",
    "post clusters/{cluster_id}/test",
    "get clusters/{cluster_id}/serving",
    "put clusters/{cluster_id}/serving",
    "post approval-rules",
    "put approval-rules/{rule_id}",
    "delete approval-rules/{rule_id}",
    "put environments/{environment}",
    "delete clusters/{cluster_id}",
    "post trust-roots",
    "put trust-roots/{root_id}",
    "delete trust-roots/{root_id}",
    "post trusted-signers",
    "delete trusted-signers/{signer_id}",
    "post signing-rules",
    "post token-issuers",
    "delete token-issuers/{token_issuer_id}",
    "delete signing-rules/{signing_rule_id}",
}
# Reading these is part of changing something.
UPLOADERS = {
    "get batch-uploads/{upload_id}/files",
    "get batch-uploads/{upload_id}/parts",
    "get versions/{version_id}/parts",
    "get mlflow-servers/{server}/models",
    "get mlflow-servers/{server}/versions",
}
# For who manages the team's members.
MANAGERS = {"get teams/{slug}/service-accounts"}
QUERIES = {"get mlflow-servers/{server}/versions": "?model=detector"}
SPEC = {"engine": "triton", "instance_type": "g5.xlarge", "network": {"access": "open"}}
DRAFT = {"version_id": "version_id", "cluster_id": "cluster_id", "name": "other", "spec": SPEC}
NODES = {
    "nodes": [
        {
            "name": "root",
            "kind": "ensemble",
            "steps": [{"deployment": "detector"}, {"deployment": "detector", "name": "again"}],
        }
    ]
}
PIPELINE = {"team": "vision", "cluster_id": "cluster_id", "name": "other", **NODES}
# What a member could send, so that a refusal is about the actor and not the body.
_BATCH_JOB = {
    "team": "vision",
    "name": "another",
    "model": "detector",
    "version": 1,
    "cluster": "eks-test",
    "input": "batch_input",
    "output": "batch_output",
    "instance_type": "g5.xlarge",
    "capacity": "on-demand",
}
BODIES: dict[str, dict[str, Any]] = {
    "post advice/{item_id}/snooze": {"days": 7},
    "post advice/{item_id}/dismiss": {"reason": "tried"},
    "post prices": {"prices": []},
    "post alerts/{alert_id}/silence": {"hours": 1, "reason": "tried"},
    "put deployments/{deployment_id}/targets/{metric}": {
        "objective_percent": "99",
        "window_days": 7,
    },
    "post teams": {"slug": "audio", "name": "Audio"},
    "patch teams/{slug}": {"quota_gpus": 1, "monthly_budget_amount": "1.00"},
    "put teams/{slug}/members/{username}": {"role": "viewer"},
    "post teams/{slug}/service-accounts": {"name": "deploy"},
    "post deployments/{deployment_id}/callers": {"caller": "search", "contact": "ana"},
    "post deployments/{deployment_id}/callers/{key_id}/limit": {"requests_per_minute": 60},
    "post teams/{slug}/service-accounts/{account}/rotate": {"token_id": "service_token_id"},
    "post teams/{slug}/delegations": {
        "username": "member",
        "starts_at": "2030-01-01T00:00:00Z",
        "ends_at": "2030-01-02T00:00:00Z",
        "reason": "away",
    },
    "post models": {"team": "vision", "name": "other"},
    "post models/{team}/{name}/versions": {"files": [{"path": "m.onnx", "size_bytes": 10}]},
    "post models/{team}/{name}/imports": {"address": "https://models.example/m.onnx"},
    "post models/{team}/{name}/references": {"source_uri": "hf://org/model"},
    "put models/{team}/{name}/aliases/{alias}": {"version": 2},
    "patch versions/{version_id}": {"metadata": {"accuracy": 0.1}},
    "post versions/preview": {"team": "vision", "files": [{"path": "m.onnx", "size_bytes": 10}]},
    "post versions/{version_id}/parts": {"numbers": [1]},
    "post versions/{version_id}/files/complete": {"paths": ["m.onnx"]},
    "post versions/{version_id}/release": {"reason": "tried", "days": 1},
    "post clusters": {
        "name": "other",
        "kind": "kubeconfig",
        "gateway_url": "http://gateway.example",
        "kubeconfig_path": "/etc/kubeconfig",
    },
    "post deployments": DRAFT,
    "post deployments/preflight": DRAFT,
    "post deployments/{deployment_id}/changes": {
        "kind": "canary",
        "version_id": "version_id",
        "steps": STEPS,
    },
    "post deployments/{deployment_id}/changes/preflight": {
        "kind": "canary",
        "version_id": "version_id",
        "steps": STEPS,
    },
    "post pipelines": PIPELINE,
    "post pipelines/preview": PIPELINE,
    "put pipelines/{pipeline_id}": NODES,
    "post pipeline-changes/{pipeline_change_id}/approve": {"evidence_hash": "0" * 64},
    "post models/{team}/{name}/golden-requests": {
        "name": "other",
        "request": {"inputs": [{"name": "x", "datatype": "FP32", "shape": [1], "data": [1]}]},
        "expected": [{"name": "y", "datatype": "FP32", "shape": [1], "data": [2]}],
    },
    "post deployments/{deployment_id}/observations": {
        "revision": 1,
        "kind": "labels",
        "values": ["cat"],
    },
    "post sizing": {"version_id": "version_id", "cluster_id": "cluster_id"},
    "put deployments/{deployment_id}/drift": {"policy": "hold"},
    "put deployments/{deployment_id}/health": {"is_on": False},
    "post changes/{change_id}/comments": {"text": "Why two GPUs?"},
    "post pipeline-changes/{pipeline_change_id}/comments": {"text": "Why two GPUs?"},
    "post changes/{change_id}/approve": {"evidence_hash": "0" * 64},
    "post clusters/{cluster_id}/node-groups/{group}": {
        "min_size": 0,
        "max_size": 2,
        "desired_size": 1,
    },
    "post clusters/{cluster_id}/node-pools": {
        "name": "gpu",
        "node_class": "gpu",
        "instance_types": ["g5.xlarge"],
    },
    "post clusters/{cluster_id}/office-hours/{kind}/{pool}": {
        "days": {"monday": ["07:30", "22:00"]},
    },
    "post nodes/{node_id}/gpu-sharing": {"config": "shared"},
    "post clusters/{cluster_id}/node-classes": {
        "name": "gpu",
        "ami_alias": "al2023@latest",
        "role": "nodes",
        "subnet_tags": ["a=b"],
        "security_group_tags": ["a=b"],
    },
    "post nodes/{node_id}/mig": {"layout": "all-1g.10gb"},
    "post fleet-actions/{action_id}/approve": {"evidence_hash": "0" * 64},
    "post fleet-actions/{action_id}/reject": {"comment": "no"},
    "post changes/{change_id}/approve-in-emergency": {
        "evidence_hash": "0" * 64,
        "reason": "everything is down",
    },
    "post pipeline-changes/{pipeline_change_id}/approve-in-emergency": {
        "evidence_hash": "0" * 64,
        "reason": "everything is down",
    },
    "post emergency-reviews/{review_id}/close": {"finding": "it was right"},
    "post approval-rules": {"name": "two", "needed": 2},
    "put approval-rules/{rule_id}": {"name": "two", "needed": 2},
    "post versions/{version_id}/attestations": {
        "body": '{"payload": "e30=", "payloadType": "x", "signatures": [{"sig": "e30="}]}'
    },
    "post trusted-signers": {"name": "two", "pem": _PEM},
    "post trust-roots": {"name": "two", "document": _ROOT},
    "put trust-roots/{root_id}": {"document": _ROOT},
    "post signing-rules": {"name": "two", "environments": ["staging"]},
    "post token-issuers": {
        "name": "two",
        "url": "https://login.two.example",
        "jwks_url": "https://login.two.example/jwks",
        "audiences": ["models"],
    },
    "post batch-jobs": _BATCH_JOB,
    "post batch-jobs/check": _BATCH_JOB,
    "post batch-uploads": {"team": "vision", "filename": "more.csv", "size_bytes": 10},
    "post batch-uploads/{upload_id}/parts": {"numbers": [1]},
    "put teams/{slug}/load-tests": {"cluster": ""},
    "put teams/{slug}/rollout-limit": {"percent": 25},
    "post deployments/{deployment_id}/rollout-figures": {"steps": STEPS},
    "post deployment-presets": {"name": "House", "settings": {"memory": "9Gi"}},
    "post teams/{slug}/deployment-presets": {"name": "Big", "settings": {"memory": "9Gi"}},
    "post teams/{slug}/rollout-templates": {"name": "careful", "steps": STEPS},
    "post rollouts/{rollout_id}/promote": {"evidence_hash": "0" * 64},
    "post rollouts/{rollout_id}/promote-fully": {"evidence_hash": "0" * 64},
}


def rows() -> dict[str, list[Any]]:
    """All that is stored, to check that a refusal changed nothing. Exports are events, not changes."""
    models = [model for model in apps.get_models() if model._meta.app_label != "contenttypes"]
    stored = {model.__name__: model._base_manager.order_by("pk") for model in models}
    stored["AuditEvent"] = stored["AuditEvent"].exclude(action="ledger.exported")
    return {name: list(kept.values()) for name, kept in stored.items()}


def operations() -> Iterator[str]:
    """ "get teams/{slug}" and so on, as in the document."""
    document = api_document.read()
    for path, item in document["paths"].items():
        for method in METHODS:
            if method in item:
                yield f"{method} {path.removeprefix('/api/v1/')}"


def send(
    client: APIClient, operation: str, names: dict[str, Any], query: str = "", **added: Any
) -> Any:
    """`added` are fields of the body."""
    method, path = operation.split()
    body = {
        key: names[value] if isinstance(value, str) and value in names else value
        for key, value in {**BODIES.get(operation, {}), **added}.items()
    }
    address = f"/api/v1/{path.format(**names)}{query or QUERIES.get(operation, '')}"
    return getattr(client, method)(address, None if method == "get" else body, format="json")


def signed_in(user: Any) -> APIClient:
    client = APIClient()
    client.force_authenticate(user)
    return client
