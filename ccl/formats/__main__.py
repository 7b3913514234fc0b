"""``python -m ccl.formats`` writes the JSON Schema that is committed anew."""

from ccl.formats.documents import SCHEMA_FILE, schema_text
from ccl.formats.text import write_text

if __name__ == "__main__":
    write_text(SCHEMA_FILE, schema_text())
