// What a policy would have done, as a memory snapshot of PyTorch: opens in pytorch.org/memory_viz and with
// torch/cuda/_memory_viz.py, and `fragsim verify` reads it back. Holds the first result.
// Source: spec/pytorch-snapshot-format.md, sections 2 to 6, 10 and 12.
#include <algorithm>
#include <string>
#include <vector>

#include "lib/report/pickle_writer.hpp"
#include "lib/report/report.hpp"

namespace fragsim {
namespace {

constexpr std::size_t kBatch = 1000;  // items of a list between two appends; the viewer cannot take many more

class SnapshotWriter {
public:
    SnapshotWriter(const Trace& trace, const Result& result)
        : trace_(trace), result_(result), memo_of_stack_(trace.stack_begin.size(), kUnwritten) {}

    std::string write() {
        out_.begin_dict();
        out_.text("segments");
        list(result_.end.segments, [&](const SegmentPicture& segment) { write_segment(segment); });
        out_.text("device_traces");
        out_.begin_list();
        for (int device = 0; device <= trace_.device; ++device)
            list(device == trace_.device ? recorded() : std::vector<HistoryEntry>(),
                [&](const HistoryEntry& entry) { write_entry(entry); });
        out_.end_list();
        out_.text("allocator_settings");
        write_settings();
        out_.text("external_annotations");
        out_.begin_list();
        out_.end_list();
        out_.end_dict();
        return out_.finish();
    }

private:
    static constexpr std::uint32_t kUnwritten = 0xffffffffu;

    template <class Items, class Write>
    void list(const Items& items, Write write) {
        out_.begin_list();
        std::size_t written = 0;
        for (const auto& item : items) {
            if (written > 0 && written % kBatch == 0) out_.continue_list();
            write(item);
            ++written;
        }
        out_.end_list();
    }

    // What PyTorch would have written: of a rejection it writes nothing.
    std::vector<HistoryEntry> recorded() {
        std::vector<HistoryEntry> entries;
        std::size_t failed = 0;  // entries of failed requests are in the order of the result's
        for (const HistoryEntry& entry : result_.history) {
            const bool fails = entry.action == HistoryAction::oom || entry.action == HistoryAction::rejection;
            if (entry.action == HistoryAction::oom) ooms_.push_back(&result_.ooms.at(failed));
            failed += fails;
            if (entry.action != HistoryAction::rejection) entries.push_back(entry);
        }
        return entries;
    }

    std::int64_t raw_stream(StreamId stream) const { return static_cast<std::int64_t>(trace_.streams[stream.value]); }

    void write_pool(std::uint16_t pool) {
        const PoolName name = pool < trace_.pools.size() ? trace_.pools[pool] : PoolName{0, 0};
        out_.pair(name.first, name.second);
    }

    void write_segment(const SegmentPicture& segment) {
        const auto first = result_.end.blocks.begin() + segment.first_block;
        Bytes allocated = 0, active = 0, requested = 0;
        for (auto block = first; block != first + segment.block_count; ++block) {
            if (block->state == BlockState::inactive) continue;
            active += block->size;
            requested += block->requested;
            if (block->state == BlockState::active_allocated) allocated += block->size;
        }
        out_.begin_dict();
        out_.field("device", trace_.device);
        out_.field("address", static_cast<std::int64_t>(segment.address));
        out_.field("total_size", segment.size);
        out_.field("allocated_size", allocated);
        out_.field("active_size", active);
        out_.field("requested_size", requested);
        out_.field("stream", raw_stream(segment.stream));
        out_.field("segment_type", segment.small ? "small" : "large");
        out_.text("segment_pool_id");
        write_pool(segment.pool);
        out_.text("is_expandable");
        out_.boolean(segment.expandable);
        write_frames({});
        out_.text("blocks");
        const std::vector<BlockPicture> blocks(first, first + segment.block_count);
        list(blocks, [&](const BlockPicture& block) { write_block(block); });
        out_.end_dict();
    }

    void write_block(const BlockPicture& block) {
        static constexpr const char* kStates[] = {"inactive", "active_allocated", "active_pending_free"};
        out_.begin_dict();
        out_.field("address", static_cast<std::int64_t>(block.address));
        out_.field("size", block.size);
        out_.field("requested_size", block.requested);
        out_.field("state", kStates[static_cast<int>(block.state)]);
        write_frames(block.buffer && block.buffer.value < trace_.buffers.size()
                         ? trace_.buffers[block.buffer.value].stack
                         : StackId{});
        out_.end_dict();
    }

    void write_entry(const HistoryEntry& entry) {
        out_.begin_dict();
        out_.field("action", name(entry.action));
        if (entry.action == HistoryAction::oom)
            out_.field("device_free", std::max<Bytes>(0, ooms_[ooms_written_++]->device_free));
        else
            out_.field("addr", static_cast<std::int64_t>(entry.address));
        out_.field("size", entry.bytes);
        out_.field("stream", raw_stream(entry.stream));
        out_.field(
            "time_us", trace_.time_us.empty() ? static_cast<std::int64_t>(entry.event) : trace_.time_us[entry.event]);
        out_.field("compile_context", "N/A");
        out_.field("user_metadata", "");
        const StackId stack = entry.buffer ? trace_.buffers[entry.buffer.value].stack : StackId{};
        if (stack && entry.action == HistoryAction::alloc) write_frames(stack);
        out_.end_dict();
    }

    void write_frames(StackId stack) {
        out_.text("frames");
        std::uint32_t& memo = stack ? memo_of_stack_[stack.value] : memo_of_empty_;
        if (memo != kUnwritten) return out_.again(memo);
        std::vector<std::uint32_t> frames;
        if (stack)
            frames.assign(trace_.stack_frames.begin() + trace_.stack_begin[stack.value],
                trace_.stack_frames.begin() + trace_.stack_begin[stack.value + 1]);
        list(frames, [&](std::uint32_t frame) {
            out_.begin_dict();
            out_.field("name", trace_.frames[frame].function);
            out_.field("filename", trace_.frames[frame].file);
            out_.field("line", trace_.frames[frame].line);
            out_.end_dict();
        });
        memo = out_.remember();
    }

    void write_settings() {
        out_.begin_dict();
        if (const auto& settings = result_.torch_settings) {
            out_.field("PYTORCH_CUDA_ALLOC_CONF", settings->alloc_conf);
            out_.field("max_split_size", settings->max_split_size);
            out_.text("garbage_collection_threshold");
            out_.real(settings->garbage_collection_threshold);
            out_.text("expandable_segments");
            out_.boolean(settings->expandable_segments);
            out_.text("roundup_power2_divisions");
            out_.begin_dict();
            for (std::size_t k = 0; k < settings->roundup_power2_divisions.size(); ++k)
                out_.field(std::to_string(1 << k), static_cast<std::int64_t>(settings->roundup_power2_divisions[k]));
            out_.end_dict();
        }
        out_.end_dict();
    }

    const Trace& trace_;
    const Result& result_;
    PickleWriter out_;
    std::vector<std::uint32_t> memo_of_stack_;
    std::uint32_t memo_of_empty_ = kUnwritten;
    std::vector<const Oom*> ooms_;  // of the entries, in their order
    std::size_t ooms_written_ = 0;
};

std::string render(const ResultSet& set, const RenderOptions&) {
    const TraceResults& first = set.traces.front();
    return SnapshotWriter(*first.trace, first.results.front()).write();
}

}  // namespace

ReportInfo torch_snapshot_report() {
    return {"torch-snapshot",
        "the policy's doings as a memory snapshot of PyTorch, for its viewer; one trace, one policy", render,
        {.history = true, .one_run = true, .file = true}};
}

}  // namespace fragsim
