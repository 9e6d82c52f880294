"""The identity of this installation: one row, made once."""

from __future__ import annotations

from django.db import models


class Installation(models.Model):
    """The identity of this installation on clusters. Namespaces and objects on clusters carry `identity`.

    `fence` rises with each write to a namespace, which then carries it: a namespace with a higher one was written
    by a database that this one is an older copy of. `fence_nonce` distinguishes two copies that reached the same
    number. `database` is the fingerprint of the database in which the row was made or adopted. `suspended_reason`
    is empty while the portal may write.
    """

    identity = models.UUIDField()
    database = models.CharField(max_length=200)
    fence = models.BigIntegerField(default=0)
    fence_nonce = models.CharField(max_length=16, blank=True, default="")
    suspended_reason = models.TextField(blank=True, default="")
    created_at = models.DateTimeField()

    def __str__(self) -> str:
        return str(self.identity)
