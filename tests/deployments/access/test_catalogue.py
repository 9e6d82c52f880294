"""The kinds of access: what each says of itself, that stored names stay, and that nobody else names one."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from deployments.access.domain import catalogue
from deployments.access.domain.kind import AccessKind
from deployments.access.domain.kinds import keys, open_address, provider_tokens
from deployments.spec.domain import access, serving_spec
from deployments.spec.domain.serving_spec import ServingSpec
from fleet.clusters.domain.capability_descriptions import OPTION_NEEDS
from portal.core.definitions import Rejected
from tests.deployments.access.named_kinds import files_naming, names
from tests.deployments.access.url_keys import UrlKeys

ROOT = Path(__file__).resolve().parents[3]
_SPEC = {"engine": "kserve-triton", "instance_type": "g5.xlarge"}
_MOST_FILES = 4


@pytest.mark.parametrize("kind", catalogue.KINDS, ids=lambda kind: kind.name)
def test_a_kind_is_named_in_four_files_at_most(kind: AccessKind) -> None:
    files = files_naming(kind, ROOT)

    assert f"{type(kind).__module__.replace('.', '/')}.py" in files
    assert "deployments/access/domain/catalogue.py" in files
    assert len(files) <= _MOST_FILES, sorted(files)


@pytest.mark.parametrize(
    "source",
    [
        'if spec.network.access == "keys": pass',
        'if access not in ("open", "keys"): pass',
        'network = Network(access="keys")',
        'rows.filter(spec__network__access="keys")',
        'spec = {"network": {"access": "keys"}}',
        "from deployments.access.domain.kinds import keys",
        "from deployments.access.domain.kinds.keys import KIND",
    ],
)
def test_whoever_names_a_kind_is_found(source: str) -> None:
    assert names(keys.KIND, source)
    assert not names(provider_tokens.KIND, source)


def test_who_asks_the_object_is_not_counted() -> None:
    source = 'if spec.network.access_kind.opens_to_everyone: state = "open"'

    assert not names(open_address.KIND, source)


@pytest.mark.parametrize(
    ("name", "issuer", "kind"),
    [
        ("open", "", open_address.KIND),
        ("keys", "", keys.KIND),
        ("jwt", "acme", provider_tokens.KIND),
    ],
)
def test_a_spec_that_the_last_release_stored_still_loads(
    name: str, issuer: str, kind: AccessKind
) -> None:
    data = ServingSpec.from_json(_SPEC).to_json()
    data["network"] |= {"access": name, "token_issuer": issuer}

    spec = serving_spec.read_stored(data)

    assert spec.network.access_kind is kind
    assert catalogue.read_stored(data) is kind
    assert spec.to_json() == data


@pytest.mark.parametrize("data", [_SPEC, {**_SPEC, "network": {}}])
def test_a_spec_that_was_stored_without_access_has_the_default(data: dict[str, object]) -> None:
    assert catalogue.read_stored(data) is catalogue.DEFAULT
    assert serving_spec.read_stored(data).network.access_kind is catalogue.DEFAULT
    assert not catalogue.DEFAULT.opens_to_everyone


@pytest.mark.parametrize("name", ["", "Keys", "keys ", "jwt:acme", "handshake"])
def test_an_unknown_name_is_refused_with_those_that_there_are(name: str) -> None:
    spec = ServingSpec.from_json(_SPEC)
    known = ", ".join(catalogue.names())

    with pytest.raises(Rejected) as stored:
        serving_spec.read_stored({**_SPEC, "network": {"access": name}})
    with pytest.raises(Rejected) as changed:
        access.with_access(spec, f"{name.partition(':')[0]}s", spec)
    with pytest.raises(LookupError, match=known):
        catalogue.get_kind(name)

    assert stored.value.fields == {"network.access": f"Use one of {known}."}
    assert changed.value.fields["access"] == f"Use one of {known}."
    assert catalogue.find(name) is None


@pytest.mark.parametrize("kind", catalogue.KINDS, ids=lambda kind: kind.name)
def test_a_kind_says_what_it_needs_and_what_to_do_without(kind: AccessKind) -> None:
    assert bool(kind.option) == bool(kind.fix) == (not kind.opens_to_everyone)
    assert not kind.option or kind.option in OPTION_NEEDS
    assert not kind.fix or "network.access" in kind.fix.format(path="network.access")
    assert all(text.endswith(".") for text in (kind.description, kind.requirement))


def test_a_route_is_never_taken_for_one_of_another_kind() -> None:
    """An issuer may have the name of a kind."""
    closed = [kind for kind in (*catalogue.KINDS, UrlKeys()) if not kind.opens_to_everyone]
    issuers = ["", *(kind.name for kind in closed)]

    states = [
        {kind.route_state(7, issuer) for issuer in issuers if bool(issuer) == kind.takes_issuer}
        for kind in closed
    ]

    assert not any(one & other for one, other in itertools.combinations(states, 2))
    assert open_address.KIND.route_state(7, "") == ""


def test_what_is_new_is_closed() -> None:
    """A kind that says nothing of it is closed; one without a policy cannot be made."""
    kind = UrlKeys()

    assert not kind.opens_to_everyone
    assert not kind.takes_pipeline_key
    assert not kind.serves_team_address
    with pytest.raises(TypeError, match="security"):
        AccessKind()  # type: ignore[abstract]  # on purpose
