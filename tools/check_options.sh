#!/usr/bin/env bash
# Builds and tests Turnout with each of a table of option combinations: tools/check_options.sh [NAME...]
# Needs what `bash cmake/bootstrap.sh packages deps test venv test models test` brings. Builds in build/options.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

#      name              oneDNN OpenBLAS Kokkos virtual
table="reference         OFF    OFF      OFF    OFF
       onednn            ON     OFF      OFF    OFF
       openblas          OFF    ON       OFF    OFF
       kokkos            OFF    OFF      ON     OFF
       kokkos-virtual    OFF    OFF      ON     ON
       openblas-kokkos   OFF    ON       ON     ON
       onednn-kokkos     ON     OFF      ON     ON
       all               ON     ON       ON     ON"

failed=()
while read -r name onednn openblas kokkos virtual; do
  [ $# -eq 0 ] || [[ " $* " == *" $name "* ]] || continue
  folder=build/options/$name
  begin=$SECONDS
  result=passed
  mkdir -p "$folder"
  { cmake -S . -B "$folder" -G Ninja -DCMAKE_BUILD_TYPE=Release -DTURNOUT_TESTS=ON -DTURNOUT_ONEDNN="$onednn" \
      -DTURNOUT_OPENBLAS="$openblas" -DTURNOUT_KOKKOS="$kokkos" -DTURNOUT_VIRTUAL="$virtual" &&
    cmake --build "$folder" && ctest --test-dir "$folder" --output-on-failure --no-tests=error; } \
    >"$folder/log.txt" 2>&1 </dev/null || { result="FAILED (see $folder/log.txt)"; failed+=("$name"); }
  printf '%-16s %s, %d s: %s\n' "$name" "$result" $((SECONDS - begin)) \
    "$(grep -h 'tests passed' "$folder/log.txt" || tail -n 1 "$folder/log.txt")"
done <<<"$table"

[ ${#failed[@]} -eq 0 ] || { echo "failed: ${failed[*]}" >&2; exit 1; }
