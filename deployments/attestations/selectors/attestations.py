"""Attestations of a version, trusted signers, and what signing rules require."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from django.db.models import Q, QuerySet

from deployments.attestations.domain import signing_rules
from deployments.attestations.domain.signers import Signer, SignerKind
from deployments.attestations.domain.signing_rules import Trusted
from deployments.attestations.domain.verdicts import AttestationState
from deployments.models import Attestation, ModelVersion, SigningRule, TrustedSigner
from portal.accounts import policy
from portal.accounts.models import Team
from portal.accounts.policy import Actor
from portal.core.errors import NotFound
from portal.core.single_row import find_one


@dataclass(frozen=True, slots=True)
class Shortfall:
    """The requirement of one rule that a version does not meet."""

    rule: str
    problem: str


def get_visible_version(*, actor: Actor, version_id: int) -> ModelVersion:
    rows = ModelVersion.objects.select_related("model__team")
    visible = rows.filter(model__team__in=policy.visible_teams(actor), discarded_at=None)
    version = find_one(visible.filter(pk=version_id))
    if version is None:
        raise NotFound(f"Version {version_id} does not exist, or you are not in its team.")
    return version


def list_of(version: ModelVersion) -> list[Attestation]:
    """List the attestations of a version, the oldest first, without their bodies."""
    rows = Attestation.objects.filter(version=version).select_related("signer", "created_by")
    return list(rows.defer("body"))


def get_of(version: ModelVersion, attestation_id: int) -> Attestation:
    rows = Attestation.objects.select_related("signer", "created_by", "version__model__team")
    row = rows.filter(version=version, pk=attestation_id).first()
    if row is None:
        raise NotFound(f"{version} has no attestation {attestation_id}.")
    return row


def list_signers(actor: Actor) -> QuerySet[TrustedSigner]:
    """Return the trusted signers of the actor's teams and of all teams."""
    rows = TrustedSigner.objects.filter(removed_at=None).select_related(
        "team", "created_by", "root"
    )
    return rows.filter(Q(team=None) | Q(team__in=policy.visible_teams(actor)))


def list_rules(actor: Actor) -> QuerySet[SigningRule]:
    rows = SigningRule.objects.select_related("team").prefetch_related("signers")
    return rows.filter(Q(team=None) | Q(team__in=policy.visible_teams(actor)))


def signers_for(team: Team) -> list[Signer]:
    rows = TrustedSigner.objects.filter(Q(team=None) | Q(team=team), removed_at=None)
    return [
        Signer(
            row.pk,
            row.name,
            SignerKind(row.kind),
            row.pem,
            row.identity,
            issuer=row.issuer,
            root_id=row.root_id,
        )
        for row in rows.order_by("pk")
    ]


def shortfalls(version: ModelVersion, *, environment: str) -> list[Shortfall] | None:
    """Return what the version lacks under the rules that apply to it. None if no rule does."""
    team = version.model.team
    rows = SigningRule.objects.filter(Q(team=None) | Q(team=team)).prefetch_related("signers")
    rules = [row for row in rows if not row.environments or environment in row.environments]
    if not rules:
        return None
    given = list_trusted(version)
    problems = ((row.name, signing_rules.problem_with(as_rule(row), given)) for row in rules)
    return [Shortfall(name, problem) for name, problem in problems if problem]


def list_trusted(version: ModelVersion) -> list[Trusted]:
    """Return the trusted attestations of the version whose signer has not been removed."""
    rows = Attestation.objects.filter(
        version=version, state=AttestationState.TRUSTED, signer__removed_at=None
    )
    values: Iterable[tuple[int, bool, dict[str, str]]] = rows.values_list(
        "signer_id", "is_provenance", "facts"
    )
    return [Trusted(signer, is_prov, facts.get("builder", "")) for signer, is_prov, facts in values]


def as_rule(row: SigningRule) -> signing_rules.SigningRequirement:
    """Convert the row to a rule. A removed signer stays among the accepted ones, so that the rule never widens to
    any signer.
    """
    return signing_rules.SigningRequirement(
        name=row.name,
        signer_ids=tuple(signer.pk for signer in row.signers.all()),
        needs_provenance=row.needs_provenance,
        builders=tuple(row.builders),
    )
