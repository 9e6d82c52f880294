"""A file that clients send to the object store in parts."""

from __future__ import annotations

from django.db import models


class MultipartFile(models.Model):
    """A file that is uploaded in parts. `upload_id` names the open multipart upload; empty before the first
    part is signed and after the parts were assembled. `s3_version_id` is empty until then. Until
    `assembly_deadline_at` the store may be assembling the parts, and is not asked to again.
    """

    size_bytes = models.BigIntegerField()
    part_size_bytes = models.BigIntegerField(default=0)
    upload_id = models.CharField(max_length=300, blank=True, default="")
    assembly_deadline_at = models.DateTimeField(null=True)
    s3_version_id = models.CharField(max_length=200, blank=True, default="")

    class Meta:
        abstract = True

    # Of the file as people know it, and of its object.
    path: models.CharField[str, str]

    @property
    def key(self) -> str:
        raise NotImplementedError
