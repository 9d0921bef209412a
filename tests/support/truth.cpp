#include "tests/support/truth.hpp"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "lib/trace/input.hpp"
#include "tests/support/catch.hpp"

namespace fragsim::test {
namespace {

using nlohmann::json;

std::vector<std::pair<std::string, Bytes>> read_stats(const json& stats) {
    std::vector<std::pair<std::string, Bytes>> all;
    for (const auto& [key, value] : stats.items()) all.emplace_back(key, value.get<Bytes>());
    return all;
}

std::optional<Bytes> read_limit(const json& line) {
    return line["limit_bytes"].is_null() ? std::nullopt : std::optional(line["limit_bytes"].get<Bytes>());
}

}  // namespace

std::string source_dir() { return FRAGSIM_SOURCE_DIR; }

std::optional<std::string> shared_file(const std::string& path) {
    const char* set = std::getenv("FRAGSIM_SHARED");
    const std::string file = (set ? std::string(set) : source_dir() + "/../shared") + "/" + path;
    if (std::filesystem::exists(file)) return file;
    WARN("skipped: no " << file);  // tests/CMakeLists.txt looks for these words
    return std::nullopt;
}

void for_each_line(const std::string& path, const std::function<void(const std::string&)>& visit) {
    Input input(path);
    std::string line;
    while (input.fill(1) > 0) {
        const auto* begin = reinterpret_cast<const char*>(input.data());
        const auto* end = begin + input.available();
        const auto* newline = std::find(begin, end, '\n');
        line.append(begin, newline);
        input.advance(static_cast<std::size_t>(newline - begin) + (newline != end));
        if (newline == end) continue;
        visit(line);
        line.clear();
    }
    if (!line.empty()) visit(line);
}

std::vector<std::string> split(const std::string& text, char separator) {
    std::vector<std::string> parts(1);
    for (const char c : text)
        if (c == separator)
            parts.emplace_back();
        else
            parts.back() += c;
    return parts;
}

std::vector<RecordedCall> recorded_calls(const std::vector<DriverCall>& calls) {
    std::vector<RecordedCall> all;
    for (const DriverCall& call : calls) {
        switch (call.kind) {
            case DriverCallKind::malloc: all.push_back({'A', call.bytes}); break;
            case DriverCallKind::free: all.push_back({'F', call.bytes}); break;
            case DriverCallKind::map: all.push_back({'M', call.bytes}); break;
            case DriverCallKind::unmap: all.push_back({'U', call.bytes}); break;
            default: break;
        }
    }
    return all;
}

std::vector<RecordedCall> recorded_calls(const std::vector<SegmentEvent>& events) {
    std::vector<RecordedCall> all;
    for (const SegmentEvent& event : events) all.push_back({"AFMU"[static_cast<int>(event.kind)], event.bytes});
    return all;
}

void for_each_program(const std::string& path, const std::function<void(const Program&)>& visit) {
    for_each_line(path, [&](const std::string& text) {
        const json line = json::parse(text);
        Program program{line["name"], line["alloc_conf"], read_limit(line), {}, {}, {}, read_stats(line["stats"])};
        Trace& trace = program.trace;
        trace.pools = {{0, 0}};
        std::vector<BufferId> buffer_of;
        const auto add = [&](EventKind kind, std::uint32_t subject) {
            trace.events.push_back({static_cast<std::uint32_t>(kind) & 15, subject & Event::kMaxSubject});
            trace.ops += is_op(kind);
        };
        for (const json& op : line["ops"]) {
            const std::string kind = op[0];
            if (kind == "e") {
                add(EventKind::empty_cache, 0);
            } else if (kind == "f") {
                add(EventKind::free, buffer_of.at(op[1].get<std::size_t>()).value);
            } else {
                if (kind == "a!") program.oom_ops.push_back(trace.ops);
                const auto id = op[1].get<std::size_t>();
                if (buffer_of.size() <= id) buffer_of.resize(id + 1);
                buffer_of[id] = {static_cast<std::uint32_t>(trace.buffers.size())};
                const auto stream = op[3].get<std::uint16_t>();
                while (trace.streams.size() <= stream) trace.streams.push_back(trace.streams.size());
                add(EventKind::alloc, buffer_of[id].value);
                trace.buffers.push_back({op[2].get<Bytes>(), 0, stream, 0, {}});
            }
        }
        for (const json& event : line["events"]) {
            if (event[0] == "segment_alloc") program.calls.push_back({'A', event[2].get<Bytes>()});
            if (event[0] == "segment_free") program.calls.push_back({'F', event[2].get<Bytes>()});
            if (event[0] == "segment_map") program.calls.push_back({'M', event[2].get<Bytes>()});
            if (event[0] == "segment_unmap") program.calls.push_back({'U', event[2].get<Bytes>()});
        }
        visit(program);
    });
}

void for_each_counterfactual(const std::string& path, const std::function<void(const Counterfactual&)>& visit) {
    for_each_line(path, [&](const std::string& text) {
        const json line = json::parse(text);
        Counterfactual run{line["trace"], line["alloc_conf"], read_limit(line), {},
            line["oom_ops"].get<std::vector<std::uint32_t>>(), line["n_ooms"], read_stats(line["stats"])};
        for (const json& call : line["driver_calls"])
            run.calls.push_back({call[1].get<std::string>()[0], call[2].get<Bytes>()});
        visit(run);
    });
}

void for_each_limited_run(const std::string& path, const std::function<void(const LimitedRun&)>& visit) {
    std::size_t number = 0;
    for_each_line(path, [&](const std::string& text) {
        const json line = json::parse(text);
        LimitedRun run{number++, line["trace"], line["alloc_conf"], {{}, read_limit(line)}, {},
            line["ooms"].get<std::vector<std::uint32_t>>(), read_stats(line["stats"])};
        if (!line["usable_bytes"].is_null()) run.limits.capacity = line["usable_bytes"].get<Bytes>();
        for (const json& call : line["driver"]) run.calls.push_back({call[1].get<std::string>()[0], call[2].get<Bytes>()});
        visit(run);
    });
}

}  // namespace fragsim::test
