// Any log of allocations as CSV with a header: what programs print about their own allocator. FORMAT.md says what it
// may hold. The form is written by hand or by small scripts, so whatever does not add up ends the reading.
#include <array>
#include <cctype>
#include <vector>

#include "lib/trace/trace_builder.hpp"
#include "traces/intern_table.hpp"
#include "traces/line_reader.hpp"
#include "traces/registry.hpp"

namespace fragsim {
namespace {

enum class Column { op, id, size, stream, time_us, other };

Column column_named(std::string_view name) {
    std::string lower(trimmed(name));
    for (char& letter : lower) letter = static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
    if (lower == "op") return Column::op;
    if (lower == "id" || lower == "ptr") return Column::id;
    if (lower == "size") return Column::size;
    if (lower == "stream") return Column::stream;
    if (lower == "time_us") return Column::time_us;
    return Column::other;
}

// Fields of one line. Quotes may hold commas; a doubled quote inside stays doubled, as no column of ours has any.
void split(std::string_view line, std::vector<std::string_view>& fields) {
    fields.clear();
    std::size_t begin = 0;
    bool quoted = false;
    for (std::size_t i = 0; i <= line.size(); ++i) {
        if (i < line.size() && line[i] == '"') quoted = !quoted;
        if (i < line.size() && (line[i] != ',' || quoted)) continue;
        std::string_view field = trimmed(line.substr(begin, i - begin));
        if (field.size() >= 2 && field.front() == '"' && field.back() == '"') field = field.substr(1, field.size() - 2);
        fields.push_back(field);
        begin = i + 1;
    }
}

struct Header {
    static constexpr std::size_t kAbsent = ~std::size_t{0};
    std::array<std::size_t, 6> at{kAbsent, kAbsent, kAbsent, kAbsent, kAbsent, kAbsent};
    bool repeated = false;
    bool id_is_pointer = false;

    explicit Header(const std::vector<std::string_view>& names) {
        for (std::size_t i = 0; i < names.size(); ++i) {
            const Column column = column_named(names[i]);
            repeated |= column != Column::other && has(column);
            at[static_cast<std::size_t>(column)] = i;
            if (column == Column::id) id_is_pointer = trimmed(names[i]).size() == std::string_view("ptr").size();
        }
    }
    bool has(Column column) const { return at[static_cast<std::size_t>(column)] != kAbsent; }
    bool is_complete() const { return has(Column::op) && has(Column::id) && has(Column::size); }
};

bool detect(std::string_view head) {
    std::string_view line = head.substr(0, head.find('\n'));
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.starts_with("\xef\xbb\xbf")) line.remove_prefix(3);  // the mark that some editors put first
    std::vector<std::string_view> names;
    split(line, names);
    return Header(names).is_complete();
}

class CsvReader {
public:
    explicit CsvReader(Input& input) : lines_(input) {}

    Recording read() {
        std::string_view line;
        lines_.next(line);
        if (line.starts_with("\xef\xbb\xbf")) line.remove_prefix(3);
        split(line, fields_);
        const Header header(fields_);
        if (header.repeated) lines_.fail("a column twice", "give each of op, id or ptr, size, stream, time_us once");
        header_ = &header;
        while (lines_.next(line)) {
            if (trimmed(line).empty()) continue;
            split(line, fields_);
            read_row();
        }
        Trace trace = builder_.finish();
        if (trace.events.empty()) trace.completeness = Completeness::no_events;
        recording_.traces.push_back(std::move(trace));
        return std::move(recording_);
    }

private:
    enum class State { unseen, live, empty, freed };
    struct Allocation {
        BufferId buffer;
        State state = State::unseen;
    };

    std::string_view field(Column column) const {
        const std::size_t at = header_->at[static_cast<std::size_t>(column)];
        return at < fields_.size() ? fields_[at] : std::string_view{};
    }

    void read_row() {
        const std::string_view op = field(Column::op), id = field(Column::id);
        if (id.empty()) lines_.fail("no id", "every row names its allocation in the column id or ptr");
        const std::uint32_t number = ids_.intern_exact(id);
        if (number >= allocations_.size()) allocations_.resize(number + std::size_t{1});
        Allocation& allocation = allocations_[number];
        if (op == "alloc" || op == "malloc" || op == "allocate")
            read_alloc(allocation, id);
        else if (op == "free" || op == "deallocate")
            read_free(allocation, id);
        else
            lines_.fail(fmt::format("unknown op '{}'", op), "op is alloc (malloc, allocate) or free (deallocate)");
    }

    void read_alloc(Allocation& allocation, std::string_view id) {
        if (allocation.state == State::live || allocation.state == State::empty)
            lines_.fail(
                fmt::format("second allocation of {} without a free", id), "an id may be used again after its free");
        const std::optional<Bytes> size = parse_number<Bytes>(field(Column::size));
        if (!size || *size < 0 || *size >= kMaxTextBytes)
            lines_.fail(
                fmt::format("size '{}' is no number of bytes", field(Column::size)), "sizes are whole bytes from 0 on");
        std::uint64_t stream = 0;
        if (const std::string_view text = field(Column::stream); !text.empty()) {
            const std::optional<std::uint64_t> number = parse_number<std::uint64_t>(text);
            if (!number)
                lines_.fail(fmt::format("stream '{}' is no number", text), "streams are numbers or 0x... handles");
            stream = *number;
        }
        if (*size == 0) {
            recording_.diagnostics.count("allocation of no bytes", lines_.position());
            allocation.state = State::empty;
            return;
        }
        const Address address = header_->id_is_pointer ? parse_number<Address>(id).value_or(0) : 0;
        allocation = {builder_.add_buffer(*size, address, builder_.stream(stream)), State::live};
        add(EventKind::alloc, allocation.buffer);
    }

    void read_free(Allocation& allocation, std::string_view id) {
        switch (allocation.state) {
            case State::unseen:
                lines_.fail(fmt::format("free of unknown allocation {}", id), "its alloc has to come first");
            case State::freed:
                lines_.fail(fmt::format("second free of {}", id), "an id may be used again after another alloc");
            case State::empty: break;
            case State::live: add(EventKind::free, allocation.buffer); break;
        }
        allocation.state = State::freed;
    }

    void add(EventKind kind, BufferId buffer) {
        if (!header_->has(Column::time_us)) return builder_.add(kind, buffer.value);
        const std::optional<std::int64_t> time = parse_number<std::int64_t>(field(Column::time_us));
        if (!time)
            lines_.fail(fmt::format("time_us '{}' is no whole number", field(Column::time_us)),
                "leave the column out if there are no times");
        builder_.add(kind, buffer.value, *time);
    }

    LineReader lines_;
    const Header* header_ = nullptr;
    std::vector<std::string_view> fields_;
    InternTable ids_;
    std::vector<Allocation> allocations_;  // by number of the id
    TraceBuilder builder_;
    Recording recording_;
};

Recording read(Input& input) { return CsvReader(input).read(); }

}  // namespace

FormatInfo csv_log_format() {
    return {"csv-log", "CSV with a header that names op, id or ptr, and size", detect, read};
}

}  // namespace fragsim
