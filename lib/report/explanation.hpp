// What `explain` prints.
#pragma once

#include <string>
#include <vector>

#include "lib/report/report.hpp"
#include "lib/study/explain.hpp"

namespace fragsim {

struct ExplainedTrace {
    const Recording* recording;
    const Trace* trace;
    Explanation explanation;
};

std::string explanation_text(const ExplainedTrace& explained, const RenderOptions& options);
std::string explanation_json(
    const ExplainedTrace& explained, const std::string& tool_version, const std::vector<std::string>& argv);

// The verdict in one sentence, for those who show nothing else.
std::string verdict_sentence(const Moment& moment);
// "export PYTORCH_CUDA_ALLOC_CONF=..."; what to do to go back to PyTorch's default, if that is recommended.
std::string line_to_paste(const SettingOutcome& outcome);

}  // namespace fragsim
