#!/bin/sh
# Prints the newest Python from 3.11 to 3.13 that really runs: a version manager may leave names behind that do not.
# PYTHON names the only one to try.
for name in ${PYTHON:-python3.13 python3.12 python3.11 python3 python}; do
    path=$(command -v "$name") || continue
    if "$path" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 14))' >/dev/null 2>&1; then
        echo "$path"
        exit 0
    fi
done
echo "perframe needs Python 3.11, 3.12 or 3.13${PYTHON:+, and $PYTHON is none}; name one: make PYTHON=/path/to/python3" >&2
exit 1
