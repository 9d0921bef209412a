// Problems of offline packing as MiniMalloc (google/minimalloc @9f5cf81, src/converter.cc) reads and writes them: a CSV
// line a buffer, with the times between which it lives. They become a trace of allocations and frees in the order of
// time; the times themselves have no unit and are left out.
#include <algorithm>
#include <array>
#include <vector>

#include "lib/trace/trace_builder.hpp"
#include "traces/line_reader.hpp"
#include "traces/registry.hpp"

namespace fragsim {
namespace {

enum class Column { id, lower, upper, size, gaps, alignment, op, other };

// `end` is the last time that a buffer lives, `upper` the first that it does not.
struct Header {
    static constexpr std::size_t kAbsent = ~std::size_t{0};
    std::array<std::size_t, 8> at{};
    bool repeated = false, inclusive = false;

    explicit Header(const std::vector<std::string_view>& names) {
        at.fill(kAbsent);
        for (std::size_t i = 0; i < names.size(); ++i) {
            const Column column = named(names[i]);
            repeated |= column != Column::other && has(column);
            at[static_cast<std::size_t>(column)] = i;
            inclusive |= names[i] == "end";
        }
    }
    static Column named(std::string_view name) {
        if (name == "id" || name == "buffer" || name == "buffer_id") return Column::id;
        if (name == "lower" || name == "start" || name == "begin") return Column::lower;
        if (name == "upper" || name == "end") return Column::upper;
        if (name == "size") return Column::size;
        if (name == "gaps") return Column::gaps;
        if (name == "alignment") return Column::alignment;
        return name == "op" ? Column::op : Column::other;
    }
    bool has(Column column) const { return at[static_cast<std::size_t>(column)] != kAbsent; }
    // With an op it is a log (csv_log.cpp).
    bool is_complete() const {
        return has(Column::id) && has(Column::lower) && has(Column::upper) && has(Column::size) && !has(Column::op);
    }
};

void split(std::string_view line, std::vector<std::string_view>& fields) {
    fields.clear();
    for (std::size_t begin = 0; begin <= line.size();) {
        const std::size_t comma = std::min(line.find(',', begin), line.size());
        fields.push_back(trimmed(line.substr(begin, comma - begin)));
        begin = comma + 1;
    }
}

bool detect(std::string_view head) {
    std::string_view line = head.substr(0, head.find('\n'));
    if (line.ends_with('\r')) line.remove_suffix(1);
    std::vector<std::string_view> names;
    split(line, names);
    return Header(names).is_complete();
}

class MiniMallocReader {
public:
    explicit MiniMallocReader(Input& input) : lines_(input) {}

    Recording read() {
        std::string_view line;
        lines_.next(line);
        split(line, fields_);
        const Header header(fields_);
        if (header.repeated) lines_.fail("a column twice", "give each of id, lower, upper, size once");
        while (lines_.next(line)) {
            if (trimmed(line).empty()) continue;
            split(line, fields_);
            read_row(header);
        }
        Trace trace = trace_of_rows();
        if (trace.events.empty()) trace.completeness = Completeness::no_events;
        recording_.traces.push_back(std::move(trace));
        return std::move(recording_);
    }

private:
    struct Change {
        std::int64_t time;
        bool begins;  // at one time frees come first: lifespans are half-open
        std::uint32_t row;
        friend bool operator<(const Change& a, const Change& b) {
            return a.time != b.time ? a.time < b.time : a.begins != b.begins ? b.begins : a.row < b.row;
        }
    };

    std::string_view field(const Header& header, Column column) const {
        const std::size_t at = header.at[static_cast<std::size_t>(column)];
        return at < fields_.size() ? fields_[at] : std::string_view{};
    }

    std::int64_t time(const Header& header, Column column) const {
        const std::string_view text = field(header, column);
        const std::optional<std::int64_t> time = parse_number<std::int64_t>(text);
        if (!time || *time <= -kMaxTextBytes || *time >= kMaxTextBytes)
            lines_.fail(fmt::format("time '{}' is no whole number", text), "times are whole numbers of any unit");
        return *time;
    }

    void read_row(const Header& header) {
        const std::int64_t lower = time(header, Column::lower);
        const std::int64_t upper = time(header, Column::upper) + header.inclusive;
        const std::optional<Bytes> size = parse_number<Bytes>(field(header, Column::size));
        if (!size || *size < 0 || *size >= kMaxTextBytes)
            lines_.fail(fmt::format("size '{}' is no number of bytes", field(header, Column::size)),
                "sizes are whole bytes from 0 on");
        if (upper < lower)
            lines_.fail(fmt::format("buffer {} ends before it begins", field(header, Column::id)),
                "lower is the first time that a buffer lives, upper the first that it does not");
        if (!field(header, Column::gaps).empty())
            recording_.diagnostics.count("buffer with gaps, taken to live through them", lines_.position());
        if (const auto alignment = parse_number<std::int64_t>(field(header, Column::alignment)); alignment > 512)
            recording_.diagnostics.count("alignment above 512, which policies do not know of", lines_.position());
        if (*size == 0) return recording_.diagnostics.count("allocation of no bytes", lines_.position());
        if (upper == lower) return recording_.diagnostics.count("buffer that never lives", lines_.position());
        if (sizes_.size() > Event::kMaxSubject)
            lines_.fail("more than 2^28 buffers", "cut the problem where few buffers live");
        const auto row = static_cast<std::uint32_t>(sizes_.size());
        sizes_.push_back(*size);
        changes_.push_back({lower, true, row});
        changes_.push_back({upper, false, row});
    }

    Trace trace_of_rows() {
        std::sort(changes_.begin(), changes_.end());
        TraceBuilder builder;
        const std::uint16_t stream = builder.stream(0);
        std::vector<BufferId> buffers(sizes_.size());
        for (const Change& change : changes_) {
            BufferId& buffer = buffers[change.row];
            if (change.begins) buffer = builder.add_buffer(sizes_[change.row], 0, stream);
            builder.add(change.begins ? EventKind::alloc : EventKind::free, buffer.value);
        }
        return builder.finish();
    }

    LineReader lines_;
    std::vector<std::string_view> fields_;
    std::vector<Bytes> sizes_;  // by row
    std::vector<Change> changes_;
    Recording recording_;
};

Recording read(Input& input) { return MiniMallocReader(input).read(); }

}  // namespace

FormatInfo minimalloc_format() {
    return {"minimalloc", "CSV with a header that names id, lower, upper, size: a problem of MiniMalloc", detect, read};
}

}  // namespace fragsim
