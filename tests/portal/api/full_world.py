"""One of everything that an address of the API can name."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from typing import Any

from deployments.approvals.services import rules
from deployments.approvals.services.rules import RuleDraft
from deployments.attestations.services import attestations, roots, trust
from deployments.attestations.services.trust import SignerDraft
from deployments.attestations.services.trust import SigningRuleDraft as SigningDraft
from deployments.batch.services import uploads
from deployments.callers.services import keys, token_issuers
from deployments.callers.services.keys import KeyDraft
from deployments.callers.services.token_issuers import IssuerDraft
from deployments.changes.services import presets, requests
from deployments.imports.services import imports
from deployments.imports.services.imports import ImportDraft
from deployments.models import (
    AdviceItem,
    Alert,
    Alias,
    BatchJob,
    Deployment,
    EmergencyReview,
    Rollout,
    ServiceTarget,
)
from deployments.pipelines.services import requests as pipeline_requests
from deployments.pipelines.services.requests import PipelineDraft
from deployments.plans.services import templates
from deployments.quality.services import golden_requests
from deployments.states import Environment
from fleet.actions.domain.evidence import Evidence
from fleet.actions.domain.states import ActionState
from fleet.models import Cluster, FleetAction, Node
from portal.accounts import delegations, service_accounts, tokens
from portal.accounts.local import invitations
from portal.core import clock
from portal.notifications import vault
from portal.notifications.models import Channel, ChannelKind
from tests.deployments.attestations import signing
from tests.deployments.attestations.sigstore_instance import Sigstore
from tests.deployments.world import (
    World,
)

STEPS = [{"weight": 20, "soak_seconds": 0, "min_requests": 0}]


@dataclass
class FullWorld:
    """`names` maps path parameters to objects of team vision."""

    world: World
    deployment: Deployment
    names: dict[str, Any]


def fill(world: World) -> FullWorld:
    deployment = world.serving()
    rule = rules.make(
        actor=world.admin,
        draft=RuleDraft(name="unused", team="vision", kinds=("start",), needed=2),
    )
    review = EmergencyReview.objects.create(
        change=deployment.changes.get(),
        opened_by=world.lead,
        reason="it was down",
        opened_at=clock.now(),
        due_at=clock.now(),
    )
    change = requests.request_canary(
        actor=world.member, deployment_id=deployment.pk, version_id=world.version2.pk, steps=STEPS
    )
    world.approved(change)
    for alias in ("champion", "staging"):
        Alias.objects.create(
            model=world.version1.model, name=alias, version=world.version1, moved_at=clock.now()
        )
    token = tokens.create(actor=world.admin, name="notebook", days=7)
    output = {"name": "y", "datatype": "FP32", "shape": [1], "data": [2.0]}
    golden = golden_requests.save(
        actor=world.member,
        team_slug="vision",
        model_name=world.version1.model.name,
        name="one",
        request={"inputs": [{**output, "name": "x"}]},
        expected=[output],
    )
    template = templates.save(
        actor=world.member, team=world.team, name="default", steps=STEPS, plan={}
    )
    preset = presets.save(
        actor=world.lead, team=world.team, name="Big", settings={"memory": "12Gi"}
    )
    step = {"deployment": deployment.name}
    # KServe's router of a pipeline needs it.
    Cluster.objects.filter(pk=world.cluster_id).update(serving={"pod_security": "baseline"})
    nodes = [{"name": "root", "kind": "ensemble", "steps": [step, {**step, "name": "again"}]}]
    pipeline_change = pipeline_requests.request_create(
        actor=world.member,
        draft=PipelineDraft(
            team="vision",
            cluster_id=world.cluster_id,
            environment=Environment.PRODUCTION,
            name="both",
            spec={"nodes": nodes},
        ),
    )
    delegation = delegations.name_delegate(
        actor=world.lead,
        team=world.team,
        username="member",
        starts_at=clock.now() + timedelta(days=1),
        ends_at=clock.now() + timedelta(days=2),
        reason="away",
    )
    channel = Channel.objects.create(
        team=world.team,
        kind=ChannelKind.EMAIL,
        name="mail",
        sealed_address=vault.seal("ana@example.org"),
        hint="ana@example.org",
        created_by=world.lead,
        created_at=clock.now(),
    )
    job = imports.start(
        actor=world.member,
        team_slug="vision",
        model_name="imported",
        draft=ImportDraft("https://models.example/m.onnx"),
    )
    service = service_accounts.create(
        actor=world.admin, team=world.team, name="ci", scopes=["request"]
    )
    item = AdviceItem.objects.create(
        team=world.team,
        deployment=deployment,
        subject="vision/detector",
        kind="idle",
        message="Stop it.",
        formula="",
        risk="low",
        risk_reason="",
        cost_amount=Decimal(10),
        saving_amount=Decimal(10),
        proposal={"kind": "stop", "settings": {}},
        first_seen_at=clock.now(),
        computed_at=clock.now(),
    )
    invited = invitations.invite(
        actor=world.lead, team=world.team, name="Ben", email="ben@example.org", role="member"
    )
    caller_key = keys.create(
        actor=world.lead,
        deployment_id=deployment.pk,
        draft=KeyDraft(name="billing", contact="ana@example.org"),
    )
    alert = Alert.objects.create(
        team=world.team,
        kind="queue_depth",
        key="deployment",
        deployment=deployment,
        subject="Queue of vision/detector",
        message="Requests wait.",
        path="/vision/deployments/detector",
        opened_at=clock.now(),
    )
    ServiceTarget.objects.create(
        deployment=deployment,
        metric="availability",
        objective_percent=Decimal(99),
        window_days=7,
        created_by=world.member,
        created_at=clock.now(),
    )
    action = FleetAction.objects.create(
        cluster_id=world.cluster_id,
        kind="cordon",
        target_kind="node",
        target="busy",
        requester=world.lead,
        evidence=Evidence().to_json(),
        state=ActionState.APPROVED,
        created_at=clock.now(),
    )
    batch = BatchJob.objects.create(
        team=world.team,
        name="detector",
        version=world.version1,
        cluster_id=world.cluster_id,
        requester=world.member,
        created_at=clock.now(),
        state="running",
        pods={"instance_type": "g5.xlarge"},
        input="s3://slipway-models/batch/vision/in.jsonl",
        output="s3://slipway-models/batch/vision/out/",
    )
    upload = uploads.start(
        actor=world.member, team_slug="vision", filename="rows.csv", size_bytes=10
    )
    names = _signing_names(world) | {
        "job_id": batch.pk,
        "upload_id": upload.pk,
        "action_id": action.pk,
        "pool": "gpu",
        "node_class": "gpu",
        "kind": "node-pool",
        "group": "gpu",
        "alert_id": alert.pk,
        "environment": "production",
        "metric": "availability",
        "invitation_id": invited.row.pk,
        "provider_id": "lab",
        "item_id": item.pk,
        "import_id": job.pk,
        "slug": "vision",
        "team": "vision",
        "name": world.version1.model.name,
        "record": "0001-stable-address-by-one-route",
        "number": 1,
        "alias": "champion",
        "username": "member",
        "version_id": world.version1.pk,
        "cluster_id": world.cluster_id,
        "node_id": Node.objects.get(cluster_id=world.cluster_id, uid="node-0").pk,
        "deployment_id": deployment.pk,
        "change_id": change.pk,
        "rollout_id": Rollout.objects.get().pk,
        "template_id": template.pk,
        "preset_id": preset.pk,
        "rule_id": rule.pk,
        "review_id": review.pk,
        "token_id": token.row.pk,
        "account": "ci",
        "service_token_id": service.row.pk,
        "golden_id": golden.pk,
        "key_id": caller_key.row.pk,
        "pipeline": "both",
        "pipeline_id": pipeline_change.pipeline_id,
        "pipeline_change_id": pipeline_change.pk,
        "delegation_id": delegation.pk,
        "channel_id": channel.pk,
        "version": "1",
        "token": "unknown",
        "link_id": 0,
        "server": "lab",
    }
    return FullWorld(world, deployment, names)


def _signing_names(world: World) -> dict[str, Any]:
    key = signing.new_key()
    signer = trust.add_signer(
        actor=world.admin, draft=SignerDraft(name="ci", pem=signing.public_pem(key))
    )
    # No version here is signed, so it holds where nothing is requested.
    rule = trust.make_rule(
        actor=world.admin, draft=SigningDraft(name="signed", environments=("staging",))
    )
    issuer = token_issuers.add(
        actor=world.admin,
        draft=IssuerDraft(
            name="acme",
            url="https://login.acme.example/",
            jwks_url="https://login.acme.example/jwks",
            audiences=["models"],
        ),
    )
    attestation = attestations.add(
        actor=world.member,
        version_id=world.version1.pk,
        filename="model.sig",
        body=signing.signed({}, key),
    )
    root = roots.add(
        actor=world.admin, name="acme", document=json.dumps(Sigstore(clock.now()).trusted_root())
    )
    return {
        "attestation_id": attestation.pk,
        "root_id": root.pk,
        "signer_id": signer.pk,
        "signing_rule_id": rule.pk,
        "token_issuer_id": issuer.pk,
    }
