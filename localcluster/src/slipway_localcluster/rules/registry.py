"""The rules of each kind."""

from collections.abc import Callable, Iterator, Mapping

from slipway_localcluster import kinds
from slipway_localcluster.errors import Cause, JsonObject
from slipway_localcluster.rules import (
    autoscaling,
    claims,
    contents,
    jobs,
    namespaced_limits,
    pods,
    policies,
    services,
    workloads,
)

FIND_FAULTS: Mapping[kinds.Kind, Callable[[JsonObject], Iterator[Cause]]] = {
    kinds.CLAIM: claims.find_claim_faults,
    kinds.CONFIG_MAP: contents.find_config_map_faults,
    kinds.DEPLOYMENT: workloads.find_deployment_faults,
    kinds.JOB: jobs.find_job_faults,
    kinds.HPA: autoscaling.find_autoscaler_faults,
    kinds.LIMIT_RANGE: namespaced_limits.find_limit_range_faults,
    kinds.NETWORK_POLICY: policies.find_network_policy_faults,
    kinds.PDB: policies.find_budget_faults,
    kinds.POD: pods.find_pod_faults,
    kinds.REPLICA_SET: workloads.find_replica_set_faults,
    kinds.RESOURCE_QUOTA: namespaced_limits.find_quota_faults,
    kinds.SECRET: contents.find_secret_faults,
    kinds.SERVICE: services.find_service_faults,
}
