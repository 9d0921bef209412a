// The model of the stream-ordered pool, and its reference, against the recordings of tests/gpu/results/async_pool:
// capped pools, partial releases, the order of streams. Programs with events or destroyed streams are left out, and
// those in which streams open and close on the way: the pool's interface has no such calls.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "lib/device/host_device.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/reference_async_pool.hpp"
#include "tests/support/truth.hpp"

using namespace fragsim;
using namespace fragsim::test;

namespace {

using Row = std::vector<std::string>;  // op,id,bytes,stream,pointer,reserved,used,ns

std::vector<std::vector<Row>> read_programs(const std::string& file) {
    std::vector<std::vector<Row>> programs;
    for_each_line(source_dir() + "/tests/gpu/results/async_pool/" + file, [&](const std::string& line) {
        Row row = split(line, ',');
        if (row[0] == "op") return;
        if (row[0] == "P") programs.emplace_back();
        programs.back().push_back(std::move(row));
    });
    std::erase_if(programs, [](const std::vector<Row>& program) {
        return std::any_of(program.begin(), program.end(),
            [](const Row& row) { return row[0] == "W" || row[0] == "E" || row[0] == "X"; });
    });
    return programs;
}

// P,number,release threshold,reuse flags,maxSize
ReferenceAsyncPool::Settings settings_of(const Row& head, bool idle) {
    constexpr unsigned long long kLargest = 1ULL << 62;  // as good as the 2^64 - 1 that means: keep all
    return {static_cast<Bytes>(std::min(std::stoull(head[2]), kLargest)), head[3][1] == '1', head[3][2] == '1',
        std::stoll(head[4]), idle};
}

class Model {
public:
    Model(const ReferenceAsyncPool::Settings& settings, Device& device) {
        PoolProperties properties;
        properties.release_threshold = settings.threshold;
        properties.allow_opportunistic = settings.opportunistic;
        properties.allow_internal_dependencies = settings.internal;
        if (settings.max_size > 0) properties.max_size = settings.max_size;
        properties.progress = settings.idle ? GpuProgress::idle : GpuProgress::never;
        pool_ = device.create_pool(properties);
    }
    std::optional<Address> allocate(int id, Bytes bytes, int stream) {
        const auto got = pool_->allocate(bytes, id_of(stream));
        if (!got) return {};
        live_[id] = *got;
        return got->address;
    }
    void free(int id, int stream) { pool_->free(live_.extract(id).mapped(), id_of(stream)); }
    void synchronize(std::optional<int> stream) {
        pool_->synchronized(stream ? std::optional(id_of(*stream)) : std::nullopt);
    }
    void trim(Bytes keep) { pool_->trim_to(keep); }
    Bytes reserved() const { return pool_->reserved(); }

private:
    static StreamId id_of(int stream) { return {static_cast<std::uint32_t>(stream)}; }
    std::unique_ptr<StreamOrderedPool> pool_;
    std::map<int, StreamOrderedPool::Allocation> live_;
};

class Reference {
public:
    Reference(const ReferenceAsyncPool::Settings& settings, Device& device) : pool_(settings, device) {}
    std::optional<Address> allocate(int id, Bytes bytes, int stream) {
        const auto got = pool_.allocate(id, bytes, stream);
        return got ? std::optional(got->address) : std::nullopt;
    }
    void free(int id, int stream) { pool_.free(id, stream); }
    void synchronize(std::optional<int> stream) { pool_.synchronize(stream); }
    void trim(Bytes keep) { pool_.trim(keep); }
    Bytes reserved() const { return pool_.reserved(); }

private:
    ReferenceAsyncPool pool_;
};

// "": all as recorded. Otherwise the first row that is not.
template <class Pool>
std::string first_difference(const std::vector<Row>& program, bool idle) {
    HostDevice device({});
    Pool pool(settings_of(program.front(), idle), device);
    std::optional<Bytes> start, recorded_start;
    for (const Row& row : program) {
        const char op = row[0][0];
        const int id = std::stoi(row[1]), stream = row[3].empty() ? 0 : std::stoi(row[3]);
        const Bytes bytes = op == 'P' ? 0 : std::stoll(row[2]);
        std::string place;
        switch (op) {
            case 'A':
            case 'O': {
                const auto got = pool.allocate(id, bytes, stream);
                if (got.has_value() != (op == 'A')) place = got ? "served, " : "out of memory, ";
                if (!got || op == 'O') break;
                const Bytes address = static_cast<Bytes>(*got), recorded = std::stoll(row[4]);
                if (!start) start = address, recorded_start = recorded;
                if (address - *start != recorded - *recorded_start)
                    place = fmt::format("at +{} instead of +{}, ", address - *start, recorded - *recorded_start);
                break;
            }
            case 'F': pool.free(id, stream); break;
            case 'S':
                if (stream >= 0) pool.synchronize(stream);  // the legacy stream has nothing of its own
                break;
            case 'D': pool.synchronize({}); break;
            case 'T': pool.trim(bytes); break;
            default: continue;  // a stream made, or closed for the whole program
        }
        if (!place.empty() || pool.reserved() != std::stoll(row[5]))
            return fmt::format(
                "program {}: {}: {}reserved {}", program.front()[1], fmt::join(row, ","), place, pool.reserved());
    }
    return "";
}

void check(const std::string& name, std::size_t programs) {
    const bool idle = name.ends_with(".idle");
    const auto all = read_programs(name + ".csv.gz");
    CHECK(all.size() == programs);
    for (const auto& program : all) {
        CHECK(first_difference<Model>(program, idle) == "");
        CHECK(first_difference<Reference>(program, idle) == "");
    }
}

}  // namespace

TEST_CASE("the pool looks at other streams in the order of their first use", "[differential][async-pool]") {
    check("order.idle", 22);
    check("order.hold", 4);
}

TEST_CASE("the pool releases after each range that a synchronisation moves", "[differential][async-pool]") {
    check("release.idle", 24);
    check("sync.idle", 130);
}

TEST_CASE("a capped pool keeps what it got in vain and takes what other streams freed", "[differential][async-pool]") {
    check("capped.idle", 24);
    check("capped.hold", 18);
}

TEST_CASE("the pool's addresses do not end", "[differential][async-pool]") { check("endless.idle", 1); }
