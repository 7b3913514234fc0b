"""Child processes: a request, progress, a result; lifelines, limits of time and memory."""
