"""Checks of the environment that a request enters: its place, its callers, and what was shown before."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from deployments.environments.domain import environment_rules
from deployments.environments.domain.environment_rules import EnvironmentRules
from deployments.environments.domain.promotion import Golden, PromotionEvidence
from deployments.environments.selectors import addresses, promotion
from deployments.environments.selectors import environment_rules as rule_selectors
from deployments.models import GoldenRequest, ModelVersion
from deployments.preflight.domain.checks import Check
from deployments.spec.domain.serving_spec import ServingSpec
from deployments.states import ChangeKind

ENVIRONMENT: Final = "Environment"
PROMOTION: Final = "Promotion"
GOLDEN: Final = "Golden requests"
CALLERS: Final = "Callers"
# A roll back returns to what was approved before, and must not wait.
_BRINGS_VERSION: Final = (ChangeKind.DEPLOY, ChangeKind.CANARY)
_OPENS_ADDRESS: Final = (*_BRINGS_VERSION, ChangeKind.START)


def check_place(
    *, environment: str, cluster_id: int, cluster: str, namespace: str, name: str
) -> list[Check]:
    """Check the environment and address of something that does not exist yet. No check where nothing restricts
    the environment.
    """
    admitted = rule_selectors.list_admitted(cluster_id)
    if admitted and environment not in admitted:
        only = " and ".join(admitted)
        detail = f"{cluster} is reserved for {only}, and this is a request for {environment}."
        fix = f"Choose {' or '.join(admitted)}, or another cluster."
        return [Check(ENVIRONMENT, ok=False, detail=detail, fix=fix)]
    kept = addresses.environment_of_address(cluster_id=cluster_id, namespace=namespace, name=name)
    if kept and kept != environment:
        detail = f"{namespace}/{name} on {cluster} served in {kept}, so its address stays there."
        fix = f"Choose {kept}, or another name."
        return [Check(ENVIRONMENT, ok=False, detail=detail, fix=fix)]
    if admitted:
        detail = f"{cluster} admits {environment}."
        return [Check(ENVIRONMENT, ok=True, detail=detail)]
    return []


def check_change(
    *,
    environment: str,
    team_id: int,
    kind: str,
    version: ModelVersion,
    spec: ServingSpec,
    additional: Sequence[ModelVersion] = (),
    current: ServingSpec | None = None,
) -> list[Check]:
    """Check a change against the rules of its environment. No check for what they do not ask for. `additional`
    are the versions of multi-model serving; `current` is the spec that serves at the address now, if any
    does.
    """
    rules = rule_selectors.in_force(environment, team_id)
    checks: list[Check] = []
    if rules.callers_need_key and _may_open(kind, current):
        checks.append(_check_callers(environment, spec))
    if kind in _BRINGS_VERSION and (rules.promoted_from or rules.golden_required):
        versions = (version, *additional)
        checks += _check_promotion(
            environment, rules, team_id=team_id, kind=kind, versions=versions
        )
    return checks


def check_open_address(*, environment: str, team_id: int) -> list[Check]:
    """Check an address that cannot have keys. No check where the rules allow an open one."""
    if not rule_selectors.in_force(environment, team_id).callers_need_key:
        return []
    fix = "Call the deployments with their keys instead: a pipeline takes none."
    return [Check(ENVIRONMENT, ok=False, detail=_no_open_address(environment), fix=fix)]


def _may_open(kind: str, current: ServingSpec | None) -> bool:
    """Return whether the change may open a closed address. A roll back must not wait, so one that keeps an open
    address open does not count.
    """
    is_keyed = current is not None and not current.network.access_kind.opens_to_everyone
    return kind in _OPENS_ADDRESS or (kind == ChangeKind.ROLL_BACK and is_keyed)


def _check_callers(environment: str, spec: ServingSpec) -> Check:
    if not spec.network.access_kind.opens_to_everyone:
        return Check(CALLERS, ok=True, detail=spec.network.access_kind.requirement)
    fix = "Set Callers (network.access) to callers with a key."
    return Check(CALLERS, ok=False, detail=_no_open_address(environment), fix=fix)


def _no_open_address(environment: str) -> str:
    return f"The rules of {environment} allow no public address."


def _check_promotion(
    environment: str,
    rules: EnvironmentRules,
    *,
    team_id: int,
    kind: str,
    versions: Sequence[ModelVersion],
) -> Iterator[Check]:
    """Check the promotion of versions. Golden requests are those of the first version: the others get none."""
    version, *additional = versions
    source = environment_rules.source_of(environment, rules)
    evidence = promotion.evidence_of(version, team_id=team_id, source=source) if source else None
    if rules.promoted_from:
        checks = [_check_finished(version, source, evidence)]
        for further in additional:
            shown = promotion.evidence_of_loaded(further, team_id=team_id, source=source)
            checks.append(_check_finished(further, source, shown))
        yield next((check for check in checks if check.is_refusal), checks[0])
    if rules.golden_required:
        # A rollout sends them before traffic; a first deployment gets all requests at once.
        is_awaited = bool(rules.promoted_from) or (kind == ChangeKind.DEPLOY and bool(source))
        yield _check_golden(version, source if is_awaited else "", evidence)


def _check_finished(
    version: ModelVersion, source: str, evidence: PromotionEvidence | None
) -> Check:
    if evidence is None:
        detail = f"{version.label} never served in {source}."
        fix = f"Deploy it in {source} first."
        return Check(PROMOTION, ok=False, detail=detail, fix=fix)
    where = f"{evidence.deployment} r{evidence.revision_number} in {source}"
    if not evidence.is_finished:
        detail = f"{version.label} is {where}: {evidence.progress}."
        return Check(PROMOTION, ok=False, detail=detail, fix="Wait until it is completed there.")
    return Check(
        PROMOTION, ok=True, detail=f"{version.label} served as {where}: {evidence.progress}."
    )


def _check_golden(version: ModelVersion, source: str, evidence: PromotionEvidence | None) -> Check:
    """Check the golden requests of a version. An empty `source` means they only have to exist."""
    count = GoldenRequest.objects.filter(model=version.model_id, retired_at=None).count()
    if not count:
        fix = "Save requests with known answers on the page of the model."
        detail = f"{version.model} has no golden requests."
        return Check(GOLDEN, ok=False, detail=detail, fix=fix)
    if not source:
        return Check(GOLDEN, ok=True, detail=f"{count} are sent before traffic.")
    if evidence is None:
        detail = f"{version.label} never answered golden requests in {source}."
        fix = f"Deploy it in {source} first."
        return Check(GOLDEN, ok=False, detail=detail, fix=fix)
    detail = (
        f"{evidence.deployment} r{evidence.revision_number} in {source}: {evidence.golden_detail}."
    )
    if evidence.golden == Golden.PASSED:
        return Check(GOLDEN, ok=True, detail=detail)
    fix = (
        "Request a version that passes, or correct the golden request."
        if evidence.golden == Golden.FAILED
        else f"The quality watch sends them every 15 minutes while it serves in {source}."
    )
    return Check(GOLDEN, ok=False, detail=detail, fix=fix)
