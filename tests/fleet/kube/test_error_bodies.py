"""What the body of an error of the API server means, without a server."""

from __future__ import annotations

import json

import pytest

from fleet.kube.domain.errors import (
    ObjectInvalid,
    Unreachable,
)
from fleet.kube.gateways.status_errors import build_error


def test_unreadable_error_body_is_passed_on_unchanged() -> None:
    error = build_error(502, b"<html>Bad gateway</html>")

    assert isinstance(error, Unreachable)
    assert error.message == "<html>Bad gateway</html>"


# The messages are those of Kubernetes 1.36.
_OBJECT = "team/m; apps/v1, Kind=Deployment"


@pytest.mark.parametrize(
    ("message", "causes"),
    [
        (
            f"failed to create typed patch object ({_OBJECT}): .spec.replicaz: field not declared "
            "in schema",
            [("spec.replicaz", "field not declared in schema")],
        ),
        (
            f"failed to create typed patch object ({_OBJECT}): errors:\n"
            "  .spec.replicaz: field not declared in schema\n"
            "  .spec.template.spec.containers: element 0: associative list with keys has an element "
            'that omits key field "name" (and doesn\'t have default value)',
            [
                ("spec.replicaz", "field not declared in schema"),
                (
                    "spec.template.spec.containers",
                    "element 0: associative list with keys has an element that omits key field "
                    '"name" (and doesn\'t have default value)',
                ),
            ],
        ),
        (
            f"failed to convert new object ({_OBJECT}) to proper version: json: cannot unmarshal "
            "string into Go struct field DeploymentSpec.spec.replicas of type int32",
            [],
        ),
    ],
)
def test_an_object_that_does_not_fit_its_schema_is_invalid_though_the_status_is_500(
    message: str, causes: list[tuple[str, str]]
) -> None:
    body = {"kind": "Status", "apiVersion": "v1", "code": 500, "message": message}

    error = build_error(500, json.dumps(body).encode())

    assert isinstance(error, ObjectInvalid)
    assert error.message == message
    assert [(cause.field, cause.message) for cause in error.causes] == causes


@pytest.mark.parametrize(
    "message",
    [
        f"failed to convert live object ({_OBJECT}) to proper version: gone",
        f"failed to convert new object ({_OBJECT}) to proper version: conversion webhook for "
        "serving.kserve.io/v1alpha2, Kind=LLMInferenceService failed: connection refused",
        'Internal error occurred: failed calling webhook "inferenceservice.kserve-webhook-server": x',
        "etcdserver: request timed out",
    ],
)
def test_other_server_errors_are_outages(message: str) -> None:
    body = {"kind": "Status", "apiVersion": "v1", "code": 500, "message": message}

    assert isinstance(build_error(500, json.dumps(body).encode()), Unreachable)
