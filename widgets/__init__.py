"""Views of a cluster and its schedule for notebooks and for the designer."""
