"""Distances in a network, by networkx."""

from __future__ import annotations

import networkx


def graph_of(topology):
    """Return the one-way links as a graph."""
    graph: networkx.DiGraph[str] = networkx.DiGraph()
    graph.add_nodes_from(each.name for each in topology.devices)
    graph.add_edges_from(each.ends for each in topology.links)
    return graph


def diameter(topology):
    """Return the links between the two devices that are furthest apart."""
    return networkx.diameter(graph_of(topology))


def mean_distance(topology):
    """Return the links between two different devices on average."""
    return networkx.average_shortest_path_length(graph_of(topology))


def degrees(topology):
    """Return how many links leave GPUs, parallel ones singly."""
    return {sum(link.count for link in topology.links_out[name]) for name in topology.ranks}
