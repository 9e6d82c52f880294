"""The AWS policies of an installation: what the portal's calls need, and nothing else.

A test walks over every AWS call in the code and compares it with these.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from deployments.batch.domain import places
from deployments.registry.domain import object_keys
from portal.audit import anchor_store

_OBJECTS: Final = (
    "s3:AbortMultipartUpload",
    "s3:DeleteObject",
    "s3:DeleteObjectVersion",
    "s3:GetObject",
    "s3:GetObjectVersion",
    "s3:ListMultipartUploadParts",
    "s3:PutObject",
    "s3:PutObjectLegalHold",
    "s3:PutObjectVersionTagging",
)
_BUCKET: Final = (
    "s3:GetBucketObjectLockConfiguration",
    "s3:ListBucket",
    "s3:ListBucketMultipartUploads",
    "s3:ListBucketVersions",
)
# Read by `manage.py doctor` only.
_BUCKET_SETTINGS: Final = (
    "s3:GetBucketCORS",
    "s3:GetBucketPolicy",
    "s3:GetBucketVersioning",
    "s3:GetEncryptionConfiguration",
    "s3:GetLifecycleConfiguration",
)
_ANCHORS: Final = ("s3:GetObjectVersion", "s3:PutObject", "s3:PutObjectRetention")
_PRICES: Final = ("ec2:DescribeSpotPriceHistory", "pricing:GetProducts")

_NODE_GROUPS: Final = ("eks:DescribeNodegroup", "eks:UpdateNodegroupConfig")


def portal(
    *,
    bucket: str,
    eks: Sequence[str] = (),
    assumed: Sequence[str] = (),
    simulated: Sequence[str] = (),
    imports: Sequence[str] = (),
    prometheus: Sequence[str] = (),
) -> dict[str, Any]:
    """Return the IAM policy of the portal's pods. `eks`, `assumed`, `simulated` and `prometheus` are ARNs of
    clusters, roles and workspaces; `imports` names buckets that models are imported from.
    """
    arn = f"arn:aws:s3:::{bucket}"
    prefixes = ("uploads/", object_keys.REPOSITORIES, places.TEAMS, places.WORK)
    written = [f"{arn}/{prefix}*" for prefix in prefixes]
    statements = [
        _allow("Bucket", (*_BUCKET, *_BUCKET_SETTINGS), [arn]),
        _allow("Objects", _OBJECTS, written),
        _allow("Anchors", _ANCHORS, [f"{arn}/{anchor_store.PREFIX}*"]),
        _allow("Prices", _PRICES, ["*"]),
        _allow("Clusters", ("eks:DescribeCluster", "eks:ListNodegroups"), eks),
        _allow("NodeGroups", _NODE_GROUPS, [_groups_of(arn) for arn in eks]),
        _allow("RolesOfClusters", ("sts:AssumeRole",), assumed),
        _allow("CheckOfRoles", ("iam:SimulatePrincipalPolicy",), simulated),
        _allow("Prometheus", ("aps:QueryMetrics",), prometheus),
        _allow("ListOfImports", ("s3:ListBucket",), [f"arn:aws:s3:::{name}" for name in imports]),
        _allow(
            "Imports",
            ("s3:GetObject", "s3:GetObjectVersion"),
            [f"arn:aws:s3:::{name}/*" for name in imports],
        ),
    ]
    return _document([statement for statement in statements if statement["Resource"]])


def _groups_of(cluster: str) -> str:
    """Return the ARN of all node groups of a cluster."""
    return f"{cluster.replace(':cluster/', ':nodegroup/', 1)}/*/*"


def serving(*, bucket: str, team: str) -> dict[str, Any]:
    """Return the IAM policy of a team's pods: its own models, and nothing of other teams."""
    arn, prefix = f"arn:aws:s3:::{bucket}", object_keys.team_prefix(team)
    listing = _allow("List", ("s3:ListBucket",), [arn])
    listing["Condition"] = {"StringLike": {"s3:prefix": f"{prefix}*"}}
    return _document([_allow("Read", ("s3:GetObject",), [f"{arn}/{prefix}*"]), listing])


def _allow(name: str, actions: Sequence[str], resources: Sequence[str]) -> dict[str, Any]:
    return {
        "Sid": name,
        "Effect": "Allow",
        "Action": sorted(actions),
        "Resource": list(resources),
    }


def _document(statements: list[dict[str, Any]]) -> dict[str, Any]:
    return {"Version": "2012-10-17", "Statement": statements}
