// RMM, CuPy's pool and XLA's BFC against the real ones: the same programs, op by op. A free takes effect where the
// recording saw it complete.
//
// Addresses of the device differ from process to process, so a place is which block of the device and how far into it.
// Where a recording has addresses only, the first buffer in a block says where the block was.
#include <fmt/format.h>

#include <algorithm>

#include "lib/device/host_device.hpp"
#include "lib/device/logged_device.hpp"
#include "lib/replay/replay.hpp"
#include "lib/report/format.hpp"
#include "policies/cupy/pool.hpp"
#include "policies/registry.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/peers.hpp"
#include "tests/support/truth.hpp"
#include "tests/support/written_table.hpp"

namespace {

using namespace fragsim;
using namespace fragsim::test;

// The blocks that a policy got from the device, and where they were in the recorded run.
class Blocks {
public:
    void update(const std::vector<DriverCall>& calls) {
        for (; seen_ < calls.size(); ++seen_) {
            const DriverCall& call = calls[seen_];
            if (call.kind == DriverCallKind::malloc || call.kind == DriverCallKind::map)
                all_.push_back({call.address, call.bytes, true, {}});
            if (gives_memory(call.kind))
                for (Block& block : all_)
                    if (block.address == call.address) block.live = false;
        }
    }
    Peer::Place place(Address address) const {
        for (std::size_t i = 0; i < all_.size(); ++i)
            if (all_[i].live && all_[i].address <= address && address - all_[i].address < unsigned_size(all_[i].bytes))
                return {i, static_cast<Bytes>(address - all_[i].address)};
        return {all_.size(), 0};
    }
    // Is this where the recorded block of the place is?
    bool agree(const Peer::Place& place, Bytes recorded) {
        if (place.block == all_.size()) return false;
        const Bytes base = recorded - place.offset;
        if (!all_[place.block].recorded) all_[place.block].recorded = base;
        return *all_[place.block].recorded == base;
    }
    std::optional<Address> address(Bytes recorded) const {
        for (const Block& block : all_)
            if (block.live && block.recorded && *block.recorded <= recorded &&
                recorded - *block.recorded < block.bytes)
                return block.address + static_cast<Address>(recorded - *block.recorded);
        return {};
    }

private:
    static Address unsigned_size(Bytes bytes) { return static_cast<Address>(bytes); }
    struct Block {
        Address address;
        Bytes bytes;
        bool live;
        std::optional<Bytes> recorded;  // where it was
    };
    std::vector<Block> all_;
    std::size_t seen_ = 0;
};

// CuPy's pool with the recorded run's choice among chunks of equal size.
class RecordedChoice final : public cupy::Pool {
public:
    using Pool::Pool;
    std::optional<Address> next;

private:
    std::optional<Address> preferred() const override { return next; }
};

class Comparison {
public:
    // `choice`: among equal chunks of CuPy's take the recorded one.
    Comparison(const Peer& peer, const Trace& trace, bool choice)
        : peer_(peer), trace_(trace), device_(host_, CostModel::h200()) {
        const PolicySpec spec = parse_policy_spec(peer.policy, policies());
        if (choice) {
            std::optional<Bytes> limit;
            for (const auto& [name, value] : spec.given)
                if (name == "size") limit = std::stoll(value);
            auto pool = std::make_unique<RecordedChoice>(limit, device_);
            chooser_ = pool.get();
            policy_ = std::move(pool);
        } else {
            policy_ = spec.info->make(spec.given, {device_, {}, trace.pools});
        }
    }

    // "": none.
    std::string first_divergence() {
        if (peer_.kind == "bfc") {  // JAX had allocated and freed one byte
            const BufferId extra{static_cast<std::uint32_t>(trace_.buffers.size())};
            policy_->allocate(extra, {1, {0}});
            policy_->free(extra);
        }
        std::vector<bool> live(trace_.buffers.size());
        for (const Event event : trace_.events) {
            if (!is_op(event.kind())) continue;
            const BufferId buffer{event.subject};
            device_.begin_op(op_);
            std::string difference;
            if (event.kind() == EventKind::alloc)
                live[buffer.value] = allocate(buffer, difference);
            else if (live[buffer.value])
                policy_->free(buffer);
            if (difference.empty()) difference = compare_state();
            if (!difference.empty())
                return fmt::format("{} {}, --policy {}\nop {}, {} of {} bytes: {}", peer_.trace, peer_.config,
                    peer_.policy, op_, event.kind() == EventKind::alloc ? "allocation" : "free",
                    trace_.buffers[buffer.value].requested, difference);
            ++op_;
        }
        return op_ == peer_.ops ? "" : fmt::format("{} ops, recorded {}", op_, peer_.ops);
    }

private:
    bool allocate(BufferId buffer, std::string& difference) {
        const std::optional<Peer::Place>* recorded = peer_.places.empty() ? nullptr : &peer_.places.at(allocations_++);
        if (chooser_) chooser_->next = *recorded ? blocks_.address((*recorded)->offset) : std::nullopt;
        const auto placement = policy_->allocate(buffer, request_of(trace_.buffers[buffer.value]));
        const bool fails = std::binary_search(peer_.failed_ops.begin(), peer_.failed_ops.end(), op_);
        if (placement.has_value() == fails) difference = fails ? "served, recorded: refused" : "refused, recorded: served";
        blocks_.update(device_.calls());
        if (!placement || !recorded || !*recorded || !difference.empty()) return placement.has_value();
        const Peer::Place place = blocks_.place(placement->address);
        if (peer_.kind == "rmm") {
            if (place.block != (*recorded)->block || place.offset != (*recorded)->offset)
                difference = fmt::format("at {}+{}, recorded {}+{}", place.block, place.offset, (*recorded)->block,
                    (*recorded)->offset);
        } else if (!blocks_.agree(place, (*recorded)->offset)) {
            difference = fmt::format("at {}+{}, recorded {:#x}", place.block, place.offset, (*recorded)->offset);
        }
        return true;
    }

    std::string compare_state() {
        const AllocatorStats& stats = policy_->stats();
        if (peer_.kind == "rmm") {
            for (; calls_seen_ < device_.calls().size(); ++calls_seen_) {
                const DriverCall& call = device_.calls()[calls_seen_];
                if (!takes_memory(call.kind) && !gives_memory(call.kind)) continue;
                const Peer::UpstreamCall made{call.op, takes_memory(call.kind) ? 'A' : 'F', call.bytes};
                if (upstream_ == peer_.upstream.size()) return fmt::format("{} {}, recorded none", made.kind, made.bytes);
                const Peer::UpstreamCall& wanted = peer_.upstream[upstream_++];
                if (!(made == wanted))
                    return fmt::format("{} {}, recorded at op {} {} {}", made.kind, made.bytes, wanted.op, wanted.kind,
                        wanted.bytes);
            }
            if (upstream_ < peer_.upstream.size() && peer_.upstream[upstream_].op <= op_)
                return fmt::format("no call, recorded {} {}", peer_.upstream[upstream_].kind,
                    peer_.upstream[upstream_].bytes);
        } else if (peer_.kind == "cupy") {
            if (const auto total = peer_.total_bytes.find(op_); total != peer_.total_bytes.end())
                total_bytes_ = total->second;
            if (stats.reserved_bytes.all.current != total_bytes_)
                return fmt::format("total_bytes {}, recorded {}", stats.reserved_bytes.all.current, total_bytes_);
        } else {
            const std::array<Bytes, 4> ours{stats.allocated_bytes.all.current, stats.reserved_bytes.all.current,
                policy_->largest_free(), stats.allocated_bytes.all.peak};
            if (ours != peer_.stats.at(op_))
                return fmt::format("in use, pool, largest free, peak: {}, recorded {}", fmt::join(ours, " "),
                    fmt::join(peer_.stats[op_], " "));
        }
        return "";
    }

    const Peer& peer_;
    const Trace& trace_;
    HostDevice host_{{}};
    LoggedDevice device_;
    std::unique_ptr<Policy> policy_;
    RecordedChoice* chooser_ = nullptr;
    Blocks blocks_;
    std::uint32_t op_ = 0;
    std::size_t allocations_ = 0, calls_seen_ = 0, upstream_ = 0;
    Bytes total_bytes_ = 0;
};

struct Score {
    int runs = 0, exact = 0, with_places = 0;
    std::int64_t ops = 0, failures = 0;
};
using Scores = std::map<std::string, Score>;  // by family

// Where CuPy's choice among equal chunks was recorded, it is made; where it was not, ours may lead elsewhere.
std::string family(const Peer& peer) {
    const std::string policy = peer.policy.substr(0, peer.policy.find(':'));
    if (peer.kind != "cupy") return policy;
    return policy + (peer.places.empty() ? ", its choice among equal chunks unknown" : ", its choice among equal chunks");
}

Scores compare(const std::string& path, const std::function<std::optional<std::string>(const std::string&)>& find) {
    Scores scores;
    for_each_peer(path, find, [&](const Peer& peer, const Trace& trace) {
        const bool choice = peer.kind == "cupy" && !peer.places.empty();
        const std::string divergence = Comparison(peer, trace, choice).first_divergence();
        Score& score = scores[family(peer)];
        ++score.runs, score.exact += divergence.empty(), score.with_places += !peer.places.empty();
        score.ops += peer.ops, score.failures += static_cast<std::int64_t>(peer.failed_ops.size());
        if (peer.kind != "cupy" || choice) CHECK(divergence == "");
    });
    return scores;
}

}  // namespace

TEST_CASE("bundled programs get what other people's allocators gave them", "[differential][peers]") {
    const Scores scores = compare(source_dir() + "/tests/data/peers.jsonl.gz", [](const std::string& trace) {
        return std::optional(source_dir() + "/traces/samples/" + trace + ".default.pickle.gz");
    });
    for (const auto& [name, score] : scores) {
        INFO(name);
        CHECK(score.exact == score.runs);
    }
    CHECK(scores.size() == 5);
}

TEST_CASE("the table of other people's allocators in policies/README.md is what the code does",
    "[differential][peers][written][shared]") {
    const auto file = shared_file("truth/peers.jsonl.gz");
    if (!file) return;
    const Scores scores = compare(*file, [](const std::string& trace) {
        return shared_file("truth/workloads/" + trace + ".default.pickle.gz");
    });
    std::string table = "| policy | runs | exact | ops | out of memory | runs with every place recorded |\n"
                        "| --- | --- | --- | --- | --- | --- |\n";
    Score all;
    for (const auto& [name, score] : scores) {
        table += fmt::format("| {} | {} | {} | {} | {} | {} |\n", name, score.runs, score.exact,
            format_count(score.ops), format_count(score.failures), score.with_places);
        all.runs += score.runs;
    }
    CHECK(all.runs == 96);
    check_written_table("policies/README.md", "against other people's allocators", table);
}
