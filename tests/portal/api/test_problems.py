"""The error border of the API, on real views through the real handler."""

from __future__ import annotations

import pytest
from django.http import Http404
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.test import APIRequestFactory
from rest_framework.views import APIView

from portal.core import errors


class Nested(serializers.Serializer[object]):
    size = serializers.IntegerField()


class Body(serializers.Serializer[object]):
    name = serializers.CharField()
    parts = Nested(many=True)


def answer_to(error: Exception) -> Response:
    class View(APIView):
        permission_classes = ()
        authentication_classes = ()

        def get(self, request: Request) -> Response:
            raise error

    response: Response = View.as_view()(APIRequestFactory().get("/"))
    return response


@pytest.mark.parametrize(
    ("error", "status", "code"),
    [
        (errors.Invalid("m"), 422, "invalid"),
        (errors.NotFound("m"), 404, "not_found"),
        (errors.Forbidden("m", code="four_eyes"), 403, "four_eyes"),
        (errors.Conflict("m"), 409, "conflict"),
        (errors.QuotaExceeded("m"), 422, "quota_exceeded"),
        (errors.Unavailable("m"), 503, "unavailable"),
    ],
)
def test_each_domain_error_is_a_problem_with_its_stable_code(
    error: errors.DomainError, status: int, code: str
) -> None:
    response = answer_to(error)

    assert response.status_code == status
    assert response.content_type == "application/problem+json"
    assert response.data == {
        "type": f"about:blank#{code}",
        "title": error.title,
        "status": status,
        "detail": "m",
        "code": code,
    }


def test_fields_that_are_wrong_are_named_one_by_one() -> None:
    body = Body(data={"parts": [{"size": "x"}]})
    try:
        body.is_valid(raise_exception=True)
    except serializers.ValidationError as error:
        response = answer_to(error)

    assert response.status_code == 422
    assert [e["field"] for e in response.data["errors"]] == ["name", "parts[0].size"]


def test_a_missing_page_is_a_problem_too() -> None:
    assert answer_to(Http404()).data["code"] == "not_found"


def test_our_own_faults_are_not_dressed_as_the_callers() -> None:
    with pytest.raises(ZeroDivisionError):
        answer_to(ZeroDivisionError())
