"""Whether a pipeline can run as requested: the same checks for the page and the API."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from deployments.manifests.selectors import rendering
from deployments.models import Deployment, Pipeline
from deployments.pipelines.domain import rules
from deployments.pipelines.domain.descriptions import reached_through
from deployments.pipelines.domain.pipeline_spec import NodeKind, PipelineSpec
from deployments.pipelines.domain.rules import CallableDeployment
from deployments.pipelines.selectors import pipelines, protected
from deployments.pipelines.selectors.pipelines import RenderedPipeline
from deployments.preflight.domain.checks import Check
from deployments.preflight.services import dry_run, environment_checks
from deployments.spec.domain import kubernetes_names
from fleet.clusters.domain import serving_policy
from fleet.clusters.domain.capabilities import Capabilities
from portal.core.definitions import Rejected
from portal.core.errors import Invalid

CLUSTER: Final = "Cluster"
NAME: Final = "Name"
STEPS: Final = "Steps"
KEYS: Final = "Keys"
SPLITTER: Final = "Splitter"
_FIELDS: Final = {
    environment_checks.ENVIRONMENT: "environment",
    CLUSTER: "cluster",
    NAME: "name",
    STEPS: "nodes",
    SPLITTER: "nodes",
    "Server dry-run": "nodes",
}
_VERSION: Final = re.compile(r"v?(\d+)\.(\d+)")
# https://github.com/kserve/kserve/pull/5489
_SOUND_SPLITTER: Final = (0, 20)


@dataclass(frozen=True, slots=True)
class Examined:
    """The checks of a pipeline. `fields` has the problems by path, such as nodes.0.steps.1.weight. `yaml` is
    empty after a refusal.
    """

    checks: tuple[Check, ...]
    fields: Mapping[str, str]
    yaml: str = ""

    @property
    def is_ok(self) -> bool:
        return not any(check.is_refusal for check in self.checks)


def examine(pipeline: Pipeline, rendered: RenderedPipeline) -> Examined:
    """Run all checks. `pipeline` may be an unsaved row. The cluster dry-runs only what passed the other checks."""
    spec = rendered.spec
    checks = [*_of_environment(pipeline, spec), _of_cluster(pipeline), *_of_pod_security(pipeline)]
    checks.append(_of_name(pipeline))
    fields: dict[str, str] = {}
    checks += _of_steps(spec, rendered.members, fields)
    checks += _of_keys(rendered)
    if any(node.kind == NodeKind.SPLITTER for node in spec.nodes):
        checks.append(_of_splitter(pipeline))
    if any(check.is_refusal for check in checks):
        return Examined(tuple(checks), fields | _fields_of(checks))
    checks += dry_run.check(
        cluster_id=pipeline.cluster_id,
        namespace=pipeline.namespace,
        manifests=rendered.manifests,
    )
    return Examined(tuple(checks), _fields_of(checks), rendered.to_yaml())


def require_ok(examined: Examined) -> None:
    """Require that no check refuses. Raises Invalid with every refusal and its fix."""
    require_all(examined.checks, examined.fields)


def require_all(checks: Sequence[Check], fields: Mapping[str, str] | None = None) -> None:
    """Require that no check refuses. Raises Invalid with every refusal and its fix."""
    if refusals := [check for check in checks if check.is_refusal]:
        problems = (f"{check.name}: {check.detail} {check.fix}".strip() for check in refusals)
        raise Invalid(" ".join(problems), fields=fields or _fields_of(checks))


def _fields_of(checks: Iterable[Check]) -> dict[str, str]:
    return {
        _FIELDS[check.name]: f"{check.detail} {check.fix}".strip()
        for check in checks
        if check.is_refusal
    }


def _of_keys(rendered: RenderedPipeline) -> list[Check]:
    """Check that the pipeline can call its protected deployments. Empty if it calls none."""
    names = rendered.protected
    if not names:
        return []
    detail = f"It calls {', '.join(names)} with a key of its own. {reached_through(names)}"
    return [Check(KEYS, ok=True, detail=detail)]


def _of_environment(pipeline: Pipeline, spec: PipelineSpec) -> list[Check]:
    """Check the rules of the environment: the place of a new pipeline, and the open address of one that does
    not run or newly calls protected deployments. What runs already goes on, whatever the rules say now.
    """
    is_new = not pipeline.desired_generation
    checks: list[Check] = []
    if is_new:
        checks += environment_checks.check_place(
            environment=pipeline.environment,
            cluster_id=pipeline.cluster_id,
            cluster=pipeline.cluster.name,
            namespace=pipeline.namespace,
            name=pipeline.name,
        )
    if is_new or pipeline.is_stopped or protected.list_added(pipeline, spec):
        checks += environment_checks.check_open_address(
            environment=pipeline.environment, team_id=pipeline.team_id
        )
    return checks


def _of_pod_security(pipeline: Pipeline) -> list[Check]:
    """Check Pod Security: KServe's router has no seccomp profile (as of 0.20), and nothing of a graph sets one."""
    used = rendering.policy_in_force(rendering.policy_of(pipeline))
    is_refused = used.pod_security in ("", serving_policy.RESTRICTED)
    if pipeline.cluster.kind == rendering.LOCAL or not is_refused:
        return []
    where = pipeline.cluster.name
    detail = (
        f"Namespaces on {where} enforce Pod Security restricted, which refuses KServe's router."
    )
    fix = "A platform admin sets Pod Security to baseline under Admin, Clusters, Serving."
    return [Check(CLUSTER, ok=False, detail=detail, fix=fix)]


def _of_cluster(pipeline: Pipeline) -> Check:
    offer = pipelines.offer_for(Capabilities.from_json(pipeline.cluster.capabilities))
    where = pipeline.cluster.name
    if offer.ok:
        return Check(CLUSTER, ok=True, detail=f"{where} runs pipelines.")
    fix = "Choose another cluster, or ask a platform admin." if offer.ok is False else ""
    return Check(CLUSTER, ok=offer.ok, detail=f"{where}: {offer.why}", fix=fix)


def _of_name(pipeline: Pipeline) -> Check:
    """Check the name. A deployment of the same name would have the same address, so both share one set of names."""
    problem = kubernetes_names.problem_with(pipeline.name, namespace=pipeline.namespace)
    if problem:
        return Check(NAME, ok=False, detail=problem.replace("the deployment", "the pipeline"))
    context = {"cluster_id": pipeline.cluster_id, "namespace": pipeline.namespace}
    rows = Deployment.objects.filter(**context, name=pipeline.name, is_retired=False)
    others = Pipeline.objects.filter(**context, name=pipeline.name, is_retired=False)
    others = others.exclude(pk=pipeline.pk)
    if rows.exists() or others.exists():
        detail = f"{pipeline.namespace}/{pipeline.name} already exists on {pipeline.cluster.name}."
        return Check(NAME, ok=False, detail=detail, fix="Choose another name.")
    return Check(NAME, ok=True, detail=f"{pipeline.name} is available.")


def _of_steps(
    spec: PipelineSpec, members: Mapping[str, CallableDeployment], fields: dict[str, str]
) -> list[Check]:
    try:
        rules.check(spec, members)
    except Rejected as error:
        fields |= error.fields
        return [Check(STEPS, ok=False, detail=error.message)]
    names = ", ".join(spec.deployments)
    unknown = [name for name in spec.deployments if members[name].inputs is None]
    if unknown and any(node.kind != NodeKind.SWITCH for node in spec.nodes):
        detail = (
            f"What {', '.join(unknown)} takes is not known. Test that one request works for all."
        )
        return [Check(STEPS, ok=None, detail=detail)]
    return [Check(STEPS, ok=True, detail=f"{names} accept the same requests.")]


def _of_splitter(pipeline: Pipeline) -> Check:
    version = Capabilities.from_json(pipeline.cluster.capabilities).feature("kserve").version
    release = _VERSION.match(version)
    if release is None:
        detail = "The KServe version is not known. Before 0.20 its splitter drops 1% of requests."
        is_local = pipeline.cluster.kind == rendering.LOCAL
        return Check(SPLITTER, ok=True if is_local else None, detail=_LOCAL if is_local else detail)
    if (int(release[1]), int(release[2])) < _SOUND_SPLITTER:
        detail = f"The splitter of KServe {version} drops about 1% of requests."
        fix = "Upgrade KServe to 0.20, or split traffic by a canary of one deployment."
        return Check(SPLITTER, ok=False, detail=detail, fix=fix)
    return Check(SPLITTER, ok=True, detail=f"The splitter of KServe {version} drops no requests.")


_LOCAL: Final = "The local cluster's own splitter drops no requests."
