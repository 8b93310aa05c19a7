"""Dependency trees: `DependencyParser`."""
