"""Cursor pages: stable under inserts and cheap at any depth."""

from __future__ import annotations

from rest_framework.pagination import CursorPagination


class CursorPage(CursorPagination):
    page_size = 50
    max_page_size = 200
    page_size_query_param = "limit"
    ordering = "-id"
