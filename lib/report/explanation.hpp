// What `explain` prints.
#pragma once

#include <string>
#include <vector>

#include "lib/report/report.hpp"
#include "lib/report/text_table.hpp"
#include "lib/study/explain.hpp"

namespace fragsim {

// Of a trace that has an explanation.
std::string explanation_text(const TraceResults& explained, const RenderOptions& options);
std::string explanation_json(
    const TraceResults& explained, const std::string& tool_version, const std::vector<std::string>& argv);

// The pieces that the text is made of, for other forms of it.
std::string arithmetic(const Moment& moment);
TextTable waste_table(const Explanation& explanation);
std::string pinner_lines(const Moment& moment);  // "": nobody pins anything
TextTable settings_table(const Explanation& explanation);
std::string settings_notes(const Explanation& explanation);
std::string recommendation(const Explanation& explanation);

// The verdict in one sentence, for those who show nothing else.
std::string verdict_sentence(const Moment& moment);

}  // namespace fragsim
