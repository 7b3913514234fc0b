#!/bin/sh
# Make the virtual environment $1 with the first Python on this machine that is new enough.
set -eu
folder=$1

new_enough() {
    "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null
}

# Debian keeps a part of venv in a package of its own.
has_venv() {
    "$1" -c 'import ensurepip, venv' 2>/dev/null
}

for python in "${PYTHON:-python3}" python3 python3.13 python3.12 python3.11 python3.14 python; do
    new_enough "$python" || continue
    if ! has_venv "$python" && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
        DEBIAN_FRONTEND=noninteractive apt-get install -y -qq python3-venv </dev/null >/dev/null 2>&1 ||
            { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq python3-venv; } </dev/null >/dev/null
    fi
    has_venv "$python" || continue
    printf '\n== %s of %s\n' "$folder" "$("$python" --version)"
    exec "$python" -m venv --clear "$folder"
done
echo "Topoloom needs Python 3.11 or newer with its venv module; found $(python3 --version 2>&1)." \
    "Install one (on Debian: apt install python3-venv), or name it: make PYTHON=/path/to/python" >&2
exit 1
