// Which PyTorch wrote a snapshot, by the keys it holds. The file does not say; its schema has grown over the versions.
// Source: spec/pytorch-snapshot-format.md, sections 2 to 6.
#pragma once

#include <string>

#include "traces/pytorch_records.hpp"

namespace fragsim {

struct TorchVersionGuess {
    std::string version;   // whose rules to use
    std::string versions;  // for people: "2.10 to 2.12"
};

TorchVersionGuess guess_torch_version(const Snapshot& snapshot);

// Was it a build for AMD's GPUs? Known by the settings' names, which building for HIP changes, and by call stacks with
// C++ frames; false where neither shows it.
bool recorded_on_hip(const Snapshot& snapshot);

}  // namespace fragsim
