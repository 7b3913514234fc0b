"""TE-CCL: what it is asked, and the schedules that it answers with."""

from interchange.formats.synthesizers.te_ccl import input, schedule

READERS = (input.READER, schedule.READER)
WRITERS = (input.WRITER, schedule.WRITER)
