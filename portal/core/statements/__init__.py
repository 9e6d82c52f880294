"""Statements of PostgreSQL beside those of the ORM, and what they return."""
