"""Trust roots and identities: who may add them, what is refused, and what a removal takes away."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
import sigstore
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from rest_framework.test import APIClient

from deployments.attestations.services import roots, trust
from deployments.models import TrustedSigner, TrustRoot
from portal.audit.models import AuditEvent
from portal.core.errors import Conflict, Forbidden, Invalid
from tests.deployments.attestations.attesting import SHA, added, trusted, with_digests
from tests.deployments.attestations.keyless import identity, instance, rooted
from tests.deployments.attestations.signing import new_key, signed_blob
from tests.deployments.attestations.sigstore_instance import ISSUER, WORKFLOW
from tests.deployments.refusals import refused
from tests.deployments.world import World, cluster_calls, moving_clock, world
from tests.page import page

__all__ = ["cluster_calls", "moving_clock", "with_digests", "world"]
PUBLIC_GOOD = quote("https://tuf-repo-cdn.sigstore.dev", safe="")


def logged_in(world: World) -> Client:
    client = Client()
    client.force_login(world.admin)
    return client


def test_the_root_of_the_public_good_instance_is_taken(world: World) -> None:
    store = Path(sigstore.__file__).parent / "_store" / PUBLIC_GOOD / "trusted_root.json"

    row = roots.add(actor=world.admin, name="public good", document=store.read_text())

    kinds = {one["kind"] for one in row.contents}
    assert kinds >= {"certificate authority", "transparency log", "certificate log"}
    assert "https://rekor.sigstore.dev" in {one["name"] for one in row.contents}


def _without(part: str) -> Any:
    return lambda document: document.pop(part)


def _set(*path: Any, to: Any) -> Any:
    def change(document: Any) -> None:
        for name in path[:-1]:
            document = document[name]
        document[path[-1]] = to

    return change


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (_without("tlogs"), "It has no transparency log."),
        (_set("ctlogs", to=[]), "It has no certificate log."),
        (_without("certificateAuthorities"), "It has no certificate authority."),
        (_without("mediaType"), "This is not a trusted_root.json of Sigstore."),
        (_set("tlogs", to="x"), "tlogs must be a list of up to 50."),
        (_set("tlogs", 0, to=7), "tlogs must be a list of objects."),
        (
            _set("tlogs", 0, "publicKey", "rawBytes", to="AAAA"),
            "The public key of a transparency log cannot be read.",
        ),
        (
            _set("certificateAuthorities", 0, "certChain", "certificates", 0, to={}),
            "A certificate of a certificate authority cannot be read.",
        ),
        (
            _set("certificateAuthorities", 0, "certChain", to=None),
            "A certificate authority has no certificates.",
        ),
        (_set("tlogs", 0, "publicKey", "validFor", "start", to="soon"), "soon is not a time."),
        (
            _set("mediaType", to="application/vnd.dev.sigstore.trustedroot+json;version=9"),
            "Sigstore cannot read it: trustedRoot.mediaType: ",
        ),
        (
            _set("tlogs", 0, "logId", to=None),
            "Sigstore cannot read it: trustedRoot.tlogs.0.logId: ",
        ),
    ],
    ids=range(12),
)
def test_what_is_no_trust_root_is_refused(world: World, change: Any, message: str) -> None:
    document = copy.deepcopy(instance(world).trusted_root())
    change(document)

    with refused(world, Invalid) as refusal:
        roots.add(actor=world.admin, name="acme", document=json.dumps(document))

    assert str(refusal[0]).startswith(message)
    assert not TrustRoot.objects.exists()


@pytest.mark.parametrize(
    "document", ["", "{", "[]", "x" * 200_001, json.dumps({"mediaType": "trustedroot"})]
)
def test_nor_is_other_text(world: World, document: str) -> None:
    with refused(world, Invalid):
        roots.add(actor=world.admin, name="acme", document=document)


def test_only_platform_admins_decide_and_names_are_unique(world: World) -> None:
    ours = instance(world)
    root = rooted(world, ours)
    document = json.dumps(ours.trusted_root())

    for actor in (world.lead, world.member, world.viewer):
        with refused(world, Forbidden):
            roots.add(actor=actor, name="mine", document=document)
        with refused(world, Forbidden):
            roots.replace(actor=actor, root_id=root.pk, document=document)
        with refused(world, Forbidden):
            roots.remove(actor=actor, root_id=root.pk)
    with refused(world, Conflict, code="name_taken"):
        rooted(world, ours)
    assert [root.name for root in TrustRoot.objects.filter(removed_at=None)] == ["acme"]
    assert AuditEvent.objects.get(action="trust_root.added").after["sha256"] == root.sha256


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"trust_root": ""}, "trust_root"),
        ({"trust_root": "none"}, "trust_root"),
        ({"issuer": "token.actions.githubusercontent.com"}, "issuer"),
        ({"issuer": ""}, "issuer"),
        ({"identity": ""}, "identity"),
        ({"identity": "https://github.com/acme/*"}, "identity"),
        ({"identity": "x" * 301}, "identity"),
        ({"pem": "x"}, "pem"),
    ],
)
def test_an_identity_names_root_issuer_and_whole_subject(
    world: World, fields: dict[str, str], field: str
) -> None:
    rooted(world, instance(world))

    with refused(world, Invalid) as refusal:
        identity(world, **fields)

    assert set(refusal[0].fields) == {field}
    assert not TrustedSigner.objects.exists()


def test_the_page_adds_a_root_and_an_identity_and_says_what_a_removal_takes(world: World) -> None:
    ours, key = instance(world), new_key()
    client = logged_in(world)
    file = SimpleUploadedFile("trusted_root.json", json.dumps(ours.trusted_root()).encode())
    fields = {"name": "workflow", "trust_root": "acme", "issuer": ISSUER, "identity": WORKFLOW}

    empty = page(client.get("/admin/signing"))
    nothing = client.post("/admin/signing/roots", {"name": "acme"})
    wrong = client.post("/admin/signing/roots", {"name": "acme", "document": "{}"})
    client.post("/admin/signing/roots", {"name": "acme", "file": file})
    pattern = client.post("/admin/signing/identities", {**fields, "identity": "https://*"})
    client.post("/admin/signing/identities", fields)
    trusted(world, key)
    signer, root = TrustedSigner.objects.get(name="workflow"), TrustRoot.objects.get()
    added(world, ours.blob(SHA, ours.at))
    added(world, ours.blob("2" * 64, ours.at), world.version2)
    added(world, signed_blob("2" * 64, key), world.version2)

    shown = page(client.get("/admin/signing"))
    contents = page(client.get(f"/admin/signing/roots/{root.pk}"))
    version = page(client.get("/vision/models/detector/1"))
    before = page(client.get(f"/admin/signing/signers/{signer.pk}/remove"))
    with_root = page(client.get(f"/admin/signing/roots/{root.pk}/remove"))
    removed = page(client.post(f"/admin/signing/roots/{root.pk}/remove", follow=True))

    assert "None, so keyless signatures" in empty.text
    assert [answer.status_code for answer in (nothing, wrong, pattern)] == [422, 422, 422]
    assert "Choose the file or paste its text." in page(nothing).text
    assert "This is not a trusted_root.json of Sigstore." in page(wrong).text
    assert "patterns are not supported" in page(pattern).text
    for text in ("keyless, under acme", WORKFLOW, ISSUER):
        assert text in shown.text
    for text in ("https://rekor.acme.example", "Timestamp authority", root.sha256, WORKFLOW):
        assert text in contents.text
    for text in ("Trusted", WORKFLOW, f"issuer {ISSUER}", "log entry 3"):
        assert text in version.text
    # The other version has a signature by a key too.
    for one in (before, with_root):
        assert "1 version loses its only trusted signature." in one.text
        assert "vision/detector:1" in one.text
        assert "vision/detector:2" not in one.text
    assert "Its identities are removed with it: workflow." in with_root.text
    assert "acme is removed. Without a trusted signature now: vision/detector:1." in removed.text
    assert "None, so keyless signatures" in removed.text


def test_rest_does_the_same(world: World) -> None:
    ours = instance(world)
    admin, member = APIClient(), APIClient()
    admin.force_authenticate(world.admin)
    member.force_authenticate(world.member)
    document = json.dumps(ours.trusted_root())

    made = admin.post("/api/v1/trust-roots", {"name": "acme", "document": document}, format="json")
    root_id = made.json()["id"]
    signer = admin.post(
        "/api/v1/trusted-signers",
        {
            "name": "workflow",
            "kind": "keyless",
            "trust_root": "acme",
            "issuer": ISSUER,
            "identity": WORKFLOW,
        },
        format="json",
    )
    added(world, ours.blob(SHA, ours.at))
    row = member.get(f"/api/v1/versions/{world.version1.pk}/attestations").json()[0]
    detail = member.get(f"/api/v1/trust-roots/{root_id}").json()
    one = member.get(f"/api/v1/trusted-signers/{signer.json()['id']}").json()

    assert (made.status_code, signer.status_code) == (201, 201)
    assert signer.json()["pem"] == ""
    assert {name: row[name] for name in ("state", "identity", "issuer", "log_index")} == {
        "state": "trusted",
        "identity": WORKFLOW,
        "issuer": ISSUER,
        "log_index": 3,
    }
    assert row["signed_at"] is not None
    lost = {"total": 1, "versions": ["vision/detector:1"]}
    assert (detail["document"], detail["identities"]) == (document, ["workflow"])
    assert (detail["only_signature_of"], one["only_signature_of"]) == (lost, lost)
    assert [one["kind"] for one in member.get("/api/v1/trust-roots").json()[0]["contents"]] == [
        "certificate authority",
        "timestamp authority",
        "transparency log",
        "certificate log",
    ]

    where = f"/api/v1/trust-roots/{root_id}"
    assert member.put(where, {"document": document}, format="json").status_code == 403
    assert admin.put(where, {"document": "{}"}, format="json").status_code == 422
    assert admin.put(where, {"document": document}, format="json").status_code == 200
    assert admin.delete(where).status_code == 204
    assert admin.delete(where).status_code == 404
    assert admin.get("/api/v1/trusted-signers").json() == []


def test_a_signer_of_another_team_tells_nothing_of_its_versions(world: World) -> None:
    key = new_key()
    signer = trusted(world, key)
    added(world, signed_blob(SHA, key))
    stranger = APIClient()
    stranger.force_authenticate(world.stranger)

    answer = stranger.get(f"/api/v1/trusted-signers/{signer.pk}")
    trust.remove_signer(actor=world.admin, signer_id=signer.pk)

    assert answer.json()["only_signature_of"] == {"total": 0, "versions": []}
    assert stranger.get(f"/api/v1/trusted-signers/{signer.pk}").status_code == 404
