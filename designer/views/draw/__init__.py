"""Drawing: the gallery, the inspector, tables, files in and out, links that carry a page."""
