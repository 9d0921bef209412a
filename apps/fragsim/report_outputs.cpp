#include "apps/fragsim/report_outputs.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "lib/core/closest.hpp"
#include "lib/core/error.hpp"

namespace fragsim {
namespace {

template <class Info>
std::span<const Info> known();
template <>
std::span<const ReportInfo> known() {
    return reports();
}
template <>
std::span<const ComparisonReportInfo> known() {
    return comparison_reports();
}

bool for_terminal(const ReportInfo& report) { return !report.needs.file; }
bool for_terminal(const ComparisonReportInfo&) { return true; }

}  // namespace

template <class Info>
ReportOutputsOf<Info>::ReportOutputsOf(
    const std::vector<std::string>& asked, bool json, const std::string& on_stdout, bool force) {
    for (const std::string& text : asked) open(text, force);
    if (json) open("json", force);
    const auto there = std::count(on_stdout_.begin(), on_stdout_.end(), true);
    if (there > (on_stdout.empty() ? 0 : 1))
        throw Error(ErrorCode::usage, "two reports on standard output", "write --report NAME=FILE for all but one");
    if (there == 0 && !on_stdout.empty()) open(on_stdout, force);
}

template <class Info>
void ReportOutputsOf<Info>::open(const std::string& text, bool force) {
    const std::size_t equals = text.find('=');
    const std::string name = text.substr(0, equals);
    const auto all = known<Info>();
    const auto report = std::find_if(all.begin(), all.end(), [&](const Info& r) { return r.name == name; });
    if (report == all.end()) {
        std::vector<std::string_view> names;
        for (const Info& info : all) names.push_back(info.name);
        throw Error(ErrorCode::usage, fmt::format("unknown report '{}'", name), suggestion(name, names));
    }
    const bool to_file = equals != std::string::npos;
    if (!for_terminal(*report) && !to_file)
        throw Error(ErrorCode::usage, fmt::format("report {} is not for the terminal", name),
            fmt::format("write --report {}=FILE", name));
    infos_.push_back(&*report);
    on_stdout_.push_back(!to_file || text.substr(equals + 1) == "-");
    files_.push_back(to_file ? std::make_unique<OutputFile>(text.substr(equals + 1), force) : nullptr);
}

template <class Info>
void ReportOutputsOf<Info>::write(const typename Info::Content& content, const Invocation& invocation) {
    for (std::size_t i = 0; i < infos_.size(); ++i) {
        if (!files_[i]) {
            write_stdout(infos_[i]->render(content, {use_color(invocation.color), stdout_width()}));
            continue;
        }
        files_[i]->write(infos_[i]->render(content, {false, 0}));
        files_[i]->commit(invocation.quiet);
    }
}

template class ReportOutputsOf<ReportInfo>;
template class ReportOutputsOf<ComparisonReportInfo>;

}  // namespace fragsim
