#!/usr/bin/env bash
# Builds for AMD GPUs on a system that has no ROCm: in a Debian 13 root of its own, build/hip-root.
#   bash cmake/hip-root.sh root                     makes that root: debootstrap, HIP, its BLAS and RCCL (about 6 GB)
#   bash cmake/hip-root.sh kokkos [gfx90a|gfx942]   Kokkos for HIP -> build/deps/kokkos-hip-<arch> (default gfx90a)
#   bash cmake/hip-root.sh run CMD...               runs a command in the root, in the current folder
#   bash cmake/hip-root.sh --help                   shows this
# Needs root. Each step does nothing when its result is there and was made from the same inputs; kokkos and run make
# the root if need be. A command in the root sees this source tree at the same path and a short environment; set
# more with "run env NAME=VALUE CMD...". Where mounting is not permitted it works on a copy of the tree, and what it
# wrote under build/ is copied back. CMAKE_BUILD_PARALLEL_LEVEL is passed on. TURNOUT_DEBIAN_MIRROR names the
# archive to use; the default is the one that apt is configured with. TURNOUT_HIP_ROOT names another folder for the
# root, which several source trees may share.
set -euo pipefail
shopt -s inherit_errexit

tree=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
build=$tree/build
hip_root=$(realpath -m "${TURNOUT_HIP_ROOT:-$build/hip-root}")
suite=trixie
llvm=17 # the clang that this release's hipcc uses
packages=(hipcc libamdhip64-dev "rocm-device-libs-$llvm" librocblas-dev libhipblas-dev libhipcub-dev librocthrust-dev
  librccl-dev libfmt-dev nlohmann-json3-dev cmake ninja-build g++)
needed_bytes=9000000000

say() { printf 'hip-root: %s\n' "$*"; }
fail() { printf 'hip-root: %s\n' "$*" >&2; exit 1; }
digest() { sha256sum | cut -c1-16; }
up_to_date() { [ -f "$1" ] && [ "$(cat "$1")" = "$2" ]; }

# Runs a command quietly and prints its time; its output is shown only when it fails.
timed() {
  local name=$1 log=$build/logs/hip-$1.log begin=$SECONDS status
  shift
  mkdir -p "$build/logs"
  set +e # after "||" a function would run on behind its first failure
  (set -e; "$@") >"$log" 2>&1 </dev/null
  status=$?
  set -e
  [ $status -eq 0 ] || { tail -n 40 "$log" >&2; fail "$name failed (all of it in $log)"; }
  say "$name: $((SECONDS - begin)) s"
}

need_root() {
  [ "$(id -u)" -eq 0 ] || fail "'$1' needs root, for debootstrap and chroot: run it with sudo or as root"
}

# Deletes folders, but never through something mounted below them: it could be the source tree.
remove() {
  local folder
  for folder in "$@"; do
    ! under="${folder// /\\040}/" awk 'index($5 "/", ENVIRON["under"]) == 1 { found = 1 } END { exit !found }' \
      /proc/self/mountinfo || fail "something is mounted under $folder: unmount it first"
    rm -rf --one-file-system "$folder"
  done
}

# One maker at a time: what an interrupted one left behind can then be removed.
lock() {
  mkdir -p "$build" "${hip_root%/*}"
  exec 9>"$hip_root.lock"
  flock -n 9 || { say "waiting for another hip-root.sh"; flock 9; }
}
unlock() { exec 9>&-; }

# --- in the root ---------------------------------------------------------------------------------------------------

# Whether this process may make mounts of its own. They vanish with the process that made them.
can_mount() { unshare --mount mount --bind "$1" "$1" 2>/dev/null; }

# chrooted ROOT FOLDER CMD...: the command in ROOT as it is, with an environment of its own.
chrooted() {
  local target=$1 folder=$2
  shift 2
  local variables=(PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8
    "TERM=${TERM:-dumb}" DEBIAN_FRONTEND=noninteractive
    "HIP_DEVICE_LIB_PATH=/usr/lib/llvm-$llvm/lib/clang/$llvm/amdgcn/bitcode"
    ${CMAKE_BUILD_PARALLEL_LEVEL:+"CMAKE_BUILD_PARALLEL_LEVEL=$CMAKE_BUILD_PARALLEL_LEVEL"}
    ${http_proxy:+"http_proxy=$http_proxy"})
  chroot "$target" env -i -C "$folder" "${variables[@]}" "$@"
}

# with_mounts ROOT FOLDER CMD...: the same with the kernel's file systems and the source tree.
with_mounts() {
  local target=$1 kernel
  for kernel in proc sys dev; do mount --rbind "/$kernel" "$target/$kernel"; done
  mkdir -p "$target$tree"
  mount --bind "$tree" "$target$tree"
  chrooted "$@"
}

# with_copies ROOT FOLDER CMD...: the same with a copy of the tree. Of build/ only Kokkos and FOLDER go in; what the
# command wrote under build/ (told by its change time) comes back, also when it failed.
with_copies() {
  local copy=$1$tree start=$1/.start folder=${2#"$tree/"} status=0 old built
  mkdir -p "$copy/build"
  mapfile -t old < <(find "$copy" -mindepth 1 -maxdepth 1 ! -name build && compgen -G "$copy/build/deps/kokkos-hip-*")
  remove "${old[@]}"
  tar -C "$tree" --exclude=./.git --exclude=./build -cf - . | tar -C "$copy" -xf -
  mapfile -t built < <(cd "$tree" && compgen -G 'build/deps/kokkos-hip-*')
  case $folder in build/deps/* | build/hip-root*) ;; build/*) built+=("$folder") ;; esac
  [ ${#built[@]} -eq 0 ] || tar -C "$tree" -cf - "${built[@]}" | tar -C "$copy" -xf -
  mkdir -p "$copy/${2#"$tree"}"
  touch "$start"
  chrooted "$@" || status=$?
  (cd "$copy" && find build ! -type d -cnewer "$start" -print0) |
    tar -C "$copy" --null --no-recursion -T - -cf - | tar -C "$tree" -xf -
  return $status
}

# in_root FOLDER CMD...: a command in the finished root, seeing the source tree.
in_root() {
  if can_mount "$hip_root"; then
    unshare --mount -- bash "${BASH_SOURCE[0]}" --with-mounts "$hip_root" "$@"
  else
    with_copies "$hip_root" "$@"
  fi
}

# --- root ----------------------------------------------------------------------------------------------------------

mirror() {
  local release
  [ -z "${TURNOUT_DEBIAN_MIRROR:-}" ] || { echo "$TURNOUT_DEBIAN_MIRROR"; return; }
  release=$(. /etc/os-release && echo "${ID:-} ${VERSION_CODENAME:-}")
  [ "${release% *}" = debian ] || fail "not a Debian system: set TURNOUT_DEBIAN_MIRROR to a Debian archive"
  apt-get indextargets --format '$(RELEASE) $(COMPONENT) $(REPO_URI)' 'Created-By: Packages' |
    awk -v release="${release#* }" '$1 == release && $2 == "main" { print $3; found = 1; exit }
                                    END { exit !found }' ||
    fail "apt names no archive for the main component of '${release#* }': set TURNOUT_DEBIAN_MIRROR"
}

install_debootstrap() {
  command -v apt-get >/dev/null || { echo "no debootstrap and no apt-get to install it with"; return 1; }
  apt-get -q update
  DEBIAN_FRONTEND=noninteractive apt-get -q install --no-install-recommends -y debootstrap
}

# With mounts of its own where that is permitted, so that debootstrap's cannot outlive it.
bootstrap() {
  local private=()
  ! can_mount "$1" || private=(unshare --mount --)
  ${private[@]+"${private[@]}"} debootstrap --force-check-gpg --variant=minbase "$suite" "$1" "$2"
}

install_packages() {
  local apt=(apt-get -q -y -o Acquire::Retries=3 -o Dpkg::Options::=--force-unsafe-io)
  chrooted "$1" / "${apt[@]}" update
  chrooted "$1" / "${apt[@]}" install --no-install-recommends "${packages[@]}"
  chrooted "$1" / apt-get clean
}

root_key() {
  { echo "$suite ${packages[*]}"; declare -f bootstrap install_packages; } | digest
}

versions() {
  chrooted "$1" / dpkg-query -W -f '${Package} ${Version}\n' libamdhip64-dev librocblas-dev libhipblas-dev librccl-dev
}

root() {
  local key part=$hip_root.part free archive proxy
  key=$(root_key)
  ! up_to_date "$hip_root/.stamp" "$key" || return 0
  lock
  ! up_to_date "$hip_root/.stamp" "$key" || { unlock; return 0; }
  # Never delete a folder that this script didn't make.
  [ ! -e "$hip_root" ] || { [ -f "$hip_root/.stamp" ] && [ -e "$hip_root/etc/debian_version" ]; } ||
    fail "$hip_root is there and is no root that this script made"
  remove "$part"
  free=$(df -P -B1 "${hip_root%/*}" | awk 'END { print $4 }')
  [ "$free" -ge "$needed_bytes" ] || fail "$((free / 1000000)) MB free at ${hip_root%/*}: the root needs \
$((needed_bytes / 1000000)) MB while it is made"
  archive=$(mirror)
  command -v debootstrap >/dev/null || timed install-debootstrap install_debootstrap
  proxy=$(apt-config shell p Acquire::http::Proxy 2>/dev/null | sed "s/^p='\(.*\)'$/\1/") || proxy=
  [ -z "$proxy" ] || export http_proxy=$proxy
  mkdir "$part"
  trap 'remove "$hip_root.part"' EXIT
  timed debootstrap bootstrap "$part" "$archive"
  timed packages install_packages "$part"
  versions "$part" | sed 's/^/hip-root:   /'
  printf '%s\n' "$key" >"$part/.stamp"
  remove "$hip_root"
  mv "$part" "$hip_root"
  trap - EXIT
  unlock
  say "ready in $hip_root, $(du -sm "$hip_root" | cut -f1) MB"
}

# --- kokkos --------------------------------------------------------------------------------------------------------

# The archive is unpacked by the project's virtual environment, as in bootstrap.sh.
fetch() {
  [ -f "$build/venv/.fetch" ] || bash "$tree/cmake/bootstrap.sh" deps >&2
  "$build/venv/bin/python" "$tree/cmake/fetch.py" "$@"
}

unpack_kokkos() {
  local patch
  fetch unpack kokkos 'pygenten-*/tpls/kokkos' "$1"
  for patch in "$tree"/cmake/patches/kokkos-*.patch; do
    [ ! -e "$patch" ] || patch -d "$1" -p1 -i "$patch"
  done
}

configure_kokkos() {
  in_root "$1" cmake -G Ninja -S source -B out -DCMAKE_BUILD_TYPE=Release -DCMAKE_CXX_COMPILER=hipcc \
    -DCMAKE_INSTALL_PREFIX="$2" -DCMAKE_INSTALL_LIBDIR=lib -DBUILD_SHARED_LIBS=OFF \
    -DCMAKE_POSITION_INDEPENDENT_CODE=ON -DCMAKE_CXX_VISIBILITY_PRESET=hidden \
    -DCMAKE_VISIBILITY_INLINES_HIDDEN=ON -DCMAKE_CXX_STANDARD=20 -DCMAKE_CXX_EXTENSIONS=OFF \
    -DKokkos_ENABLE_HIP=ON -DKokkos_ENABLE_SERIAL=ON -DKokkos_ENABLE_ROCTHRUST=OFF -DKokkos_ENABLE_TESTS=OFF \
    -DKokkos_ARCH_AMD_"${3^^}"=ON
}

kokkos_key() {
  fetch key kokkos
  root_key
  { cat "$tree"/cmake/patches/kokkos-*.patch 2>/dev/null || :; declare -f unpack_kokkos configure_kokkos; } | digest
}

kokkos() {
  local arch=$1 prefix=$build/deps/kokkos-hip-$1 part=$build/deps/kokkos-hip-$1.part key
  key=$(kokkos_key | xargs)
  ! up_to_date "$prefix/.stamp" "$key" || return 0
  root
  lock
  rm -rf "$part"
  mkdir -p "$part"
  trap 'rm -rf "$build"/deps/kokkos-hip-*.part' EXIT
  timed kokkos-unpack unpack_kokkos "$part/source"
  timed kokkos-configure configure_kokkos "$part" "$prefix" "$arch"
  timed kokkos-build in_root "$part" cmake --build out
  timed kokkos-install in_root "$part" env DESTDIR="$part/installed" cmake --install out
  printf '%s\n' "$key" >"$part/installed$prefix/.stamp"
  rm -rf "$prefix"
  mv "$part/installed$prefix" "$prefix"
  rm -rf "$part"
  trap - EXIT
  unlock
  say "Kokkos for $arch ready in build/deps/kokkos-hip-$arch"
}

# --- run -----------------------------------------------------------------------------------------------------------

run() {
  local folder
  folder=$(pwd -P)
  case $folder/ in "$tree"/*) ;; *) folder=$tree ;; esac
  root >&2
  in_root "$folder" "$@"
}

help() { sed -n '2,14s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"; }

step=${1:-}
shift || { help; exit 2; }
case $step in
  -h | --help) help ;;
  root) [ $# -eq 0 ] || fail "root takes no arguments"; need_root root; root ;;
  kokkos)
    case ${1:-gfx90a} in gfx90a | gfx942) ;; *) fail "unknown architecture '$1': gfx90a or gfx942" ;; esac
    need_root kokkos
    kokkos "${1:-gfx90a}"
    ;;
  run) [ $# -gt 0 ] || fail "run needs a command"; need_root run; run "$@" ;;
  --with-mounts) with_mounts "$@" ;; # by in_root alone
  *) fail "unknown step '$step': root, kokkos, run or --help" ;;
esac
