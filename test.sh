#!/usr/bin/env bash
# Passes the tests of all modules of this repository, with the race detector.
#
#   ./test.sh                                everything
#   ./test.sh -short                         without what takes long: servers and clients
#                                            in other processes, long random histories
#   ./test.sh -count=1 -v                    flags of go test, for every module
#   ./test.sh -run TestMove ./internal/...   packages, wherever a module has them
#
# It needs Go and a C compiler. First it says which parts are skipped here, and
# why; everything after that is go test's own output.
set -euo pipefail
cd "$(dirname "$0")"

flags=() packages=() short=
for arg in "$@"; do
  case $arg in
    . | ./*) packages+=("$arg") ;;
    -short | -short=true) flags+=("$arg") short=-short ;;
    *) flags+=("$arg") ;;
  esac
done
if [ ${#packages[@]} -eq 0 ]; then packages=(./...); fi

# folders prints the folders of the files that find selects, sorted.
folders() {
  find . \( -name node_modules -o -name testdata -o -name .cache \) -prune -o "$@" -exec dirname {} \; | sort -u
}

# covers tells whether a pattern of packages stands for a folder.
covers() {
  [ "$1" = "$2" ] || { [[ $1 == */... ]] && [[ $2/ == "${1%...}"* ]]; }
}

# module_of prints the module that a folder belongs to.
module_of() {
  local dir=$1
  until [ -f "$dir/go.mod" ] || [ "$dir" = . ]; do dir=$(dirname "$dir"); done
  echo "$dir"
}

# Parts of a package's tests may need what is not installed. Such a package has a
# TestPrerequisites that is skipped with the reason.
for dir in $(folders -name '*_test.go' -exec grep -q '^func TestPrerequisites(' {} \;); do
  for pattern in "${packages[@]}"; do
    if covers "$pattern" "$dir"; then
      (cd "$dir" && go test -race -v -timeout 30m $short -run '^TestPrerequisites$' . || true) |
        sed -n "s|^ *[^ ]*_test\.go:[0-9]*:|skipped in $dir:|p"
      break
    fi
  done
done

failed=() # modules; the others are tried all the same
for module in $(folders -name go.mod); do
  here=() # the packages as this module names them
  for pattern in "${packages[@]}"; do
    if [ "$(module_of "${pattern%/...}")" = "$module" ]; then
      here+=(".${pattern#"$module"}")
    elif covers "$pattern" "$module"; then
      here+=(./...)
    fi
  done
  if [ ${#here[@]} -gt 0 ]; then
    # The packages with clients take minutes on a busy machine.
    (cd "$module" && go test -race -timeout 30m ${flags[@]+"${flags[@]}"} "${here[@]}") || failed+=("$module")
  fi
done
if [ ${#failed[@]} -gt 0 ]; then
  echo "failed: ${failed[*]}" >&2
  exit 1
fi
