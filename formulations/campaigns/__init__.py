"""Many solves over hours: sweeps over candidate clusters, and the catalog of solved plans."""
