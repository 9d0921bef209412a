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

}  // namespace fragsim
