"""AWS's price list and spot price history. Needs pricing:GetProducts and ec2:DescribeSpotPriceHistory."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection
from datetime import datetime
from decimal import Decimal, InvalidOperation
from typing import Any, Final

from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from fleet.kube.gateways.eks import EksUnavailable, session_for
from fleet.prices.domain.aws_prices import SpotChange
from portal.core import network_failures

# The price list of all regions is served in three; this is the oldest.
_PRICE_LIST_REGION: Final = "us-east-1"
_LINUX: Final = "Linux/UNIX"
_CONFIG: Final = Config(connect_timeout=3, read_timeout=20, retries={"max_attempts": 3})
# One answer has at most a hundred products; filters leave one or two.
_MOST_PRODUCTS: Final = 200


class AwsUnavailable(Exception):
    """AWS refused or did not answer; the message names the call."""


class AwsPrices:
    """The prices of a region, read with the portal's own role or one that it assumes."""

    def __init__(self, region: str, role_arn: str = "") -> None:
        try:
            self._session: Any = session_for(region, role_arn)
        except EksUnavailable as error:
            raise AwsUnavailable(str(error)) from error
        self._region = region

    def products(self, instance_type: str) -> list[str]:
        """Return the products of a Linux instance on shared hardware, each a JSON text. Raises AwsUnavailable."""
        filters = {
            "instanceType": instance_type,
            "regionCode": self._region,
            "operatingSystem": "Linux",
            "tenancy": "Shared",
            "preInstalledSw": "NA",
            "capacitystatus": "Used",
            "marketoption": "OnDemand",
        }
        try:
            client = self._session.client("pricing", region_name=_PRICE_LIST_REGION, config=_CONFIG)
            pages = client.get_paginator("get_products").paginate(
                ServiceCode="AmazonEC2",
                Filters=[
                    {"Type": "TERM_MATCH", "Field": field, "Value": value}
                    for field, value in filters.items()
                ],
                PaginationConfig={"MaxItems": _MOST_PRODUCTS},
            )
            return [str(item) for page in pages for item in page["PriceList"]]
        except (BotoCoreError, ClientError, KeyError) as error:
            raise AwsUnavailable(
                f"pricing:GetProducts failed: {network_failures.describe(error)}"
            ) from error

    def spot_changes(
        self, instance_types: Collection[str], *, start: datetime, end: datetime
    ) -> dict[str, list[SpotChange]]:
        """Return the changes of each type in [start, end], and the last before it. Raises AwsUnavailable."""
        changes: dict[str, list[SpotChange]] = defaultdict(list)
        try:
            client = self._session.client("ec2", region_name=self._region, config=_CONFIG)
            pages = client.get_paginator("describe_spot_price_history").paginate(
                InstanceTypes=sorted(instance_types),
                ProductDescriptions=[_LINUX],
                StartTime=start,
                EndTime=end,
            )
            for page in pages:
                for row in page["SpotPriceHistory"]:
                    price = Decimal(row["SpotPrice"])
                    change = SpotChange(row["AvailabilityZone"], row["Timestamp"], price)
                    changes[row["InstanceType"]].append(change)
        except (BotoCoreError, ClientError, KeyError, InvalidOperation) as error:
            raise AwsUnavailable(
                f"ec2:DescribeSpotPriceHistory failed: {network_failures.describe(error)}"
            ) from error
        return changes
