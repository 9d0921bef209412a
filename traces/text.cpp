#include "traces/text.hpp"

#include <algorithm>
#include <vector>

#include "lib/trace/trace_builder.hpp"
#include "traces/intern_table.hpp"
#include "traces/line_reader.hpp"
#include "traces/registry.hpp"

namespace fragsim {
namespace {

constexpr std::string_view kHeader = "# fragsim trace 1";

bool detect(std::string_view head) {
    return head.starts_with(kHeader) &&
           (head.size() == kHeader.size() || head[kHeader.size()] == '\n' || head[kHeader.size()] == '\r');
}

// The next word, which is taken away; empty at the end.
std::string_view take_word(std::string_view& line) {
    line = trimmed(line);
    const std::string_view word = line.substr(0, line.find_first_of(" \t"));
    line.remove_prefix(word.size());
    return word;
}

class TextReader {
public:
    explicit TextReader(Input& input) : lines_(input) {}

    Recording read() {
        std::string_view line;
        while (lines_.next(line))
            if (!trimmed(line).empty() && !line.starts_with('#')) read_line(line);
        for (Allocation& allocation : allocations_) settle(allocation);

        Trace trace = builder_.finish();
        if (trace.events.empty()) trace.completeness = Completeness::no_events;
        Recording recording;
        recording.traces.push_back(std::move(trace));
        return recording;
    }

private:
    enum class State { unseen, live, waiting, freed };
    struct Allocation {
        BufferId buffer;
        State state = State::unseen;
        std::uint32_t freed_by = 0;  // event, while waiting
    };

    void read_line(std::string_view rest) {
        const std::string_view op = take_word(rest);
        if (op == "a")
            read_alloc(rest);
        else if (op == "f")
            read_free(rest);
        else if (op == "c")
            read_completed(rest);
        else if (op == "r")
            read_stream_use(rest);
        else if (op == "e")
            builder_.add(EventKind::empty_cache);
        else if (op == "s")
            read_synchronize(rest);
        else if (op == "m")
            return builder_.add_marker(trimmed(rest));
        else
            lines_.fail(fmt::format("unknown line '{}'", op), "lines begin with a, r, f, c, e, s, m or #");
        if (!trimmed(rest).empty())
            lines_.fail(fmt::format("'{}' too much", trimmed(rest)), "see FORMAT.md for what a line holds");
    }

    Allocation& allocation(std::string_view& rest) {
        const std::string_view id = take_word(rest);
        if (id.empty()) lines_.fail("no id", "an id is any word, for example a number");
        const std::uint32_t number = ids_.intern_exact(id);
        if (number >= allocations_.size()) allocations_.resize(number + std::size_t{1});
        last_id_ = id;
        return allocations_[number];
    }
    Allocation& live(std::string_view& rest) {
        Allocation& found = allocation(rest);
        if (found.state == State::unseen)
            lines_.fail(fmt::format("allocation {} is unknown", last_id_), "its line a has to come first");
        if (found.state != State::live)
            lines_.fail(fmt::format("allocation {} is freed already", last_id_),
                "an id may be used again after another line a");
        return found;
    }
    std::uint16_t stream(std::string_view word) {
        const std::optional<std::uint64_t> handle = parse_number<std::uint64_t>(word);
        if (!handle) lines_.fail(fmt::format("stream '{}' is no number", word), "streams are numbers or 0x... handles");
        return builder_.stream(*handle);
    }

    void read_alloc(std::string_view& rest) {
        Allocation& made = allocation(rest);
        if (made.state == State::live)
            lines_.fail(fmt::format("second allocation of {} without a free", last_id_),
                "an id may be used again after its free");
        settle(made);
        const std::string_view bytes = take_word(rest);
        const std::optional<Bytes> size = parse_number<Bytes>(bytes);
        if (!size || *size <= 0 || *size >= kMaxTextBytes)
            lines_.fail(fmt::format("size '{}' is no number of bytes", bytes), "sizes are whole bytes from 1 on");
        const std::string_view word = take_word(rest);
        made = {builder_.add_buffer(*size, 0, stream(word.empty() ? "0" : word)), State::live, 0};
        builder_.add(EventKind::alloc, made.buffer.value);
    }

    void read_free(std::string_view& rest) {
        Allocation& freed = live(rest);
        freed.state = State::waiting;
        freed.freed_by = builder_.next_event();
        builder_.add(EventKind::free_requested, freed.buffer.value);
    }

    void read_completed(std::string_view& rest) {
        Allocation& completed = allocation(rest);
        if (completed.state != State::waiting)
            lines_.fail(fmt::format("no free of {} to complete", last_id_), "its line f has to come first");
        builder_.add(EventKind::free_completed, completed.buffer.value);
        completed.state = State::freed;
    }

    void read_stream_use(std::string_view& rest) {
        const BufferId buffer = live(rest).buffer;
        builder_.add_stream_use(buffer, stream(take_word(rest)));
    }

    void read_synchronize(std::string_view& rest) {
        const std::string_view word = take_word(rest);
        if (word.empty())
            builder_.add(EventKind::synchronize, Event::kAllStreams);
        else
            builder_.add_synchronize(stream(word));
    }

    // A free that nothing completed took effect at once.
    void settle(Allocation& allocation) {
        if (allocation.state != State::waiting) return;
        allocation.state = State::freed;
        builder_.complete_at_once(allocation.freed_by);
    }

    LineReader lines_;
    InternTable ids_;
    std::string_view last_id_;
    std::vector<Allocation> allocations_;  // by number of the id
    TraceBuilder builder_;
};

Recording read(Input& input) { return TextReader(input).read(); }

std::string one_line(std::string text) {
    std::replace_if(
        text.begin(), text.end(), [](char letter) { return letter == '\n' || letter == '\r'; }, ' ');
    return text;
}

void write_alloc(std::string& out, const Trace& trace, BufferId id) {
    const Buffer& buffer = trace.buffers[id.value];
    fmt::format_to(std::back_inserter(out), "a {} {}", id.value, buffer.requested);
    const std::uint64_t stream = trace.streams[buffer.stream];
    if (stream != 0) fmt::format_to(std::back_inserter(out), " {}", stream);
    out += '\n';
}

}  // namespace

std::string write_text(const Trace& trace) {
    std::string out(kHeader);
    out += '\n';
    const auto line = [&](std::string_view op, auto... words) {
        out += op;
        (fmt::format_to(std::back_inserter(out), " {}", words), ...);
        out += '\n';
    };
    for (const BlockPicture& block : trace.initial.blocks)
        if (block.buffer) write_alloc(out, trace, block.buffer);
    for (const BlockPicture& block : trace.initial.blocks)
        if (block.state == BlockState::active_pending_free && block.buffer) line("f", block.buffer.value);

    for (const Event& event : trace.events) {
        switch (event.kind()) {
            case EventKind::alloc: write_alloc(out, trace, event.buffer()); break;
            case EventKind::free:
            case EventKind::free_requested: line("f", event.subject); break;
            case EventKind::free_completed: line("c", event.subject); break;
            case EventKind::record_stream: {
                const StreamUse& use = trace.stream_uses[event.subject];
                line("r", use.buffer.value, trace.streams[use.stream.value]);
                break;
            }
            case EventKind::empty_cache: line("e"); break;
            case EventKind::synchronize:
                event.subject == Event::kAllStreams ? line("s") : line("s", trace.streams[event.subject]);
                break;
            case EventKind::marker: line("m", one_line(trace.markers[event.subject])); break;
            case EventKind::oom:
                line("m", fmt::format("out of memory for {} bytes", trace.ooms[event.subject].requested));
                break;
            default: break;  // of pools, which this form does not have
        }
    }
    return out;
}

FormatInfo text_format() {
    return {"fragsim-text", "one line an event, beginning with \"# fragsim trace 1\"", detect, read};
}

}  // namespace fragsim
