"""The drawing and its files: edits, clusters, imports, exports, links."""
