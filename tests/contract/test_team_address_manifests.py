"""The objects of a team's address against the published schemas of Envoy Gateway and the Gateway API."""

from __future__ import annotations

import pytest

from deployments.manifests.domain.access import team_address
from deployments.manifests.domain.access.team_script import RoutedDeployment
from tests.contract import schemas
from tests.localcluster.controllers import language_models

_MEMBERS = [RoutedDeployment("chat", ("chat", "chat:sql")), RoutedDeployment("code", ("org/code",))]
_KINDS = ("SecurityPolicy", "BackendTrafficPolicy", "EnvoyExtensionPolicy", "HTTPRoute")


@pytest.mark.parametrize("kind", _KINDS)
def test_each_has_the_published_form(kind: str) -> None:
    published = schemas.require_custom()
    made = {
        item["kind"]: item for item in team_address.manifests(language_models.CONTEXT, _MEMBERS)
    }
    manifest = made[kind]
    try:
        validator = published[manifest["apiVersion"], kind]
    except KeyError:
        pytest.skip(f"the folder of CRDs has no {kind}")

    assert [error.message for error in validator.iter_errors(manifest)] == []
    broken = {**manifest, "spec": {**manifest["spec"], "typo": 1}}
    assert list(validator.iter_errors(broken))


def test_the_secret_is_one_of_kubernetes() -> None:
    schemas.check_built_in(team_address.secret(language_models.CONTEXT, {"billing.1": "key"}))
