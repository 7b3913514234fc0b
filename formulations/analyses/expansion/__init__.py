"""Where the next dollar of bandwidth goes: the cheapest upgrades of a cluster for collectives."""
