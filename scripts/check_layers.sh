#!/usr/bin/env bash
# Who may include whom: core <- trace <- replay <- metrics <- study <- report <- apps and core <- device <- policy <- replay;
# lib uses neither traces nor policies. Prints file:line for each include that breaks this; status 1 if there is any.
set -euo pipefail
cd "$(dirname "$0")/.."
status=0

includes() {  # PATTERN FOLDER...: file:line:text of the includes that match
    local pattern=$1
    shift
    grep -rnE --include='*.cpp' --include='*.hpp' --include='*.h' --include='*.cu' --include='*.def' \
        "^[[:space:]]*#[[:space:]]*include[[:space:]]*[<\"]($pattern)" "$@" || true
}

report() {  # RULE: stdin are violations of it
    local line
    while IFS= read -r line; do
        echo "$line  <- $1" >&2
        status=1
    done
}

layer() {  # FOLDER ALLOWED...: of ours, the folder includes itself and these only
    local folder=$1
    shift
    [ -d "$folder" ] || return 0
    local allowed
    allowed=$(printf '|%s' "$folder" "$@")
    report "$folder may include only $folder $*" < <(includes '(lib|traces|policies|apps|tests)/' "$folder" | grep -vE "[<\"](${allowed:1})/")
}

package() {  # NAME PATTERN PLACES: includes of a package stand there only
    report "$1 belongs in $3" < <(includes "$2" apps lib traces policies tests | grep -vE "^($3)")
}

layer lib/core
layer lib/trace lib/core
layer lib/device lib/core
layer lib/policy lib/core lib/device
layer lib/replay lib/core lib/trace lib/device lib/policy
layer lib/metrics lib/core lib/trace lib/device lib/policy lib/replay
layer lib/study lib/core lib/trace lib/device lib/policy lib/replay lib/metrics
layer lib/report lib/core lib/trace lib/device lib/policy lib/replay lib/metrics lib/study
layer traces lib/core lib/trace
layer policies lib/core lib/device lib/policy
layer apps lib traces policies
package CLI11 'CLI/' 'apps/'
package CUDA '(cuda|nvml|cupti)[a-zA-Z0-9_]*\.h' 'lib/device/cuda_|apps/recorder/|tests/gpu/'
package nlohmann 'nlohmann/' 'traces/|lib/report/|apps/fragsim/cost_profile|tests/'
package Catch2 'catch2/' 'tests/support/catch'
package rapidcheck 'rapidcheck' 'tests/'

# A folder that no rule above knows would go unchecked.
for folder in lib/*/; do
    grep -q "^layer ${folder%/}\b" scripts/check_layers.sh || report "say in scripts/check_layers.sh what it may include" <<<"$folder: no layer"
done
exit $status
