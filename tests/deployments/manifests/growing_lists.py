"""What grows with callers, models, adapters, deployments and addresses, at the bounds of published schemas and one more."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from deployments.access.domain.callers import Callers, IdentityProvider, RequiredClaim
from deployments.access.domain.headers import CALLER_HEADER
from deployments.access.domain.kinds import provider_tokens
from deployments.manifests.domain import http_route, network
from deployments.manifests.domain.access import (
    caller_keys,
    istio_access,
    limit_rules,
    team_address,
)
from deployments.manifests.domain.access.limit_rules import ClientLimit
from deployments.manifests.domain.access.team_script import RoutedDeployment
from deployments.manifests.domain.metadata import Manifest, ManifestContext
from deployments.manifests.domain.route_paths import Api
from deployments.spec.domain import serving_spec
from deployments.spec.domain.serving_spec import ServingSpec

_JWKS = '{"keys":[]}'
# A signed key, as the portal makes them, is shorter.
_SIGNED = "slc_" + "a" * 700


@dataclass(frozen=True, slots=True)
class Growing:
    """`make` renders the list with so many items; `sizes` lie at and above bounds that other schemas had or have."""

    name: str
    sizes: Sequence[int]
    make: Callable[[ManifestContext, int], Sequence[Manifest]]


def _names(count: int) -> list[str]:
    return [f"{'caller-' * 4}{number}.{10_000_000 + number}" for number in range(count)]


def _limits(
    limit_of: Callable[[int], ClientLimit], *, are_claims: bool = False
) -> Callable[[ManifestContext, int], Sequence[Manifest]]:
    def make(context: ManifestContext, count: int) -> Sequence[Manifest]:
        names = [f"{'c' * 190}{number}" for number in range(count)] if are_claims else _names(count)
        by_client = {name: limit_of(number) for number, name in enumerate(names)}
        planned = limit_rules.rules_of(by_client, header=CALLER_HEADER, are_numbered=not are_claims)
        return [caller_keys.limits(context, planned.rules)]

    return make


def _issuer(values: int) -> IdentityProvider:
    groups = tuple(f"group-{number}" for number in range(values))
    required = (RequiredClaim("groups", groups, is_list=True), RequiredClaim("env", ("prod",)))
    url = "https://id.example.org"
    return IdentityProvider("corp", url, f"{url}/keys", ("models",), "sub", required)


def _callers_with_tokens(context: ManifestContext, count: int) -> Sequence[Manifest]:
    return _policy(context, Callers("", _issuer(1), [f"c{number}" for number in range(count)]))


def _required_values(context: ManifestContext, count: int) -> Sequence[Manifest]:
    return _policy(context, Callers("", _issuer(count), ["a", "b"]))


def _policy(context: ManifestContext, callers: Callers) -> Sequence[Manifest]:
    return [caller_keys.policy(context, provider_tokens.KIND.security(callers))]


def _principals(context: ManifestContext, count: int) -> Sequence[Manifest]:
    return [istio_access.access(context, [f"slipway/{name}" for name in _names(count)])]


def _signers(context: ManifestContext, count: int) -> Sequence[Manifest]:
    issuers = [
        istio_access.TokenSigner(f"https://{number}.example", _JWKS) for number in range(count)
    ]
    return [istio_access.tokens(context, issuers)]


def _keys(context: ManifestContext, count: int) -> Sequence[Manifest]:
    keys = dict.fromkeys(_names(count), _SIGNED)
    return [caller_keys.secret(context, keys), team_address.secret(context, keys)]


def _members(context: ManifestContext, count: int) -> Sequence[Manifest]:
    members = [
        RoutedDeployment(f"chat-{number}", tuple(f"model-{number}-{name}" for name in range(9)))
        for number in range(count)
    ]
    return team_address.manifests(context, members)


def _models(context: ManifestContext, count: int) -> Sequence[Manifest]:
    api = Api(tuple(f"model-{number}" for number in range(count)))
    one = http_route.RouteBackend(1, serving_spec.KSERVE_TRITON, 50, api)
    return [http_route.http_route(context, [one, replace(one, number=2)])]


def _adapters(context: ManifestContext, count: int) -> Sequence[Manifest]:
    spec = ServingSpec.from_json(
        {
            "engine": "kserve-vllm",
            "instance_type": "g5.xlarge",
            "llm": {
                "hugging_face_id": "a/b",
                "lora_adapters": ", ".join(f"a{number}=o/a{number}" for number in range(count)),
            },
            "network": {"access": "keys", "team_address": True},
        }
    )
    one = http_route.backend_for(1, spec, 50, model="chat")
    two = http_route.backend_for(2, spec, 49, model="chat")
    return [http_route.http_route(context, [one, two, replace(two, number=3, weight=1)])]


def _addresses(context: ManifestContext, count: int) -> Sequence[Manifest]:
    blocks = tuple(f"10.{number // 250}.{number % 250}.0/24" for number in range(count))
    names = tuple(f"prometheus-{number}" for number in range(count))
    many = replace(context, control_plane_cidrs=blocks, metrics_namespaces=names)
    return [network.batch(many)]


GROWING = (
    Growing("keys with one limit", (15, 16, 17, 500), _limits(lambda _: ClientLimit(60))),
    Growing("keys with limits of their own", (16, 17, 500), _limits(lambda n: ClientLimit(1 + n))),
    Growing("paused keys", (16, 17, 500), _limits(lambda _: ClientLimit(is_paused=True))),
    Growing(
        "limited callers with tokens",
        (16, 17, 80, 500),
        _limits(lambda n: ClientLimit(60 + n % 3), are_claims=True),
    ),
    Growing("callers with tokens", (0, 16, 17, 128, 129, 500), _callers_with_tokens),
    Growing("values of a required claim", (16, 17, 128), _required_values),
    Growing("keys at Istio", (0, 16, 17, 512, 513), _principals),
    Growing("issuers at Istio", (1, 16, 17), _signers),
    Growing("keys in a Secret", (0, 500), _keys),
    Growing("models of a team's address", (1, 16, 17, 65, 129), _members),
    Growing("models of a process", (1, 2, 3, 16, 17, 65), _models),
    Growing("adapters", (1, 7, 8), _adapters),
    Growing("addresses of a policy", (1, 16, 17, 65), _addresses),
)
CASES = [(growing, size) for growing in GROWING for size in growing.sizes]


def named(case: tuple[Growing, int]) -> str:
    return f"{case[1]} {case[0].name}"
