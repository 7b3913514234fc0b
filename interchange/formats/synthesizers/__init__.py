"""Files of programs that find schedules."""
