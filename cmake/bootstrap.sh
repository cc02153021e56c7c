#!/usr/bin/env bash
# Brings what Turnout is built from, into build/ and nowhere else:
#   bash cmake/bootstrap.sh STEP...
#     packages [test]  Debian packages (needs root; without it, says what to install); with test also Chromium
#     deps [test]      oneDNN, OpenBLAS, Kokkos, onnx.proto; with test also Catch2     -> build/deps/<name>
#     venv [test]      the Python packages of tools/models; with test also onnxruntime -> build/venv
#     tsan             Kokkos without OpenMP, for the thread sanitizer               -> build/deps/kokkos-serial
#     cuda             Kokkos for CUDA; needs nvcc. TURNOUT_SM (default 90) is the architecture -> build/deps/kokkos-cuda-sm<n>
#     models [test]    the models of the main job; with test the others too            -> build/models
# Each step does nothing when its result is there and its lines of the lock are the same.
# TURNOUT_CPU_ARCH (default native) is the processor Kokkos is compiled for; TURNOUT_PYTHON the Python to use.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
build=$root/build
deps=$build/deps
venv=$build/venv
models=$build/models
python=$venv/bin/python
arch=${TURNOUT_CPU_ARCH:-native}
build_packages=(g++ cmake ninja-build python3 python3-venv ca-certificates protobuf-compiler
  libprotobuf-dev nlohmann-json3-dev libcli11-dev libfmt-dev)
test_packages=(chromium fonts-dejavu-core)

say() { printf 'set-up: %s\n' "$*"; }
fail() { printf 'set-up: %s\n' "$*" >&2; exit 1; }
fetch() { "$python" "$root/cmake/fetch.py" "$@"; }

# Runs a command quietly; its output is shown only when it fails.
quietly() {
  local log=$build/logs/$1.log
  shift
  mkdir -p "$build/logs"
  "$@" >"$log" 2>&1 || { tail -n 40 "$log" >&2; fail "failed: $* (all of it in $log)"; }
}

# up_to_date STAMP KEY: whether a step already ended with this key. done_with marks it so.
up_to_date() { [ -f "$1" ] && [ "$(cat "$1")" = "$2" ]; }
done_with() { mkdir -p "$(dirname "$1")" && printf '%s\n' "$2" >"$1"; }

packages() {
  local missing=() package as_root=() wanted=("${build_packages[@]}")
  [ "${1:-}" != test ] || wanted+=("${test_packages[@]}")
  command -v dpkg-query >/dev/null || {
    say "not a Debian system: install the equivalents of: ${wanted[*]}"
    return
  }
  for package in "${wanted[@]}"; do
    dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing+=("$package")
  done
  [ ${#missing[@]} -gt 0 ] || return 0
  if [ "$(id -u)" -ne 0 ]; then
    if sudo -n true 2>/dev/null; then
      as_root=(sudo -n)
    else
      say "not root: these packages are missing and have to be installed by someone who is:"
      printf '  apt-get update && apt-get install --no-install-recommends -y %s\n' "${missing[*]}"
      exit 1
    fi
  fi
  say "installing Debian packages: ${missing[*]}"
  quietly apt-update ${as_root[@]+"${as_root[@]}"} apt-get -q update
  quietly apt-install ${as_root[@]+"${as_root[@]}"} env DEBIAN_FRONTEND=noninteractive \
    apt-get -q install --no-install-recommends -y "${missing[@]}"
}

# The virtual environment with what fetch.py itself needs.
base_venv() {
  local host=${TURNOUT_PYTHON:-python3} key
  command -v "$host" >/dev/null || fail "no $host: install python3 and python3-venv, or set TURNOUT_PYTHON"
  "$host" -c 'import sys; sys.exit(sys.version_info < (3, 10))' || fail "$host is older than Python 3.10"
  if [ ! -x "$python" ] || ! "$python" -c '' 2>/dev/null; then
    rm -rf "$venv"
    "$host" -m venv "$venv" || fail "no virtual environment could be made: install python3-venv"
  fi
  key=$(fetch key @fetch)
  up_to_date "$venv/.fetch" "$key" && return
  install_wheels @fetch
  done_with "$venv/.fetch" "$key"
}

# Installs the wheels of the named groups, from checked archives alone.
install_wheels() {
  local files
  files=$(fetch archives "$@")
  mapfile -t files <<<"$files"
  quietly pip "$python" -m pip install --disable-pip-version-check --no-index --no-deps "${files[@]}"
}

venv() {
  local wanted=(numpy onnx @models) key
  base_venv
  [ "${1:-}" != test ] || wanted+=(onnxruntime flatbuffers)
  key=$(fetch key "${wanted[@]}")
  up_to_date "$venv/.models${1:+-$1}" "$key" && return
  "$python" -c 'import sys; sys.exit(sys.version_info[:2] != (3, 11))' || fail \
    "the pinned Python packages are built for Python 3.11, and this is $("$python" -V). The C++ build does not
  need them; for the models set TURNOUT_PYTHON to a Python 3.11 and remove build/venv."
  say "installing Python packages into build/venv"
  install_wheels "${wanted[@]}"
  done_with "$venv/.models${1:+-$1}" "$key"
  done_with "$venv/.models" "$(fetch key numpy onnx @models)"
}

install_onednn() {
  fetch unpack onednn 'onednn_cpu_gomp-*.data/data' "$1"
  fetch unpack onednn-devel 'onednn_devel_cpu_gomp-*.data/data' "$1"
  # The wheel holds the same library three times.
  ln -sf libdnnl.so.3.2 "$1/lib/libdnnl.so.3"
  ln -sf libdnnl.so.3 "$1/lib/libdnnl.so"
}

install_openblas() {
  fetch unpack openblas scipy_openblas32/include "$1/include"
  fetch unpack openblas scipy_openblas32/lib "$1/lib"
}

install_onnx() {
  fetch unpack onnx onnx/onnx.proto "$1"
}

# Configures, builds and installs an unpacked CMake project: NAME SOURCE PREFIX [CMake arguments...].
build_and_install() {
  local name=$1 source=$2 prefix=$3
  shift 3
  quietly "$name-configure" cmake -G Ninja -S "$source" -B "$source/build" -DCMAKE_BUILD_TYPE=Release \
    -DCMAKE_INSTALL_PREFIX="$prefix" -DCMAKE_INSTALL_LIBDIR=lib -DCMAKE_POSITION_INDEPENDENT_CODE=ON \
    -DCMAKE_CXX_STANDARD=20 -DCMAKE_CXX_EXTENSIONS=OFF "$@"
  quietly "$name-build" cmake --build "$source/build"
  quietly "$name-install" cmake --install "$source/build"
}

install_kokkos() {
  local source=$1/source processor=(-DKokkos_ARCH_NATIVE=ON) patch
  [ "$arch" = native ] || processor=(-DCMAKE_CXX_FLAGS="-march=$arch")
  fetch unpack kokkos 'pygenten-*/tpls/kokkos' "$source"
  for patch in "$root"/cmake/patches/kokkos-*.patch; do
    [ ! -e "$patch" ] || quietly kokkos-patch patch -d "$source" -p1 -i "$patch"
  done
  build_and_install kokkos "$source" "$1" -DKokkos_ENABLE_SERIAL=ON -DKokkos_ENABLE_OPENMP="${kokkos_openmp:-ON}" \
    -DKokkos_ENABLE_TESTS=OFF "${processor[@]}"
  rm -rf "$source"
}

install_kokkos_serial() { kokkos_openmp=OFF install_kokkos "$1"; }

# For a plugin: the only host space is Serial, and none of its names are seen outside.
install_kokkos_cuda() {
  local source=$1/source arch_option
  case $sm in
    80) arch_option=AMPERE80 ;;
    86) arch_option=AMPERE86 ;;
    89) arch_option=ADA89 ;;
    90) arch_option=HOPPER90 ;;
    *) fail "TURNOUT_SM=$sm: Kokkos 4.7 is built for 80, 86, 89 or 90 here" ;;
  esac
  fetch unpack kokkos 'pygenten-*/tpls/kokkos' "$source"
  quietly kokkos-patch patch -d "$source" -p1 -i "$root/cmake/patches/kokkos-4.7.00-cuda-13.patch"
  build_and_install kokkos-cuda "$source" "$1" -DKokkos_ENABLE_SERIAL=ON -DKokkos_ENABLE_CUDA=ON \
    "-DKokkos_ARCH_$arch_option=ON" -DKokkos_ENABLE_COMPILE_AS_CMAKE_LANGUAGE=ON -DKokkos_ENABLE_TESTS=OFF \
    -DCMAKE_CUDA_COMPILER="$nvcc" -DCMAKE_CUDA_FLAGS=-std=c++20 -DCMAKE_CUDA_ARCHITECTURES="$sm" \
    -DCMAKE_CXX_VISIBILITY_PRESET=hidden -DCMAKE_CUDA_VISIBILITY_PRESET=hidden -DCMAKE_VISIBILITY_INLINES_HIDDEN=ON
  rm -rf "$source"
}

install_catch2() {
  fetch unpack catch2 '*' "$1/source"
  build_and_install catch2 "$1/source" "$1" -DCATCH_INSTALL_DOCS=OFF -DCATCH_BUILD_TESTING=OFF
  rm -rf "$1/source"
}

# dependency NAME FOLDER EXTRA-KEY LOCK-NAME...: runs install_NAME into a fresh folder unless it is there.
dependency() {
  local name=$1 folder=$deps/$2 extra=$3 key begin=$SECONDS
  shift 3
  key="$(fetch key "$@") $extra $(declare -f "install_$name" build_and_install | sha256sum | cut -c1-16)"
  up_to_date "$folder/.stamp" "$key" && return
  rm -rf "$folder"
  mkdir -p "$folder"
  "install_$name" "$folder"
  done_with "$folder/.stamp" "$key"
  say "$name ready in build/deps/$(basename "$folder") ($((SECONDS - begin)) s)"
}

# What the compiler takes "native" for, so that a copied build folder is not used on another processor.
processor_key() {
  [ "$arch" = native ] || { echo "$arch"; return; }
  g++ -march=native -Q --help=target 2>/dev/null | sha256sum | cut -c1-16
}

deps() {
  local kokkos=kokkos
  [ "$arch" = native ] || kokkos=kokkos-$arch
  base_venv
  fetch archives @deps >/dev/null
  dependency onednn onednn - onednn onednn-devel
  dependency openblas openblas - openblas
  dependency onnx onnx - onnx
  dependency kokkos "$kokkos" "$(processor_key)" kokkos
  [ "${1:-}" != test ] || dependency catch2 catch2 - catch2
}

tsan() {
  base_venv
  fetch archives kokkos >/dev/null
  dependency kokkos_serial kokkos-serial "$(processor_key)" kokkos
}

cuda() {
  sm=${TURNOUT_SM:-90}
  nvcc=$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)
  [ -x "$nvcc" ] || fail "no nvcc: install the CUDA toolkit (12 or newer), or put its bin folder into PATH"
  base_venv
  fetch archives kokkos >/dev/null
  dependency kokkos_cuda "kokkos-cuda-sm$sm" "$("$nvcc" --version | sha256sum | cut -c1-16)" kokkos
}

models() {
  venv ${1:+"$1"}
  if [ "${1:-}" = test ]; then fetch models "$models"; else fetch models "$models" opennsfw; fi
  "$python" "$root/tools/models/prepare.py" --models "$models" ${1:+--all}
  [ "${1:-}" != test ] || "$python" "$root/tools/models/expected.py" --models "$models"
}

[ $# -gt 0 ] || { sed -n '2,12s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"; exit 2; }
while [ $# -gt 0 ]; do
  step=$1
  shift
  option=
  [ "${1:-}" != test ] || { option=test; shift; }
  case $step in
    packages | deps | venv | models | tsan | cuda) "$step" ${option:+"$option"} ;;
    *) fail "unknown step '$step'" ;;
  esac
done
