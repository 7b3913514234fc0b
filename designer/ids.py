"""Names of the components that callbacks wire together."""

from __future__ import annotations

# What is drawn.
CANVAS = "canvas"
TABLE = "table"
VIEW = "view"
SORTING = "sorting"
NAME = "topology-name"
COUNTS = "counts"
HOME = "home-drawing"
NOTES = "notifications"

# What is asked.
COLLECTIVE = "collective"
SIZE = "size"
CHUNKS = "chunks"
ROOT = "root"
ROOT_BOX = "root-box"
FORMULATION = "formulation"
OPTIONS = "options"
OPTIONS_FORM = "options-form"
OPTIONS_OPEN = "options-open"
OPTIONS_DRAWER = "options-drawer"
OPTIONS_RESET = "options-reset"
TIME_LIMIT = "time-limit"
GAP = "gap-asked"
REQUEST = "request"
PROBLEM = "problem-request"
CUSTOM = "custom-collective"

# What is known before a solve.
ASSESSMENT = "assessment"
BOUNDS = "bounds"
CUT = "cut-shown"
TROUBLE = "trouble"

# A solve.
SOLVE = "solve"
CANCEL = "cancel"
JOB = "job"
TICK = "tick"
PROGRESS = "progress-line"
CONVERGENCE = "convergence"
CONVERGENCE_BOX = "convergence-box"
RESULT = "result"
SUMMARY = "summary"
SCHEDULE = "schedule"
LOAD = "link-load"
LOAD_BOX = "link-load-box"
LOAD_DATA = "link-load-data"
MATHEMATICS = "mathematics"
MATHEMATICS_OPEN = "mathematics-open"
MATHEMATICS_TEXT = "mathematics-text"

# Panels.
INSPECTOR = "inspector"
LINK_TYPE = "link-type"
GALLERY_SEARCH = "gallery-search"
GALLERY_LIST = "gallery-list"
GALLERY_DIALOG = "gallery-dialog"
GALLERY_FORM = "gallery-form"
GALLERY_ENTRY = "gallery-entry"
GALLERY_OPEN = "gallery-open"
SHORTCUTS = "shortcuts"
SHORTCUTS_OPEN = "shortcuts-open"
SCHEME = "scheme"

# Files.
UPLOAD = "upload"
SAVE = "save"
DOWNLOAD = "download"
NEW = "new"
