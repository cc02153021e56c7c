#!/usr/bin/env bash
# Checks Turnout on a machine with one GPU, from a bundle that needs no build and no network there.
#
#   bench/gpu_check.sh --pack [FILE]     builds for x86-64-v3 and packs build/gpu-check.tar.xz (or FILE)
#   ./gpu_check.sh [--device D] [--out FOLDER] [--seconds N]       in the unpacked bundle
#   bench/gpu_check.sh --help
#
# --pack needs what `./quickstart test` and `cmake --build --preset cuda` leave. The bundle: program, opcheck,
# transfer, the newest plugin, the libraries they need but for the C library and NVIDIA's, cases and models.
# The check (default: cuda:0, folder results, 360 seconds in all) writes a log and JSON after each stage:
# devices, conformance, calibration, transfers, then each model at batches 1 to 256 on CPU, GPU and auto, with what
# was predicted beside what was measured. results/stages.json says how each stage ended; exit code 1 when one failed.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)
models=(opennsfw digits-mlp magika ppocr-direction)
declare -A inputs=([opennsfw]=input:0 [digits-mlp]=pixels [magika]=bytes [ppocr-direction]=x)
most_bytes=$((60 * 1024 * 1024))

fail() { printf 'gpu_check: %s\n' "$*" >&2; exit 2; }
help() { sed -n '2,14s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"; }

# --- pack ----------------------------------------------------------------------------------------------------------

# Libraries that a machine with a GPU has (or that must be its own): the C library, the driver's, the toolkit's.
is_foreign() {
  case $1 in
    ld-linux* | libc.so* | libm.so* | libdl.so* | libpthread.so* | librt.so* | libcuda.so* | libcublas* | libcudnn*) ;;
    *) return 1 ;;
  esac
}

libraries_of() { ldd "$@" 2>/dev/null | awk '$2 == "=>" && $3 ~ /^\// { print $3 }' | sort -u; }

pack() {
  local root file build stage library plugins model size
  root=$(dirname "$here")
  file=${1:-$root/build/gpu-check.tar.xz}
  build=$root/build/gpu-check
  plugins=("$root"/build/cuda/turnout_cuda_*.so)
  [ -e "${plugins[0]}" ] || printf 'gpu_check: no plugin in build/cuda: the bundle can only check virtual devices\n' >&2
  cmake -S "$root" -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DTURNOUT_TESTS=ON -DTURNOUT_CPU_ARCH=x86-64-v3 \
    --log-level=NOTICE
  cmake --build "$build" --target turnout opcheck transfer
  stage=$(mktemp -d)
  trap 'rm -rf "$stage"' EXIT
  mkdir -p "$stage"/gpu-check/{bin,lib,models/inputs}
  for name in turnout opcheck transfer; do strip -o "$stage/gpu-check/bin/$name" "$build/bin/$name"; done
  for plugin in "${plugins[@]}"; do
    [ ! -e "$plugin" ] || strip -o "$stage/gpu-check/lib/$(basename "$plugin")" "$plugin"
  done
  while read -r library; do
    is_foreign "$(basename "$library")" || cp -L "$library" "$stage/gpu-check/lib/"
  done < <(libraries_of "$build/bin/turnout" "$build/bin/opcheck" "${plugins[@]}")
  for model in "${models[@]}"; do
    cp "$root/build/models/$model.onnx" "$stage/gpu-check/models/"
    cp "$root/build/models/inputs/$model.npy" "$stage/gpu-check/models/inputs/"
  done
  cp -r "$root/tests/cases" "$stage/gpu-check/cases"
  cp "${BASH_SOURCE[0]}" "$stage/gpu-check/gpu_check.sh"
  git -C "$root" rev-parse HEAD >"$stage/gpu-check/commit" 2>/dev/null || echo unknown >"$stage/gpu-check/commit"
  tar -C "$stage" -cf - gpu-check | xz -T2 -6 >"$file.part"
  size=$(stat -c %s "$file.part")
  [ "$size" -le $most_bytes ] || fail "the bundle has $size bytes, more than $most_bytes"
  mv "$file.part" "$file"
  printf 'gpu_check: %s, %d MiB\n' "$file" $((size / 1024 / 1024))
}

# --- check ---------------------------------------------------------------------------------------------------------

stages=()
failed=0

write_stages() {
  local IFS=,
  printf '{"commit": "%s", "device": "%s", "stages": [%s]}\n' "$(cat "$here/commit")" "$device" "${stages[*]}" \
    >"$out/stages.json.part"
  mv "$out/stages.json.part" "$out/stages.json"
}

# stage NAME SECONDS COMMAND...: at most that long, and never past the end of the whole check.
stage() {
  local name=$1 most=$2 begin=$SECONDS status=0
  shift 2
  [ $((limit - SECONDS)) -ge "$most" ] || most=$((limit - SECONDS))
  if [ "$most" -le 5 ]; then
    printf '== %s: left out, no time\n' "$name"
    stages+=("{\"stage\": \"$name\", \"result\": \"no time\", \"seconds\": 0}")
    failed=1
    write_stages
    return
  fi
  timeout -k 5 "$most" "$@" >"$out/$name.log" 2>&1 || status=$?
  local result="exit $status"
  [ $status -ne 124 ] || result="stopped after $most s"
  [ $status -ne 0 ] || result=passed
  [ $status -eq 0 ] || failed=1
  stages+=("{\"stage\": \"$name\", \"result\": \"$result\", \"seconds\": $((SECONDS - begin))}")
  write_stages
  printf '== %s: %s, %d s\n' "$name" "$result" $((SECONDS - begin))
  tail -n 12 "$out/$name.log"
}

check() {
  local model devices=cpu,$device,auto
  [ -x "$here/bin/turnout" ] || fail "this is no unpacked bundle: make one with --pack"
  mkdir -p "$out"
  export LD_LIBRARY_PATH=$here/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} TURNOUT_PLUGIN_PATH=$here/lib
  export TURNOUT_CACHE=$out/cache
  mkdir -p "$TURNOUT_CACHE"
  write_stages
  stage devices 30 "$here/bin/turnout" devices --all
  stage conformance 90 "$here/bin/opcheck" "$device" --cases "$here/cases" --seconds 75 --json "$out/conformance.json"
  stage calibration 60 "$here/bin/turnout" calibrate --devices "cpu,$device" --budget 22
  stage transfer 30 "$here/bin/transfer" "$device" --budget 20
  for model in "${models[@]}"; do
    stage "compare-$model" 45 "$here/bin/turnout" compare "$here/models/$model.onnx" \
      --input "${inputs[$model]}=$here/models/inputs/$model.npy" --batch 1..256 --devices "$devices" --budget 0.3 \
      --json "$out/compare-$model.json" --html "$out/compare-$model.html"
  done
  printf 'results in %s\n' "$out"
  return $failed
}

device=cuda:0 out=results limit=360
while [ $# -gt 0 ]; do
  case $1 in
    --help | -h) help; exit 0 ;;
    --pack) pack "${2:-}"; exit 0 ;;
    --device) device=${2:?--device needs a name}; shift 2 ;;
    --out) out=${2:?--out needs a folder}; shift 2 ;;
    --seconds) limit=${2:?--seconds needs a number}; shift 2 ;;
    *) fail "unknown argument '$1'; see --help" ;;
  esac
done
mkdir -p "$out"
out=$(cd "$out" && pwd -P)
check
