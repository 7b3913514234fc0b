"""``python -m ccl.serialization`` writes the JSON Schema that is committed anew."""

from ccl.serialization.documents import SCHEMA_FILE, schema_text
from ccl.serialization.text import write_text

if __name__ == "__main__":
    write_text(SCHEMA_FILE, schema_text())
