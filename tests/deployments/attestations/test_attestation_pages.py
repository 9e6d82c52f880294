"""Attestations, signers and rules on pages and by REST."""

from __future__ import annotations

from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from rest_framework.test import APIClient

from deployments.attestations.services import verification
from deployments.models import Attestation, SigningRule, TrustedSigner
from tests.deployments.attestations import signing
from tests.deployments.attestations.attesting import (
    SHA,
    rule,
    trusted,
    with_digests,
)
from tests.deployments.world import World, cluster_calls, moving_clock, world
from tests.page import page

__all__ = ["cluster_calls", "moving_clock", "with_digests", "world"]


_PAGE = "/vision/models/detector/1"


def test_the_page_adds_shows_and_removes_it(world: World) -> None:
    key = signing.new_key()
    client = Client()
    client.force_login(world.member)
    where = f"{_PAGE}/attestations"
    file = SimpleUploadedFile("model.sig", signing.signed(signing.provenance([SHA]), key).encode())

    unsigned = page(client.get(_PAGE))
    answer = client.post(where, {"file": file})
    wrong = client.post(where, {"file": SimpleUploadedFile("x.sig", b"\xff")})
    trusted(world, key)
    rule(world)
    verification.sweep()

    shown = page(client.get(_PAGE))
    row = Attestation.objects.get()
    assert "Nobody signed this version here" in unsigned.text
    assert (answer.status_code, answer["Location"]) == (302, f"{_PAGE}#attestations")
    assert wrong.status_code == 422
    assert "This is neither a bundle nor an envelope." in page(wrong).text
    for text in ("Trusted", "ci", signing.BUILDER, f"commit {signing.COMMIT}"):
        assert text in shown.text
    assert (
        "Can't be served in production: detector:1 has no signature of a signer that the rule "
        "accepts (rule “signed”)." in shown.text
    )

    client.post(f"{where}/{row.pk}/remove")
    assert not Attestation.objects.exists()


def test_the_admin_page_makes_signers_and_rules(world: World) -> None:
    client = Client()
    client.force_login(world.admin)
    key = signing.new_key()
    signer = {"name": "ci", "kind": "key", "pem": signing.public_pem(key)}

    empty = page(client.get("/admin/signing"))
    client.post("/admin/signing/signers", signer)
    twice = client.post("/admin/signing/signers", signer)
    private = client.post("/admin/signing/signers", {**signer, "pem": "PRIVATE KEY", "name": "x"})
    client.post("/admin/signing/rules", {"name": "signed", "signers": ["ci"]})
    shown = page(client.get("/admin/signing"))

    row = TrustedSigner.objects.get()
    assert "Nobody is trusted yet, so no signature counts." in empty.text
    assert (twice.status_code, private.status_code) == (409, 422)
    assert "This is a private key. Paste the public one." in page(private).text
    assert "a signature by ci" in shown.text

    client.post(f"/admin/signing/signers/{row.pk}/remove")
    again = client.post(f"/admin/signing/signers/{row.pk}/remove")
    removed = page(client.get("/admin/signing"))
    client.post(f"/admin/signing/rules/{SigningRule.objects.get().pk}/delete")
    assert again.status_code == 404
    assert "a signature by ci Removed" in removed.text
    assert not SigningRule.objects.exists()


def test_rest_says_the_same(world: World) -> None:
    admin, member = APIClient(), APIClient()
    admin.force_authenticate(world.admin)
    member.force_authenticate(world.member)
    key = signing.new_key()
    where = f"/api/v1/versions/{world.version1.pk}/attestations"
    body = signing.signed(signing.provenance([SHA]), key)

    signer = admin.post(
        "/api/v1/trusted-signers", {"name": "ci", "pem": signing.public_pem(key)}, format="json"
    )
    made = admin.post(
        "/api/v1/signing-rules",
        {"name": "signed", "signers": ["ci"], "needs_provenance": True, "builders": ["https://*"]},
        format="json",
    )
    posted = member.post(where, {"filename": "p.json", "body": body}, format="json")
    verification.sweep()
    listed = member.get(where).json()

    assert (signer.status_code, made.status_code, posted.status_code) == (201, 201, 201)
    assert posted.json()["state"] == "pending"
    assert {name: listed[0][name] for name in ("state", "is_provenance", "signer")} == {
        "state": "trusted",
        "is_provenance": True,
        "signer": "ci",
    }
    assert listed[0]["provenance"]["source_uri"] == signing.SOURCE
    assert member.get(f"{where}/{listed[0]['id']}").json()["body"] == body
    assert member.get("/api/v1/signing-rules").json() == [made.json()]
    assert member.get("/api/v1/trusted-signers").json() == [signer.json()]
    assert member.post("/api/v1/signing-rules", {"name": "x"}, format="json").status_code == 403

    assert member.delete(f"{where}/{listed[0]['id']}").status_code == 204
    assert admin.delete(f"/api/v1/signing-rules/{made.json()['id']}").status_code == 204
    assert admin.delete(f"/api/v1/trusted-signers/{signer.json()['id']}").status_code == 204
    assert admin.get("/api/v1/trusted-signers").json() == []
