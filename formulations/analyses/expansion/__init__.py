"""Capacity expansion: the cheapest upgrades of a cluster for collectives."""
