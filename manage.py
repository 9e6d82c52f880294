#!/usr/bin/env python
"""Slipway's command line."""

from portal.__main__ import main

if __name__ == "__main__":
    main()
