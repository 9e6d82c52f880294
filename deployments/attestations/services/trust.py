"""Trusted signers and signing rules. For platform admins: what a team must meet, it cannot loosen."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from django.db import IntegrityError, transaction
from django.db.models import Model as Row

from deployments import audit_actions
from deployments.attestations.domain import signers
from deployments.attestations.domain.signers import SignerInvalid, SignerKind
from deployments.models import Attestation, SigningRule, TrustedSigner, TrustRoot
from deployments.states import Environment
from portal.accounts import policy
from portal.accounts.local import step_up
from portal.accounts.models import Team, User
from portal.audit import trail
from portal.core import clock, identifiers
from portal.core.errors import Conflict, Invalid, NotFound

_LONGEST_NAME: Final = 80
_LONGEST_IDENTITY: Final = 300
_MOST_PATTERNS: Final = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class SignerDraft:
    """The fields of a trusted signer. An empty `team` means that all teams trust it. `trust_root` (a name) and
    `issuer` belong to a keyless identity.
    """

    name: str
    pem: str = ""
    kind: SignerKind = SignerKind.KEY
    identity: str = ""
    team: str = ""
    trust_root: str = ""
    issuer: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SigningRuleDraft:
    """The fields of a signing rule. Empty means any; `signers` are names."""

    name: str
    team: str = ""
    environments: tuple[str, ...] = ()
    signers: tuple[str, ...] = ()
    needs_provenance: bool = False
    builders: tuple[str, ...] = ()


def add_signer(*, actor: User, draft: SignerDraft) -> TrustedSigner:
    policy.require_platform_admin(actor)
    step_up.require(actor)
    team = _team(draft.team)
    check_name(draft.name)
    _check_signer(draft)
    root = _root(draft)
    pem = draft.pem.strip()
    row = TrustedSigner(
        name=draft.name.strip(),
        team=team,
        kind=draft.kind,
        pem=f"{pem}\n" if pem else "",
        identity=draft.identity.strip(),
        issuer=draft.issuer.strip(),
        root=root,
        created_by=actor,
        created_at=clock.now(),
    )
    with transaction.atomic():
        # A root that is removed meanwhile takes its identities with it.
        if root and not TrustRoot.objects.select_for_update().filter(pk=root.pk, removed_at=None):
            raise Conflict(f"{root.name} was removed.", code="root_removed")
        insert(row, f"There is already a signer called “{row.name}”.")
        trail.record(
            actor=actor,
            action=audit_actions.SIGNER_ADDED,
            obj=row,
            team_slug=draft.team,
            after=_signer_values(row),
        )
        verify_again(row.team_id)
    return row


def remove_signer(*, actor: User, signer_id: int) -> None:
    """Remove a trusted signer. Attestations that only this signer made are no longer trusted, at once.

    A rule that names it accepts nobody in its place.
    """
    policy.require_platform_admin(actor)
    row = TrustedSigner.objects.filter(pk=signer_id, removed_at=None).first()
    if row is None:
        raise NotFound(f"There is no trusted signer {signer_id}.")
    with transaction.atomic():
        changed = TrustedSigner.objects.filter(pk=row.pk, removed_at=None).update(
            removed_at=clock.now()
        )
        if not changed:
            raise Conflict(f"{row.name} was already removed.", code="already_removed")
        trail.record(
            actor=actor,
            action=audit_actions.SIGNER_REMOVED,
            obj=row,
            team_slug=row.team.slug if row.team else "",
            before=_signer_values(row),
        )
        verify_again(row.team_id)


def make_rule(*, actor: User, draft: SigningRuleDraft) -> SigningRule:
    """Create a signing rule. It applies to requests from now on; what serves already stays."""
    policy.require_platform_admin(actor)
    step_up.require(actor)
    team = _team(draft.team)
    check_name(draft.name)
    rows = _check_rule(draft, team)
    row = SigningRule(
        name=draft.name.strip(),
        team=team,
        environments=list(draft.environments),
        needs_provenance=draft.needs_provenance,
        builders=list(draft.builders),
        created_by=actor,
        created_at=clock.now(),
    )
    with transaction.atomic():
        insert(row, f"There is already a signing rule called “{row.name}”.")
        row.signers.set(rows)
        trail.record(
            actor=actor,
            action=audit_actions.SIGNING_RULE_MADE,
            obj=row,
            team_slug=draft.team,
            after=_rule_values(row),
        )
    return row


def delete_rule(*, actor: User, rule_id: int) -> None:
    policy.require_platform_admin(actor)
    step_up.require(actor)
    row = SigningRule.objects.filter(pk=rule_id).first()
    if row is None:
        raise NotFound(f"There is no signing rule {rule_id}.")
    with transaction.atomic():
        trail.record(
            actor=actor,
            action=audit_actions.SIGNING_RULE_DELETED,
            obj=row,
            team_slug=row.team.slug if row.team else "",
            before=_rule_values(row),
        )
        row.delete()


def _team(slug: str) -> Team | None:
    team = Team.objects.filter(slug=slug).first() if slug else None
    if slug and team is None:
        raise Invalid(f"There is no team {slug}.", fields={"team": f"there is no team {slug}"})
    return team


def _check_signer(draft: SignerDraft) -> None:
    identity, issuer = draft.identity.strip(), draft.issuer.strip()
    try:
        signers.check(draft.kind, draft.pem, identity, issuer=issuer)
    except SignerInvalid as error:
        raise Invalid(str(error), fields={error.field: str(error)}) from error
    for field, text in (("identity", identity), ("issuer", issuer)):
        if len(text) > _LONGEST_IDENTITY:
            raise Invalid(f"The {field} is too long.", fields={field: "300 characters at most"})


def _root(draft: SignerDraft) -> TrustRoot | None:
    is_keyless = draft.kind == SignerKind.KEYLESS
    if not is_keyless and draft.trust_root:
        raise Invalid(
            "Only a keyless identity has a trust root.", fields={"trust_root": "leave it empty"}
        )
    root = TrustRoot.objects.filter(name=draft.trust_root, removed_at=None).first()
    if is_keyless and root is None:
        problem = (
            f"there is no trust root {draft.trust_root}"
            if draft.trust_root
            else "choose a trust root"
        )
        raise Invalid(f"{problem[:1].upper()}{problem[1:]}.", fields={"trust_root": problem})
    return root if is_keyless else None


def check_name(name: str) -> None:
    if not 1 <= len(name.strip()) <= _LONGEST_NAME:
        raise Invalid("Enter a name.", fields={"name": f"1 to {_LONGEST_NAME} characters"})
    if problem := identifiers.problem_with(name):
        raise Invalid(f"Choose another name: {problem}.", fields={"name": problem})


def _check_rule(draft: SigningRuleDraft, team: Team | None) -> list[TrustedSigner]:
    problems = {}
    if not set(draft.environments) <= set(Environment):
        problems["environments"] = "unknown environment"
    if draft.builders and not draft.needs_provenance:
        problems["builders"] = "only provenance names a builder; require it too"
    if len(draft.builders) > _MOST_PATTERNS or not all(
        1 <= len(name) <= _LONGEST_IDENTITY for name in draft.builders
    ):
        problems["builders"] = f"at most {_MOST_PATTERNS} patterns, none empty"
    rows = list(TrustedSigner.objects.filter(name__in=draft.signers, removed_at=None))
    unknown = sorted(set(draft.signers) - {row.name for row in rows})
    if unknown:
        problems["signers"] = f"there is no {', '.join(unknown)}"
    elif [row for row in rows if row.team_id is not None and row.team != team]:
        problems["signers"] = "a signer of one team can only be required of that team"
    if problems:
        raise Invalid(f"Check {', '.join(sorted(problems))} of the rule.", fields=problems)
    return rows


def insert(row: Row, message: str) -> None:
    try:
        with transaction.atomic():
            row.save(force_insert=True)
    except IntegrityError as error:
        raise Conflict(message, code="name_taken", fields={"name": "taken"}) from error


def verify_again(team_id: int | None) -> None:
    """Make the attestations that a change of trust can concern due now. None means those of all teams.

    One that is not about the bytes stays so, but its signer may differ.
    """
    rows = Attestation.objects.all()
    if team_id is not None:
        rows = rows.filter(version__model__team=team_id)
    rows.update(next_check_at=clock.now())


def _signer_values(row: TrustedSigner) -> dict[str, Any]:
    return {
        "team": row.team.slug if row.team else "all teams",
        "kind": str(row.kind),
        "identity": row.identity,
        "pem": row.pem,
        "root": row.root.name if row.root else "",
        "issuer": row.issuer,
    }


def _rule_values(row: SigningRule) -> dict[str, Any]:
    return {
        "team": row.team.slug if row.team else "all teams",
        "environments": row.environments,
        "signers": sorted(signer.name for signer in row.signers.all()),
        "needs_provenance": row.needs_provenance,
        "builders": row.builders,
    }
