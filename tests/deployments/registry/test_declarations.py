"""Batching is shown, or declared where nothing could be shown; sizes are declared. All of it is
audited.
"""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from deployments.models import ModelVersion
from deployments.registry.services import declarations, verification
from deployments.registry.services.examination import use_examination
from deployments.states import VersionState
from portal.audit.models import AuditEvent
from portal.core.errors import Conflict, Forbidden, Invalid, NotFound
from tests.deployments.uploading import People, Upload
from tests.fixtures import batching_models

pytestmark = pytest.mark.django_db

_ALL: dict[str, Any] = {"supports_batching": None, "max_batch_size": 32, "largest_inputs": {}}


def noisy() -> bytes:
    """Its answers differ from run to run, so that nothing can be shown."""
    return bytes(batching_models.random_noise().SerializeToString())


def images() -> bytes:
    return bytes(batching_models.convolution().SerializeToString())


def declared(actor: Any, version: ModelVersion, **changed: Any) -> ModelVersion:
    declarations.declare(actor=actor, version_id=version.pk, **{**_ALL, **changed})
    verification.advance(version.pk)
    version.refresh_from_db()
    return version


def batching_of(version: ModelVersion) -> tuple[int, bool, str]:
    check = next(row for row in version.checks if row["name"] == "Batching")
    size = version.signature["max_batch_size"]
    stated = [line for line in version.config_pbtxt.splitlines() if "max_batch_size" in line]
    # The text form leaves out a 0.
    assert stated == ([f"max_batch_size: {size}"] if size else [])
    return size, "dynamic_batching" in version.config_pbtxt, check["detail"]


def test_a_model_that_answers_otherwise_beside_others_is_never_batched(verified: Upload) -> None:
    body = batching_models.softmax_over_axis_0().SerializeToString()

    version = verified(body, declared={"supports_batching": True})

    assert version.state == VersionState.READY
    size, is_dynamic, message = batching_of(version)
    assert (size, is_dynamic) == (0, False)
    assert message.startswith("off: “y” of the same item differs between a single request")


def test_what_could_not_be_shown_is_off_until_it_is_declared(
    people: People, verified: Upload
) -> None:
    version = verified(noisy())
    before = batching_of(version)

    after = batching_of(declared(people.member, version, supports_batching=True, max_batch_size=8))

    assert before[:2] == (0, False)
    assert "could not be verified. “y” changes from run to run. If the model" in before[2]
    assert version.state == VersionState.READY
    assert after[:2] == (8, True)
    assert after[2].startswith("up to 8, as declared; not verified.")
    event = AuditEvent.objects.get(action="version.declared")
    assert (event.actor_name, event.object_label) == ("member", "detector:1")
    stored = {"supports_batching": True, "max_batch_size": 8, "largest_inputs": {}}
    assert event.after == {"state": "verifying", "declared": stored}


def test_a_model_that_never_answers_is_given_up_and_not_batched(
    verified: Upload, monkeypatch: pytest.MonkeyPatch, settings: Any
) -> None:
    """It loads, so that it may be served; nothing was shown, and nothing waits for it."""
    settings.SLIPWAY_EXAMINATION_CPU_SECONDS = 10
    monkeypatch.setattr(use_examination, "_TRIAL_CPU_SECONDS", -8.0)

    version = verified(batching_models.endless().SerializeToString())

    size, is_dynamic, message = batching_of(version)
    assert (version.state, size, is_dynamic) == (VersionState.READY, 0, False)
    # Of processor time or, on a busy machine, of time.
    assert "could not be verified. The test was stopped: it " in message
    assert version.examination_deaths == 0


def test_the_largest_batch_is_what_triton_joins_and_no_switches_it_off(
    people: People, verified: Upload
) -> None:
    version = verified(batching_models.mlp().SerializeToString())

    sizes = [batching_of(version)[0]]
    sizes.append(batching_of(declared(people.member, version, max_batch_size=4))[0])
    sizes.append(batching_of(declared(people.member, version, supports_batching=False))[0])

    assert sizes == [32, 4, 0]


def test_gpu_memory_is_estimated_at_the_largest_declared_sizes_and_batch(
    people: People, verified: Upload
) -> None:
    version = verified(images(), declared={"max_batch_size": 1})
    assumed = version.signature["vram_parts_mib"]["activations"]
    check = next(row for row in version.checks if row["name"] == "GPU memory")
    sizes = {"x": [-1, 3, 960, 960]}

    one = declared(people.member, version, max_batch_size=1, largest_inputs=sizes)
    parts_of_one = one.signature["vram_parts_mib"]
    four = declared(people.member, version, max_batch_size=4, largest_inputs=sizes)
    parts_of_four = four.signature["vram_parts_mib"]

    # x and two results of five planes of 960 x 960 at 4 bytes: 45.7 MiB alive, up to twice that.
    assert (parts_of_one["activations"], parts_of_one["activations_spread"]) == (92, 45)
    assert (parts_of_four["activations"], parts_of_four["activations_spread"]) == (366, 182)
    assert four.signature["largest_inputs"] == "x 4 x 3 x 960 x 960"
    assert four.vram_estimate_mib == 832
    assert assumed < parts_of_one["activations"]
    assert "Sizes of x are assumed; declare the largest inputs." in check["detail"]


def test_declaring_the_same_again_changes_nothing(people: People, verified: Upload) -> None:
    version = declared(people.member, verified(images()), max_batch_size=8)
    count = AuditEvent.objects.count()

    declared(people.member, version, max_batch_size=8)

    assert version.state == VersionState.READY
    assert AuditEvent.objects.count() == count


@pytest.mark.parametrize(
    ("changed", "field"),
    [
        ({"max_batch_size": 0}, "max_batch_size"),
        ({"max_batch_size": 4097}, "max_batch_size"),
        ({"largest_inputs": {"x": [1, 3, 0, 960]}}, "largest_inputs"),
        ({"largest_inputs": {"x": [1, 3, 2**24 + 1, 960]}}, "largest_inputs"),
        ({"largest_inputs": {"x": []}}, "largest_inputs"),
        ({"largest_inputs": {"": [1]}}, "largest_inputs"),
        ({"largest_inputs": {"x": [1, 4, 960, 960]}}, "largest_inputs"),
        ({"largest_inputs": {"picture": [1, 3, 960, 960]}}, "largest_inputs"),
    ],
)
def test_what_cannot_be_is_refused_at_its_field_and_nothing_changes(
    people: People, verified: Upload, changed: dict[str, Any], field: str
) -> None:
    version = verified(images())
    before = ModelVersion.objects.filter(pk=version.pk).values().get()
    count = AuditEvent.objects.count()

    with pytest.raises(Invalid) as refusal:
        declarations.declare(actor=people.member, version_id=version.pk, **{**_ALL, **changed})

    assert list(refusal.value.fields) == [field]
    assert ModelVersion.objects.filter(pk=version.pk).values().get() == before
    assert AuditEvent.objects.count() == count


def test_who_may_not_upload_may_not_declare(people: People, verified: Upload) -> None:
    version = verified(images())

    for role, error in (("viewer", Forbidden), ("stranger", NotFound)):
        with pytest.raises(error):
            declarations.declare(actor=people.named(role), version_id=version.pk, **_ALL)

    version.refresh_from_db()
    assert (version.state, version.declared) == (VersionState.READY, {})


def test_a_version_with_an_alias_keeps_its_configuration(people: People, verified: Upload) -> None:
    from deployments.registry.services import aliases

    version = verified(images())
    aliases.move(
        actor=people.lead, team_slug="vision", model_name="detector", alias="staging", number=1
    )

    with pytest.raises(Conflict) as refusal:
        declarations.declare(actor=people.member, version_id=version.pk, **_ALL)

    assert refusal.value.code == "still_aliased"
    assert not declarations.can_declare(people.member, version)


def test_the_page_shows_why_and_takes_a_declaration(
    people: People, verified: Upload, client: Client
) -> None:
    version = verified(images())
    client.force_login(people.member)
    page = reverse("version", args=["vision", "detector", 1])
    where = reverse("version-declare", args=["vision", "detector", 1])
    typed = {
        "supports_batching": "",
        "max_batch_size": "2",
        "largest_inputs": "x = 2 x 3 x 640 x 480",
    }

    shown = client.get(page).content.decode()
    wrong = client.post(where, {**typed, "largest_inputs": "x: 640"})
    sent = client.post(where, typed)
    version.refresh_from_db()

    assert "Batching up to 32: an item gives the same result alone and in a batch." in shown
    assert "Save and verify again" in shown
    assert wrong.status_code == 422
    assert "Enter one input per line" in wrong.content.decode()
    assert (sent.status_code, version.state) == (302, VersionState.VERIFYING)
    assert version.declared["largest_inputs"] == {"x": [2, 3, 640, 480]}
    assert "Save and verify again" not in client.get(page).content.decode()


def test_the_api_takes_a_declaration_and_returns_it(
    people: People, verified: Upload, client: Client
) -> None:
    version = verified(noisy())
    client.force_login(people.member)
    body = {"supports_batching": True, "max_batch_size": 16, "largest_inputs": {"x": [-1, 4]}}
    where = f"/api/v1/versions/{version.pk}/declare"

    answer = client.post(where, body, content_type="application/json")
    refused = client.post(where, {"max_batch_size": 0}, content_type="application/json")
    verification.advance(version.pk)
    stored = client.get(f"/api/v1/versions/{version.pk}").json()

    assert (answer.status_code, answer.json()["state"]) == (200, "verifying")
    assert refused.status_code == 422
    assert stored["declared"] == body
    assert stored["signature"]["max_batch_size"] == 16
    assert stored["signature"]["batching"].startswith("up to 16, as declared")
    assert stored["signature"]["largest_inputs"] == "x 16 x 4"
    assert stored["vram_min_mib"] <= stored["vram_estimate_mib"]
