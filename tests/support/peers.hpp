// What other people's allocators answered to recorded and generated programs (truth/peers.jsonl.gz), and the policy of
// ours that each stands for.
#pragma once

#include <array>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lib/core/types.hpp"
#include "lib/trace/trace.hpp"

namespace fragsim::test {

struct Peer {
    std::string kind;  // rmm, cupy, bfc
    std::string trace, config;
    std::string policy;  // as on the command line
    std::uint32_t ops;
    std::vector<std::uint32_t> failed_ops;

    struct UpstreamCall {
        std::uint32_t op;
        char kind;  // A got, F given back
        Bytes bytes;
        friend bool operator==(const UpstreamCall&, const UpstreamCall&) = default;
    };
    std::vector<UpstreamCall> upstream;  // rmm

    // By allocation; none: refused. rmm: which block of upstream's, and how far into it. The others: an address, block 0.
    struct Place {
        std::size_t block;
        Bytes offset;
    };
    std::vector<std::optional<Place>> places;  // empty: not recorded

    std::map<std::uint32_t, Bytes> total_bytes;  // cupy: after the ops at which it changed
    // bfc: bytes in use, of the pool, of the largest free chunk, and in use at their peak; after every op
    std::vector<std::array<Bytes, 4>> stats;
};

// Every run of the file; the generated programs in it are read first. `find` gives the file of a recorded workload; none:
// not at hand, its runs are passed over.
void for_each_peer(const std::string& path,
    const std::function<std::optional<std::string>(const std::string& trace)>& find,
    const std::function<void(const Peer& peer, const Trace& trace)>& visit);

}  // namespace fragsim::test
