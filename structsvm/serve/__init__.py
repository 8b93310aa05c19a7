"""Predictions over HTTP, and the protocols of annotation tools: ``structsvm serve MODEL``.

The server needs the extra `annotate`.
"""
