#include "apps/fragsim/report_outputs.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "lib/core/closest.hpp"
#include "lib/core/error.hpp"

namespace fragsim {

ReportOutputs::ReportOutputs(
    const std::vector<std::string>& asked, bool json, const std::string& on_stdout, bool force) {
    for (const std::string& text : asked) open(text, force);
    if (json) open("json", force);
    const auto there = std::count(files_.begin(), files_.end(), nullptr);
    if (there > (on_stdout.empty() ? 0 : 1))
        throw Error(ErrorCode::usage, "two reports on standard output", "write --report NAME=FILE for all but one");
    if (there == 0 && !on_stdout.empty()) open(on_stdout, force);
}

void ReportOutputs::open(const std::string& text, bool force) {
    const std::size_t equals = text.find('=');
    const std::string name = text.substr(0, equals);
    const auto report =
        std::find_if(reports().begin(), reports().end(), [&](const ReportInfo& r) { return r.name == name; });
    if (report == reports().end()) {
        std::vector<std::string_view> names;
        for (const ReportInfo& known : reports()) names.push_back(known.name);
        throw Error(ErrorCode::usage, fmt::format("unknown report '{}'", name), suggestion(name, names));
    }
    const bool to_file = equals != std::string::npos;
    if (report->needs.file && !to_file)
        throw Error(ErrorCode::usage, fmt::format("report {} is not for the terminal", name),
            fmt::format("write --report {}=FILE", name));
    infos_.push_back(&*report);
    files_.push_back(to_file ? std::make_unique<OutputFile>(text.substr(equals + 1), force) : nullptr);
}

void ReportOutputs::write(const ResultSet& results, const Invocation& invocation) {
    for (std::size_t i = 0; i < infos_.size(); ++i) {
        if (!files_[i]) {
            write_stdout(infos_[i]->render(results, {use_color(invocation.color), stdout_width()}));
            continue;
        }
        files_[i]->write(infos_[i]->render(results, {false, 0}));
        files_[i]->commit(invocation.quiet);
    }
}

}  // namespace fragsim
