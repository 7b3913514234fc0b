"""The fluid steady state: the graph of rates and the demands of a collective on it."""
