#!/bin/sh
# Make a virtual environment with this project in it: hack/setup.sh DIR [EXTRA]
# EXTRA is "dev" for tests and checks, "backup,ui" for what `make run` needs.
set -eu

dir=$1
extra=${2:+[$2]}

fail() {
    echo "setup: $1" >&2
    exit 1
}

python=${PYTHON:-}
# the system's first: distributions build theirs with optimizations by profile, pyenv by default does not, which takes
# a quarter more CPU. Its venv is often a package of its own, so without it others are asked.
system=${SYSTEM_PYTHON-/usr/bin/python3}
if [ -z "$python" ] && "$system" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
    python=$system
fi
if [ -z "$python" ]; then
    for candidate in python3.11 python3.12 python3.13 python3.14 python3; do
        if "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
            python=$candidate
            break
        fi
    done
fi
[ -n "$python" ] || fail "Python 3.11 or newer is needed and was not found; install it (Debian: apt-get install python3) \
or name one: make PYTHON=/path/to/python3.11 ..."
version=$("$python" --version 2>&1) || fail "PYTHON=$python does not start"
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || fail "PYTHON=$python is $version; 3.11 or newer is needed"

"$python" -c 'import venv, ensurepip' 2>/dev/null || fail "$python has no venv or pip; install them \
(Debian: apt-get install python3-venv python3-pip)"

# two installations into one directory at once would break each other, and a later one the program that already runs
stamp=$dir/.setup-${2:-}
mkdir -p "$dir" || fail "cannot create $dir"
exec 9<"$dir"
if ! "$python" -c 'import fcntl; fcntl.flock(9, fcntl.LOCK_EX | fcntl.LOCK_NB)' 2>/dev/null; then
    echo "setup: waiting for another installation into $dir"
    "$python" -c 'import fcntl; fcntl.flock(9, fcntl.LOCK_EX)'
    sources=${0%/*}/..
    if [ -f "$stamp" ] && [ -z "$(find "$sources/setup.cfg" "$sources/pyproject.toml" "$sources/hack/dev.lock" "$0" -newer "$stamp")" ]; then
        exit 0
    fi
fi
rm -f "$stamp"

is_usable() {
    "$dir/bin/python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' && "$dir/bin/python" -m pip --version
}

if ! is_usable >/dev/null 2>&1; then
    # an environment that an interrupt left half made, or whose Python is too old or was removed, is replaced; other
    # files are kept
    clear=
    [ ! -f "$dir/pyvenv.cfg" ] || clear=--clear
    trap 'fail "interrupted; run the same command again"' INT TERM
    # venv answers an interrupt with a traceback
    complaint=$("$python" -m venv $clear "$dir" 2>&1) || fail "$complaint"
    trap - INT TERM
    "$dir/bin/python" -m pip --version >/dev/null 2>&1 || fail "$python made $dir without pip; install python3-venv \
and python3-pip (Debian: apt-get install python3-venv python3-pip)"
fi
echo "setup: installing this project into $dir; the first time takes a minute or two"
quiet=-q
[ ! -t 1 ] || quiet=
# maintainers get the versions that the checks passed with; users get the latest that fit their Python
locked=
[ "${2:-}" != dev ] || locked=--constraint=hack/dev.lock
"$dir/bin/python" -m pip install $quiet --disable-pip-version-check $locked --editable ".$extra"
: >"$stamp"
