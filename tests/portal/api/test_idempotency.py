from __future__ import annotations

from typing import Any

import pytest
from rest_framework.authentication import BaseAuthentication
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.test import APIClient, APIRequestFactory, force_authenticate
from rest_framework.views import APIView

from portal.accounts import tokens
from portal.accounts.models import Team, User
from portal.api.idempotency import IdempotentMixin
from portal.api.models import IdempotencyRecord
from portal.core import clock
from portal.core.errors import Unavailable
from tests.accounts import make_membership, make_team, make_user

pytestmark = pytest.mark.django_db


class Counter(IdempotentMixin, APIView):
    authentication_classes: list[type[BaseAuthentication]] = []
    calls = 0
    is_down = False

    def post(self, request: Request) -> Response:
        type(self).calls += 1
        if self.is_down:
            raise Unavailable("Try again.")
        return Response({"call": self.calls, "said": request.data.get("say")}, status=201)


@pytest.fixture(autouse=True)
def _fresh() -> None:
    Counter.calls, Counter.is_down = 0, False


def post(user: User, *, key: str = "", say: str = "hi") -> Response:
    headers = {"HTTP_IDEMPOTENCY_KEY": key} if key else {}
    request = APIRequestFactory().post("/count", {"say": say}, format="json", **headers)
    force_authenticate(request, user)
    response: Response = Counter.as_view()(request)
    return response


def test_a_repeat_gets_the_first_answer_and_no_second_effect() -> None:
    user = make_user()

    first, again = post(user, key="k"), post(user, key="k")

    assert (first.status_code, first.data) == (again.status_code, again.data)
    assert Counter.calls == 1


def test_a_refusal_is_repeated_as_the_problem_it_was() -> None:
    user, client = make_user(), APIClient()
    client.force_authenticate(user)

    answers = [
        client.post(
            "/api/v1/me/tokens", {"name": ""}, format="json", headers={"Idempotency-Key": "k"}
        )
        for _ in range(2)
    ]

    assert answers[0].json() == answers[1].json()
    assert {answer["Content-Type"] for answer in answers} == {"application/problem+json"}


def test_without_a_key_each_request_counts() -> None:
    user = make_user()

    post(user)
    post(user)

    assert Counter.calls == 2


def test_anothers_key_is_another_key() -> None:
    post(make_user(), key="k")
    post(make_user(), key="k")

    assert Counter.calls == 2


def test_a_key_with_another_body_is_refused() -> None:
    user = make_user()
    post(user, key="k")

    response = post(user, key="k", say="ho")

    assert (response.status_code, response.data["code"]) == (422, "invalid")
    assert Counter.calls == 1


def test_a_key_whose_first_request_still_runs_is_a_conflict() -> None:
    user = make_user()
    post(user, key="k")
    IdempotencyRecord.objects.update(status=None, created_at=clock.now())

    assert post(user, key="k").status_code == 409
    assert Counter.calls == 1


def test_an_outage_is_not_remembered() -> None:
    user = make_user()
    Counter.is_down = True
    assert post(user, key="k").status_code == 503

    Counter.is_down = False

    assert post(user, key="k").status_code == 201


def post_with(plain: str) -> Response:
    """The same request under the same key, with this token."""
    request = APIRequestFactory().post(
        "/count", {"say": "hi"}, format="json", HTTP_IDEMPOTENCY_KEY="k"
    )
    holder = tokens.user_of(plain)
    assert holder is not None
    grant: Any = holder.grant
    force_authenticate(request, holder, token=grant)
    response: Response = Counter.as_view()(request)
    return response


def token_of(user: User, team: Team | None) -> str:
    return tokens.create(actor=user, name="ci", team_slug=team.slug if team else "").plain


def test_a_token_of_one_team_gets_no_answer_about_another() -> None:
    user, one, other = make_user(), make_team(), make_team()
    for team in (one, other):
        make_membership(user=user, team=team)

    answers = [post_with(token_of(user, team)) for team in (None, one, other)]

    assert [answer.status_code for answer in answers] == [201, 422, 422]
    assert Counter.calls == 1


def test_a_token_of_one_team_repeats_its_own_answer() -> None:
    user, team = make_user(), make_team()
    make_membership(user=user, team=team)
    plain = token_of(user, team)

    first, again = post_with(plain), post_with(plain)

    assert first.data == again.data
    assert Counter.calls == 1
