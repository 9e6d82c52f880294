"""A field that the portal sets is refused where somebody sends another value, by REST and in YAML, and never dropped."""

from __future__ import annotations

import pytest

from deployments.changes.web import request_body
from deployments.changes.web.request_body import Unreadable
from deployments.models import ChangeRequest
from tests.deployments.changes.test_api import body, client
from tests.deployments.world import World

_SPEC = {"engine": "kserve-triton", "instance_type": "g5.xlarge", "network": {"access": "open"}}


@pytest.mark.parametrize("stated", [{"image": "registry.example/triton:mine"}, {"schema": 2}])
@pytest.mark.parametrize("path", ["deployments", "deployments/preflight"])
def test_rest_refuses_it(world: World, path: str, stated: dict[str, object]) -> None:
    draft = body(world, spec={**_SPEC, **stated})
    if path.endswith("preflight"):
        del draft["comment"]

    answer = client(world.member).post(f"/api/v1/{path}", draft, format="json")

    (name,) = stated
    assert (answer.status_code, [error["field"] for error in answer.data["errors"]]) == (
        422,
        [f"spec.{name}"],
    )
    assert "The portal sets this" in str(answer.data)
    assert not ChangeRequest.objects.exists()


def test_what_is_sent_as_an_answer_of_a_draft_has_it_is_accepted(world: World) -> None:
    draft = body(world, spec={**_SPEC, "image": "", "schema": 1})

    assert client(world.member).post("/api/v1/deployments", draft, format="json").status_code == 201


def test_the_yaml_of_the_form_refuses_it() -> None:
    with pytest.raises(Unreadable, match=r"The portal sets spec\.image\. Remove it\."):
        request_body.fields_of({"name": "detector", "spec": {**_SPEC, "image": "mine"}})
    assert request_body.fields_of({"name": "detector", "spec": {**_SPEC, "image": ""}})
