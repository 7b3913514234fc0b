"""TE-CCL: its input and the schedules that it prints."""

from interchange.formats.synthesizers.te_ccl import input, schedule

READERS = (input.READER, schedule.READER)
WRITERS = (input.WRITER, schedule.WRITER)
