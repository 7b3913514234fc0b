"""TE-CCL: what it is asked, and the schedules that it answers with."""

from interchange.formats.synthesizers.te_ccl import input as asked
from interchange.formats.synthesizers.te_ccl import schedule

READERS = (asked.READER, schedule.READER)
WRITERS = (asked.WRITER, schedule.WRITER)
