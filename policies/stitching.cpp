// GMLake: physical blocks that lie apart are stitched into one range of addresses; the rules are in policies/gmlake/.
#include "lib/policy/parameters.hpp"
#include "policies/gmlake/stitching.hpp"

namespace fragsim {

PolicyInfo stitching_policy() {
    PolicyInfo info;
    info.name = "stitching";
    info.summary =
        "GMLake: free blocks that lie apart are mapped once more, one behind the other, as one block.\n"
        "Almost nothing above 2 MiB is lost; every new combination costs a mapping a chunk.";
    info.reference = "GMLake, Guo et al. 2024 (arXiv 2401.08156); intelligent-machine-learning/glake (07/2024)";
    info.remaps = true;
    info.parameters = {
        {"variant", "paper|released", "paper", "the published rule, or what the released code does"},
        {"chunk_bytes", "bytes", "2MiB", "unit of memory; a multiple of 2 MiB"},
        {"small_limit_bytes", "bytes", "1MiB", "smaller requests are served from 2 MiB segments and never stitched"},
        {"frag_limit_bytes", "bytes", "0",
            "paper: smaller blocks are not stitched (2 MiB); released: smaller requests are not (512 MiB); 0: these"},
        {"stitch_limit", "count", "64", "paper: stitched blocks that are kept; released keeps 1000 GiB of addresses"},
        {"reuse_limit", "count", "10", "released: a stitched block may serve a request that much smaller"},
        {"defrag_level", "count", "0",
            "0: stitch before new memory is got; 1: when there is none; 2: when giving back did not help (released)"},
    };
    info.make = [known = info.parameters](const Parameters& given, const PolicyContext& context) {
        const ParameterReader read("stitching", known, given);
        gmlake::StitchingConfig config{read.choice<gmlake::Variant>("variant"), read.bytes("chunk_bytes"),
            read.bytes("small_limit_bytes"), read.bytes("frag_limit_bytes"), read.count("stitch_limit", 0, 1'000'000),
            read.count("reuse_limit", 1, 1'000'000), read.count("defrag_level", 0, 2)};
        if (config.chunk < 2 * kMiB || config.chunk % (2 * kMiB) != 0)
            read.refuse("chunk_bytes", "a multiple of 2 MiB");
        if (config.frag_limit == 0)
            config.frag_limit = config.variant == gmlake::Variant::paper ? 2 * kMiB : 512 * kMiB;
        return std::make_unique<gmlake::Stitching>(config, context.device);
    };
    return info;
}

}  // namespace fragsim
