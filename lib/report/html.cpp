// One page that loads nothing: charts, memory maps and the comparison, drawn in the browser with dygraphs, which is in
// the page.
#include "lib/report/html/assets.hpp"
#include "lib/report/page_data.hpp"
#include "lib/report/report.hpp"

namespace fragsim {
namespace {

// Puts `text` in the place of {{name}}, which is there once. What is put in is not looked at again.
void put(std::string& out, std::string_view& rest, std::string_view name, std::string_view text) {
    const std::string place = "{{" + std::string(name) + "}}";
    const std::size_t at = rest.find(place);
    out.append(rest.substr(0, at)).append(text);
    rest.remove_prefix(at + place.size());
}

std::string render(const ResultSet& set, const RenderOptions&) {
    std::string out;
    std::string_view rest = html::page;
    put(out, rest, "library_style", html::library_style);
    put(out, rest, "style", html::style);
    put(out, rest, "data", packed(page_data(set)));
    put(out, rest, "library", html::library);
    put(out, rest, "script", html::script);
    return out.append(rest);
}

}  // namespace

ReportInfo html_report() {
    return {"html", "a page for a browser, which loads nothing: memory by op and time, memory maps, waste, the table",
        render, {.history = true, .series = true, .file = true}};
}

}  // namespace fragsim
