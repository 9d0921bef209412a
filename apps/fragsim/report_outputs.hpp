// The reports a command was asked for, and where each goes.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "apps/fragsim/cli.hpp"
#include "apps/fragsim/output_file.hpp"
#include "lib/report/comparison/report.hpp"
#include "lib/report/report.hpp"

namespace fragsim {

// `Info`: ReportInfo for results, ComparisonReportInfo for comparisons.
template <class Info>
class ReportOutputsOf {
public:
    // `asked`: "NAME" to stdout, "NAME=FILE"; `json`: short for the report json. The report `on_stdout` goes there when
    // none of them does; "": the command itself writes there. Files are created at once. Throws Error(usage).
    ReportOutputsOf(const std::vector<std::string>& asked, bool json, const std::string& on_stdout, bool force);

    const std::vector<const Info*>& infos() const { return infos_; }

    // Renders all, files first aside and then under their names.
    void write(const typename Info::Content& content, const Invocation& invocation);

private:
    void open(const std::string& text, bool force);

    std::vector<const Info*> infos_;
    std::vector<bool> on_stdout_;                     // by report
    std::vector<std::unique_ptr<OutputFile>> files_;  // by report; null: stdout
};

using ReportOutputs = ReportOutputsOf<ReportInfo>;
using ComparisonOutputs = ReportOutputsOf<ComparisonReportInfo>;

}  // namespace fragsim
