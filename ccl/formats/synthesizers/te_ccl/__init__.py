"""TE-CCL: what it is asked, and the schedules that it answers with."""

from ccl.formats.synthesizers.te_ccl import input as asked
from ccl.formats.synthesizers.te_ccl import schedule

READERS = (asked.READER, schedule.READER)
WRITERS = (asked.WRITER, schedule.WRITER)
