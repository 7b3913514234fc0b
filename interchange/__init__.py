"""Files of other tools, and programs: read, written, lowered, lifted, linted, executed and run."""
