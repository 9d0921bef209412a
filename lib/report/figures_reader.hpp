// What baselines and stored results both have of a run.
#pragma once

#include <cstdint>
#include <vector>

#include "lib/report/json_reader.hpp"
#include "lib/study/comparison.hpp"

namespace fragsim {

std::uint32_t read_op(const JsonReader& json);
int read_gpu(const JsonReader& json);

// From an object. Values are of the kind that the catalog says, and as they stand where it does not know the key.
std::vector<Metric> read_metrics(const JsonReader& json);
// From arrays; whoever wants no further keys in their elements refuses them first.
std::vector<RunFigures::OomAt> read_ooms(const JsonReader& json);
std::vector<RecordedOomAnswer> read_recorded_ooms(const JsonReader& json);

// Did version 1 of the document mean a memory limit where it says capacity? It did for PyTorch's native policies.
bool capacity_was_memory_limit(int version, std::string_view policy);

}  // namespace fragsim
