#!/usr/bin/env bash
# Makes a release: one commit in which the modules of this repository require each
# other at one version, and a tag of that version for each of them.
#
#   ./release.sh v0.1.0         a dry run: shows the commit and the tags, and keeps nothing
#   ./release.sh -tag v0.1.0    makes the tags in this repository, and says how to push them
#   ./release.sh -to DIR v0.1.0 a dry run that keeps, in the new folder DIR, the clone with
#                               the tags, and the module proxy of files: DIR/proxy
#
# HEAD is what is released, from a clone: neither it nor the working tree changes.
# The commit is the tags' alone: branches keep the replace directives with which the
# modules are developed together, and which nobody could install an example with.
# A version that has its tags is left alone if they are what would be made again.
set -euo pipefail
cd "$(dirname "$0")"

die() { echo "release.sh: $*" >&2; exit 1; }

usage='usage: ./release.sh [-tag | -to DIR] VERSION, as in ./release.sh v0.1.0'
tag='' dir=''
while [[ ${1-} == -* ]]; do
  case $1 in
    -tag) tag=1 ;;
    -to) dir=${2:?$usage} && shift ;;
    *) die "$usage" ;;
  esac
  shift
done
[ $# = 1 ] && [ -z "$tag" -o -z "$dir" ] || die "$usage"
version=$1
[[ $version =~ ^v[01]\.(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)(-[0-9A-Za-z.-]+)?$ ]] ||
  die "$version is no version of a module whose path has no version: v0.x.y or v1.x.y"
if [ -n "$tag" ] && [ -n "$(git status --porcelain)" ]; then
  die "the working tree has changes that are not committed"
fi

if [ -z "$dir" ]; then
  dir=$(mktemp -d)
  trap 'rm -rf "$dir"' EXIT
else
  mkdir "$dir" || die "$dir has to be new"
  dir=$(cd "$dir" && pwd)
fi
origin=$PWD clone=$dir/clone
git clone --quiet --no-tags . "$clone"
cd "$clone"
git checkout --quiet --detach "$(git -C "$origin" rev-parse HEAD)"
root=$(go list -m)

# path_of prints the path of the module in a folder, and tag_of its tag.
path_of() { [ "$1" = . ] && echo "$root" || echo "$root/$1"; }
tag_of() { [ "$1" = . ] && echo "$version" || echo "$1/$version"; }

# own prints the modules below the root's path that the go.mod of a folder requires.
own() { awk -v root="$root" '$1 == "require" { sub("require", "") } ($1 == root || index($1, root "/") == 1) && $2 ~ /^v/ { print $1 }' "$1/go.mod"; }

# What is released, in an order in which each module follows those that it requires.
# Modules in testdata, or for the use of this repository only, are not.
folders=$(git ls-files 'go.mod' '**/go.mod' | grep -vE '(^|/)(testdata|internal)/|^bench/' | xargs -n 1 dirname)
paths=$(for folder in $folders; do path_of "$folder"; done)
for folder in $folders; do
  for needed in $(own "$folder"); do
    grep -qxF "$needed" <<<"$paths" || die "$folder/go.mod requires $needed, which is not released"
  done
done
order=$(for folder in $folders; do
  for needed in "$(path_of "$folder")" $(own "$folder"); do echo "$needed $(path_of "$folder")"; done
done | tsort)

# fetch puts a tagged module into the proxy, made by the Go command of the clone as
# it would be of the place that its path names. It prints the lines for go.sum.
fetch() {
  GOMODCACHE=$dir/modules GOPROXY=direct GONOSUMDB=$root GOFLAGS=-modcacherw GOWORK=off \
    GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0="url.file://$clone.insteadOf" GIT_CONFIG_VALUE_0="https://$root" \
    go mod download -json "$1@$version" |
    awk -F '"' -v of="$1 $version" '$2 == "Error" { print $4 >"/dev/stderr"; exit 1 }
      $2 == "Sum" { print of, $4 } $2 == "GoModSum" { print of "/go.mod", $4 }'
}

export GIT_COMMITTER_DATE GIT_AUTHOR_DATE # those of HEAD, so that a release is always the same commit
GIT_COMMITTER_DATE=$(git log -1 --format=%cI) GIT_AUTHOR_DATE=$GIT_COMMITTER_DATE
git config user.name "$(git log -1 --format=%cn)"
git config user.email "$(git log -1 --format=%ce)"
git config commit.gpgSign false
git config tag.gpgSign false

# The tags move on as the modules that follow change; what they hold of their own
# modules does not.
commit() {
  git commit --quiet --all --allow-empty "$@" --message "Release $version" \
    --message "The modules require each other at this version, and replace nothing."
}
commit
: >"$dir/sums"
for path in $order; do
  folder=.${path#"$root"}
  folder=${folder#./}
  for needed in $(own "$folder"); do
    go -C "$folder" mod edit -require="$needed@$version" -dropreplace="$needed"
    grep -E "^$needed $version(/go.mod)? " "$dir/sums" >>"$folder/go.sum"
  done
  for other in $paths; do go -C "$folder" mod edit -dropreplace="$other"; done # required by those
  ! grep -q '^replace' "$folder/go.mod" || die "$folder/go.mod replaces what is not of this repository: nobody could install from it"
  LC_ALL=C sort --stable --field-separator=' ' --key=1,1 --output="$folder/go.sum" "$folder/go.sum"
  commit --amend
  git tag --force "$(tag_of "$folder")" >/dev/null
  fetch "$path" >>"$dir/sums"
done
tags=$(for folder in $folders; do tag_of "$folder"; done)
for name in $tags; do git tag --force "$name" >/dev/null; done
mv "$dir/modules/cache/download" "$dir/proxy"
rm -rf "$dir/modules"

git --no-pager show --stat --format='%h %s' HEAD
done=0
for name in $tags; do
  if there=$(git -C "$origin" rev-parse --quiet --verify "refs/tags/$name^{commit}"); then
    [ "$there" = "$(git rev-parse HEAD)" ] || die "the tag $name exists and is another commit, $there: a released version never changes"
    done=$((done + 1))
  fi
done
if [ "$done" = "$(wc -w <<<"$tags")" ]; then
  echo "$version has its tags."
elif [ -z "$tag" ]; then
  echo "A dry run. The tags would be:" $tags
else
  git push --quiet "$origin" $tags
  echo "Tagged. To publish: git push --atomic origin" $tags
fi
