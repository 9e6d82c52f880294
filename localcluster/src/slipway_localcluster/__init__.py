"""Embedded development cluster: a subset of the Kubernetes API and the controllers behind it.

A stand-in for development and tests, never for production. Product code talks to it over HTTPS
only and never imports it. docs/localcluster.md lists what it supports and what it leaves out.
"""
