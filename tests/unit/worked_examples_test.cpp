// The worked examples of spec/policies.md, sections 1 to 7, by their numbers, through the interface of a policy.
//
// Where the specification counts in bytes smaller than a policy takes, the example is scaled: buddy by 8, the fits by
// 512. Where it frees on a stream that did not allocate, the block is allocated on the freeing stream. What
// async-pool-rule.md replaced is here as that rule has it; X are experiments of measured-h200.md. RA3 is not here: it
// needs a free on another stream.
#include <fmt/format.h>

#include <algorithm>
#include <sstream>

#include "policies/registry.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/reference_policies.hpp"
#include "tests/support/reference_program.hpp"
#include "tests/support/script.hpp"
#include "tests/support/upward_device.hpp"

using namespace fragsim;
using namespace fragsim::test;

namespace {

struct Example {
    const char* number;
    const char* says;
    const char* policy;
    const char* program;   // as in tests/support/script.hpp
    const char* places;    // of the allocations: RANGE+OFFSET:BYTES SET ASIDE; ranges got from the device count from 0
    const char* reserved;  // at the end
    const char* free = nullptr;      // the sizes of free ranges at the end, ascending
    const char* capacity = nullptr;  // none: no bound
};

// clang-format off
const std::vector<Example> kExamples{
    {"CM1", "an async pool grows in chunks of 32 MiB", "async-pool", "a 0 1", "0+0:512", "32M"},
    {"CM1", "the free end of the last chunk counts towards the need", "async-pool", "a 0 20M; a 1 40M", "0+0:20M 0+20M:40M", "64M"},
    {"CM2", "memory freed on a stream is reused there at once", "async-pool:gpu_progress=never", "a 0 10M 0; a 1 22M 0; f 0; a 2 10M 0", "0+0:10M 0+10M:22M 0+0:10M", "32M"},
    {"CM2", "another stream does not get it while the GPU has not passed the free", "async-pool:gpu_progress=never", "a 0 10M 0; a 1 22M 0; f 0; a 2 10M 1", "0+0:10M 0+10M:22M 0+32M:10M", "64M"},
    {"CM2", "another stream gets it once the GPU has passed the free", "async-pool", "a 0 10M 0; a 1 22M 0; f 0; a 2 10M 1", "0+0:10M 0+10M:22M 0+0:10M", "32M"},
    {"CM2", "but not without opportunistic reuse", "async-pool:reuse_allow_opportunistic=false", "a 0 10M 0; a 1 22M 0; f 0; a 2 10M 1", "0+0:10M 0+10M:22M 0+32M:10M", "64M"},
    {"CM2", "a full pool makes a stream wait for another", "async-pool:gpu_progress=never", "a 0 10M 0; a 1 22M 0; f 0; a 2 10M 1", "0+0:10M 0+10M:22M 0+0:10M", "32M", nullptr, "32M"},
    {"CM2", "but not without internal dependencies", "async-pool:gpu_progress=never,reuse_allow_internal_dependencies=false", "a 0 10M 0; a 1 22M 0; f 0; a 2 10M 1", "0+0:10M 0+10M:22M oom", "32M", nullptr, "32M"},
    {"CM3", "a free alone gives nothing back", "async-pool", "a 0 100M; f 0", "0+0:100M", "128M"},
    {"CM3", "a synchronisation does", "async-pool", "a 0 100M; f 0; s 0", "0+0:100M", "0"},
    {"CM3", "down to the threshold", "async-pool:release_threshold_bytes=67108864", "a 0 100M; f 0; s 0", "0+0:100M", "64M"},
    {"CM3", "one live block pins its chunk", "async-pool:release_threshold_bytes=1073741824", "a 0 8M; a 1 8M; a 2 8M; a 3 8M; a 4 8M; a 5 8M; f 1; f 2; f 3; f 4; f 5; s; e",
        "0+0:8M 0+8M:8M 0+16M:8M 0+24M:8M 0+32M:8M 0+40M:8M", "32M"},
    {"CM4", "free chunks move to where the block goes", "async-pool:release_threshold_bytes=1073741824", "a 0 32M; a 1 32M; a 2 32M; a 3 32M; a 4 32M; a 5 32M; a 6 32M; a 7 32M; f 1; f 3; f 5; f 7; s 0; a 8 96M",
        "0+0:32M 0+32M:32M 0+64M:32M 0+96M:32M 0+128M:32M 0+160M:32M 0+192M:32M 0+224M:32M 0+224M:96M", "256M"},
    {"CM5", "chunks that are half in use do not move", "async-pool:release_threshold_bytes=1073741824", "a 0 16M; a 1 16M; a 2 16M; a 3 16M; a 4 16M; a 5 16M; f 1; f 3; f 5; s 0; a 6 48M",
        "0+0:16M 0+16M:16M 0+32M:16M 0+48M:16M 0+64M:16M 0+80M:16M 0+80M:48M", "128M"},
    {"CM7", "a KiB in each of four chunks pins all of them", "async-pool:release_threshold_bytes=1073741824", "a 0 1K; a 1 32M-1K; a 2 1K; a 3 32M-1K; a 4 1K; a 5 32M-1K; a 6 1K; a 7 32M-1K; f 1; f 3; f 5; f 7; s; e",
        "0+0:1K 0+1K:32767K 0+32M:1K 0+32769K:32767K 0+64M:1K 0+65537K:32767K 0+96M:1K 0+98305K:32767K", "128M"},

    {"X8", "a pool takes the best fit, whatever was freed first", "async-pool:release_threshold_bytes=1073741824",
        "a 0 8M; a 1 1M; a 2 3M; a 3 1M; a 4 5M; a 5 1M; a 6 2M; a 7 1M; a 8 4M; a 9 1M; f 4; f 0; f 8; f 2; f 6; s 0; a 10 3M; a 11 2M+512K; a 12 4M; a 13 1M",
        "0+0:8M 0+8M:1M 0+9M:3M 0+12M:1M 0+13M:5M 0+18M:1M 0+19M:2M 0+21M:1M 0+22M:4M 0+26M:1M 0+9M:3M 0+22M:2560K 0+13M:4M 0+17M:1M", "32M"},
    {"X9", "neighbours freed on two streams join once they are complete", "async-pool", "a 0 8M 0; a 1 8M 1; f 0; f 1; a 2 16M 0", "0+0:8M 0+8M:8M 0+0:16M", "32M"},
    {"X17", "waiting for another stream gives nothing back", "async-pool", "a 0 100M 0; f 0; s 1", "0+0:100M", "128M"},
    {"X17", "the threshold is rounded down to chunks", "async-pool:release_threshold_bytes=104857600", "a 0 200M 0; f 0; s 0", "0+0:200M", "96M"},
    {"X19", "large blocks are split", "async-pool", "a 0 1G; f 0; a 1 600M; a 2 300M", "0+0:1G 0+0:600M 0+600M:300M", "1G"},
    {"X20", "the largest size is rounded up to chunks", "async-pool:max_size_bytes=104857600", "a 0 100M; a 1 28M; a 2 1M", "0+0:100M 0+100M:28M oom", "128M"},

    {"BU1", "a buddy takes the smallest free block, the lowest of them, and halves it", "buddy:min_block_bytes=512,arena_bytes=8192,max_arenas=1", "a 0 800; a 1 1600; a 2 512; a 3 520",
        "0+0:1K 0+2K:2K 0+1K:512 0+4K:1K", "8K", "512 1K 2K"},
    {"BU2", "buddies join, neighbours that are no buddies do not", "buddy:min_block_bytes=512,arena_bytes=8192,max_arenas=1", "a 0 800; a 1 1600; a 2 512; a 3 520; f 2; f 0; f 3; a 4 4104",
        "0+0:1K 0+2K:2K 0+1K:512 0+4K:1K oom", "8K", "2K 4K"},
    {"BU3", "one byte more than half takes the whole", "buddy:min_block_bytes=512,arena_bytes=8192", "a 0 4104", "0+0:8K", "8K", ""},
    {"BU4", "a second arena", "buddy:min_block_bytes=512,arena_bytes=8192,max_arenas=2", "a 0 8192; a 1 512", "0+0:8K 1+0:512", "16K"},
    {"BU5", "half of the memory free and no two blocks of it together", "buddy:min_block_bytes=512,arena_bytes=4096,max_arenas=1", "a 0 512; a 1 512; a 2 512; a 3 512; a 4 512; a 5 512; a 6 512; a 7 512; f 1; f 3; f 5; f 7; a 8 1K",
        "0+0:512 0+512:512 0+1K:512 0+1536:512 0+2K:512 0+2560:512 0+3K:512 0+3584:512 oom", "4K", "512 512 512 512"},
    {"BU6", "a lazy buddy keeps blocks as they are while there is slack", "buddy:min_block_bytes=512,arena_bytes=8192,lazy=svr4", "a 0 512; a 1 512; a 2 512; a 3 512; f 1; f 3",
        "0+0:512 0+512:512 0+1K:512 0+1536:512", "8K", "512 512 2K 4K"},
    {"BU6", "the newest lazy block is taken first", "buddy:min_block_bytes=512,arena_bytes=8192,lazy=svr4", "a 0 512; a 1 512; a 2 512; a 3 512; f 1; f 3; a 4 512",
        "0+0:512 0+512:512 0+1K:512 0+1536:512 0+1536:512", "8K", "512 2K 4K"},
    {"BU6", "without slack a block is joined, and the oldest lazy one with it", "buddy:min_block_bytes=512,arena_bytes=8192,lazy=svr4", "a 0 512; a 1 512; a 2 512; a 3 512; f 1; f 3; f 0",
        "0+0:512 0+512:512 0+1K:512 0+1536:512", "8K", "512 1K 2K 4K"},
    {"BU6", "until everything is back", "buddy:min_block_bytes=512,arena_bytes=8192,lazy=svr4", "a 0 512; a 1 512; a 2 512; a 3 512; f 1; f 3; f 0; f 2",
        "0+0:512 0+512:512 0+1K:512 0+1536:512", "8K", "8K"},

    {"RP1", "RMM's pool doubles, or grows by the request where that is more", "rmm-pool:initial_pool_bytes=4096", "a 0 1000; a 1 1; a 2 4096; a 3 100; a 4 20000",
        "0+0:1K 0+1K:256 1+0:4K 0+1280:256 2+0:20224", "28416"},
    {"RP2", "a stream takes from another's list, which keeps the rest", "rmm-pool:initial_pool_bytes=4096", "a 0 1K 1; a 1 1K 2; a 2 2K 0; f 0; f 1; a 3 512 3; a 4 512 1",
        "0+0:1K 0+1K:1K 0+2K:2K 0+0:512 0+512:512", "4K"},
    {"RP3", "lists are merged when none of them suffices", "rmm-pool:initial_pool_bytes=4096", "a 0 1K 1; a 1 1K 2; a 2 2K 0; f 0; f 1; a 3 512 3; f 3; a 4 2K 3",
        "0+0:1K 0+1K:1K 0+2K:2K 0+0:512 0+0:2K", "4K"},
    {"RP4", "under a maximum it grows by half of what is left, then by the request", "rmm-pool:initial_pool_bytes=1024,maximum_pool_bytes=8192", "a 0 1K; a 1 256; a 2 3584; a 3 4K",
        "0+0:1K 1+0:256 2+0:3584 oom", "8K"},
    {"RP4", "half of what is left", "rmm-pool:initial_pool_bytes=1024,maximum_pool_bytes=8192", "a 0 1K; a 1 256", "0+0:1K 1+0:256", "4608"},
    {"RP5", "a device that refuses is asked for half as much", "rmm-pool:initial_pool_bytes=8388608", "a 0 8M; a 1 1M", "0+0:8M 1+0:1M", "12M", "3M", "12M"},
    {"RP2", "what was got at the start is in the default stream's list, apart from what other streams freed", "rmm-pool:initial_pool_bytes=4096", "a 0 1K; f 0; a 1 2K", "0+0:1K 0+1K:2K", "4K"},
    {"RP2", "a program on the default stream joins them", "rmm-pool:initial_pool_bytes=4096,first_stream_is_default=true", "a 0 1K; f 0; a 1 2K", "0+0:1K 0+0:2K", "4K"},
    {"RP6", "a block that is wholly free goes back where the maximum is in the way", "rmm-pool:initial_pool_bytes=1024,maximum_pool_bytes=8192", "a 0 1K; a 1 256; f 1; a 2 4K",
        "0+0:1K 1+0:256 2+0:4K", "5K"},
    {"RP6", "not one that is in use", "rmm-pool:initial_pool_bytes=1024,maximum_pool_bytes=8192", "a 0 1K; a 1 256; a 2 4K", "0+0:1K 1+0:256 oom", "4608"},
    {"RP6", "and none for a request above the maximum", "rmm-pool:initial_pool_bytes=1024,maximum_pool_bytes=8192", "a 0 1K; a 1 256; f 1; a 2 9K", "0+0:1K 1+0:256 oom", "4608"},

    {"RA1", "each stream takes a superblock", "rmm-arena:arena_bytes=8388608", "a 0 100 0; a 1 100 1", "0+0:256 0+1M:256", "8M"},
    {"RA2", "a large block is a superblock, and joins its empty neighbours when it is freed", "rmm-arena:arena_bytes=8388608", "a 0 100 0; a 1 100 1; a 2 3M 0; f 2; a 3 6M 0",
        "0+0:256 0+1M:256 0+2M:3M 0+2M:6M", "8M"},
    {"RA4", "streams give their superblocks back when a request fails", "rmm-arena:arena_bytes=8388608", "a 0 100 0; a 1 100 1; a 2 3M 0; f 2; f 1; a 3 7M 0",
        "0+0:256 0+1M:256 0+2M:3M 0+1M:7M", "8M"},
    {"RA5", "and then it is out of memory", "rmm-arena:arena_bytes=8388608", "a 0 100 0; a 1 100 1; f 1; a 2 7M 0; a 3 2M 0", "0+0:256 0+1M:256 0+1M:7M oom", "8M"},

    {"RF1", "a bin begins with a chunk", "rmm-binning:min_size_exponent=20,max_size_exponent=20,blocks_per_chunk=4", "a 0 1M; a 1 1M; a 2 1M; a 3 1M", "0+0:1M 0+1M:1M 0+2M:1M 0+3M:1M", "4M"},
    {"RF1", "and takes another for the next block", "rmm-binning:min_size_exponent=20,max_size_exponent=20,blocks_per_chunk=4", "a 0 1M; a 1 1M; a 2 1M; a 3 1M; a 4 1M",
        "0+0:1M 0+1M:1M 0+2M:1M 0+3M:1M 1+0:1M", "8M"},
    {"RF2", "freed blocks queue behind the others of their stream", "rmm-binning:min_size_exponent=20,max_size_exponent=20,blocks_per_chunk=4,first_stream_is_default=true", "a 0 1M; a 1 1M; a 2 1M; f 1; f 0; a 3 1M; a 4 1M; a 5 1M",
        "0+0:1M 0+1M:1M 0+2M:1M 0+3M:1M 0+1M:1M 0+0:1M", "4M"},
    {"RF2", "a stream that is not the default one takes what it freed before what was there at the start", "rmm-binning:min_size_exponent=20,max_size_exponent=20,blocks_per_chunk=4", "a 0 1M; a 1 1M; a 2 1M; f 1; f 0; a 3 1M; a 4 1M; a 5 1M",
        "0+0:1M 0+1M:1M 0+2M:1M 0+1M:1M 0+0:1M 0+3M:1M", "4M"},
    {"RF3", "the smallest bin that is large enough, the pool for what is larger than all", "rmm-binning", "a 0 100; a 1 300K; a 2 5M", "0+0:256K 1+0:512K *:5M", "*"},
    {"RF4", "bins do not share", "rmm-binning:min_size_exponent=18,max_size_exponent=19,blocks_per_chunk=2", "a 0 512K; a 1 512K; a 2 512K", "1+0:512K 1+512K:512K *:512K", "*"},

    {"CU1", "CuPy's pool asks for what is needed, in units of 512", "cupy-pool", "a 0 1; a 1 600", "0+0:512 1+0:1K", "1536"},
    {"CU2", "a chunk is cut", "cupy-pool", "a 0 4K; f 0; a 1 1K; a 2 3K", "0+0:4K 0+0:1K 0+1K:3K", "4K"},
    {"CU2", "the smallest that is large enough", "cupy-pool", "a 0 4K; a 1 2K; f 0; f 1; a 2 1K", "0+0:4K 1+0:2K 1+0:1K", "6K"},
    {"CU2", "and is whole again when both parts are free", "cupy-pool", "a 0 4K; f 0; a 1 1K; a 2 3K; f 1; f 2; a 3 4K", "0+0:4K 0+0:1K 0+1K:3K 0+0:4K", "4K"},
    {"CU3", "another stream does not get it", "cupy-pool", "a 0 4K 0; f 0; a 1 4K 1", "0+0:4K 1+0:4K", "8K"},
    {"CU4", "whole chunks go back when the limit is in the way, whichever stream has them", "cupy-pool:size=8192", "a 0 4K 1; a 1 2K; f 0; a 2 5K", "0+0:4K 1+0:2K 2+0:5K", "7K"},
    {"CU4", "what was cut stays", "cupy-pool:size=8192", "a 0 4K; f 0; a 1 1K; a 2 6K", "0+0:4K 0+0:1K oom", "4K"},
    {"CU5", "and when the device refuses", "cupy-pool", "a 0 4M; f 0; a 1 6M", "0+0:4M 1+0:6M", "6M", nullptr, "8M"},

    {"BF1", "BFC's regions double", "bfc:memory_limit_bytes=1073741824", "a 0 1000; a 1 2M; a 2 20M", "0+0:1K 1+0:2M 2+0:32M", "38M"},
    {"BF2", "less than twice the request is handed out whole", "bfc:memory_limit_bytes=1073741824", "a 0 2M; f 0; a 1 1M+256", "0+0:2M 0+0:2M", "2M", ""},
    {"BF2", "twice the request is split", "bfc:memory_limit_bytes=1073741824", "a 0 2M; f 0; a 1 1M", "0+0:2M 0+0:1M", "2M", "1M"},
    {"BF3", "without growth the limit is taken at once", "bfc:memory_limit_bytes=1073741824,allow_growth=false", "a 0 1", "0+0:256", "1G"},
    {"BF4", "128 MiB of waste are too much", "bfc:memory_limit_bytes=4294967296", "a 0 512M; f 0; a 1 300M", "0+0:512M 0+0:300M", "512M", "212M"},
    {"BF4", "112 MiB are not", "bfc:memory_limit_bytes=4294967296", "a 0 512M; f 0; a 1 400M", "0+0:512M 0+0:512M", "512M", ""},
    {"BF5", "free regions go back for a larger one", "bfc:memory_limit_bytes=16777216", "a 0 2M; a 1 4M; f 0; f 1; a 2 14M", "0+0:2M 1+0:4M 2+0:16M", "16M"},

    {"FI1", "best fit takes the smallest range that is large enough", "best-fit:arena_bytes=51200,growth=none", "a 0 10240; a 1 2560; a 2 15360; a 3 2560; a 4 5120; a 5 2560; f 0; f 2; f 4; a 6 5120; a 7 9216; a 8 12800",
        "0+0:10K 0+10K:2560 0+12800:15K 0+28160:2560 0+30K:5K 0+35K:2560 0+30K:5K 0+0:9K 0+38400:12800", "50K"},
    {"FI2", "first fit takes the lowest", "first-fit:arena_bytes=51200,growth=none", "a 0 10240; a 1 2560; a 2 15360; a 3 2560; a 4 5120; a 5 2560; f 0; f 2; f 4; a 6 5120; a 7 9216; a 8 12800",
        "0+0:10K 0+10K:2560 0+12800:15K 0+28160:2560 0+30K:5K 0+35K:2560 0+0:5K 0+12800:9K 0+38400:12800", "50K"},
    {"FI3", "next fit goes on behind the last block", "next-fit:arena_bytes=51200,growth=none", "a 0 10240; a 1 2560; a 2 15360; a 3 2560; a 4 5120; a 5 2560; f 0; f 2; f 4; a 6 5120; a 7 9216; a 8 12800",
        "0+0:10K 0+10K:2560 0+12800:15K 0+28160:2560 0+30K:5K 0+35K:2560 0+38400:5K 0+0:9K 0+12800:12800", "50K"},
    {"FI4", "worst fit takes the largest and runs out first", "worst-fit:arena_bytes=51200,growth=none", "a 0 10240; a 1 2560; a 2 15360; a 3 2560; a 4 5120; a 5 2560; f 0; f 2; f 4; a 6 5120; a 7 9216; a 8 12800",
        "0+0:10K 0+10K:2560 0+12800:15K 0+28160:2560 0+30K:5K 0+35K:2560 0+12800:5K 0+38400:9K oom", "50K", "3584 5K 10K 10K"},
    {"TL1", "TLSF charges whole granules", "tlsf:arena_bytes=1048576,growth=none", "a 0 1", "0+0:512", "1M", "1048064"},
    {"TL2", "a block of the request's own class is not looked at", "tlsf:arena_bytes=204800,growth=none", "a 0 99K; a 1 100K+512; a 2 100K", "0+0:99K oom 0+99K:100K", "200K", "1K"},
    {"TL2", "unless that is asked for", "tlsf:arena_bytes=204800,growth=none,exact_class_scan=true", "a 0 99K; a 1 100K+512", "0+0:99K 0+99K:102912", "200K", "512"},

    {"VM1", "memory is mapped block by block, places are aligned to the request's size", "vmm-pool:block_bytes=33554432", "a 0 1; a 1 100M", "0+0:256 0+64K:100M", "128M"},
    {"VM1", "one byte takes a block", "vmm-pool:block_bytes=33554432", "a 0 1", "0+0:256", "32M"},
    {"VM2", "free blocks move to where the request goes", "vmm-pool:block_bytes=33554432", "a 0 32M; a 1 32M; a 2 32M; a 3 32M; a 4 32M; a 5 32M; a 6 32M; a 7 32M; f 1; f 3; f 5; f 7; a 8 96M",
        "0+0:32M 0+32M:32M 0+64M:32M 0+96M:32M 0+128M:32M 0+160M:32M 0+192M:32M 0+224M:32M 0+224M:96M", "256M"},
    {"VM3", "blocks that are half in use do not move", "vmm-pool:block_bytes=33554432", "a 0 16M; a 1 16M; a 2 16M; a 3 16M; a 4 16M; a 5 16M; a 6 16M; a 7 16M; f 1; f 3; f 5; f 7; a 8 32M",
        "0+0:16M 0+16M:16M 0+32M:16M 0+48M:16M 0+64M:16M 0+80M:16M 0+96M:16M 0+112M:16M oom", "128M", nullptr, "128M"},
    {"VM4", "smaller blocks do", "vmm-pool:block_bytes=2097152", "a 0 16M; a 1 16M; a 2 16M; a 3 16M; a 4 16M; a 5 16M; a 6 16M; a 7 16M; f 1; f 3; f 5; f 7; a 8 64M",
        "0+0:16M 0+16M:16M 0+32M:16M 0+48M:16M 0+64M:16M 0+80M:16M 0+96M:16M 0+112M:16M 0+112M:64M", "128M", nullptr, "128M"},

    {"GM1", "GMLake creates what is missing", "stitching", "a 0 8M; a 1 4M; a 2 6M", "0+0:8M 1+0:4M 2+0:6M", "18M"},
    {"GM2", "and stitches before it creates, splitting the last block it takes", "stitching", "a 0 8M; a 1 4M; a 2 6M; f 0; f 2; a 3 12M", "0+0:8M 1+0:4M 2+0:6M 3+0:12M", "18M", "2M"},
    {"GM3", "a stitched block is used again whole", "stitching", "a 0 8M; a 1 4M; a 2 6M; f 0; f 2; a 3 12M; f 3; a 4 12M", "0+0:8M 1+0:4M 2+0:6M 3+0:12M 3+0:12M", "18M", "2M"},
    {"GM4", "a member serves alone, then what is left and a new chunk", "stitching", "a 0 8M; a 1 4M; a 2 6M; f 0; f 2; a 3 12M; f 3; a 4 8M; a 5 8M", "0+0:8M 1+0:4M 2+0:6M 3+0:12M 0+0:8M *:8M", "20M", ""},
    {"GM5", "a missing chunk that exceeds the capacity is out of memory", "stitching", "a 0 8M; a 1 4M; a 2 6M; f 0; a 3 10M", "0+0:8M 1+0:4M 2+0:6M oom", "18M", "8M", "18M"},
    {"GM6", "a larger block is split", "stitching", "a 0 8M; a 1 4M; a 2 6M; f 0; a 3 10M; a 4 3M", "0+0:8M 1+0:4M 2+0:6M oom 0+0:4M", "18M", "4M", "18M"},
};
// clang-format on

std::string size_text(Bytes bytes) {
    if (bytes > 0 && bytes % kGiB == 0) return fmt::format("{}G", bytes / kGiB);
    if (bytes > 0 && bytes % kMiB == 0) return fmt::format("{}M", bytes / kMiB);
    if (bytes > 0 && bytes % kKiB == 0) return fmt::format("{}K", bytes / kKiB);
    return fmt::format("{}", bytes);
}

// "*" stands for any place: only the bytes are compared.
bool is_as_expected(const std::string& place, const std::string& expected) {
    if (!expected.starts_with("*:")) return place == expected;
    return place.ends_with(expected.substr(1));
}

std::unique_ptr<Policy> make(const std::string& text, Device& device, std::optional<Bytes> capacity) {
    const PolicySpec spec = parse_policy_spec(text, policies());
    return spec.info->make(spec.given, {device, {capacity, {}}, {}});
}

void check(const Example& example, UpwardDevice& device, Policy& policy) {
    std::istringstream expected(example.places);
    for (const ReferenceOp& op : parse_program(example.program)) {
        const BufferId buffer{static_cast<std::uint32_t>(op.id)};
        const StreamId stream{static_cast<std::uint32_t>(op.stream)};
        switch (op.kind) {
            case 'a': {
                const auto placed = policy.allocate(buffer, {op.bytes, stream});
                std::string wanted, place = "oom";
                expected >> wanted;
                if (placed) place = device.place(placed->address, size_text) + ":" + size_text(placed->allocated);
                INFO("expected " << wanted << ", got " << place << " for " << op.id);
                CHECK(is_as_expected(place, wanted));
                break;
            }
            case 'f': policy.free(buffer); break;
            case 's': policy.synchronize(op.stream < 0 ? std::nullopt : std::optional(stream)); break;
            default: policy.empty_cache();
        }
    }
    const std::string reserved = size_text(policy.stats().reserved_bytes.all.current);
    CHECK((example.reserved == std::string("*") || bytes_of(example.reserved) == bytes_of(reserved)));
}

void check(const Example& example) {
    INFO(example.number << ": " << example.says << "\n" << example.policy << "\n" << example.program);
    std::optional<Bytes> capacity;
    if (example.capacity) capacity = bytes_of(example.capacity);
    {
        INFO("the reference");
        UpwardDevice device(capacity, 2 * kGiB);
        check(example, device, *reference_as_policy(example.policy, capacity, device));
    }
    UpwardDevice device(capacity, 2 * kGiB);
    const auto policy = make(example.policy, device, capacity);
    check(example, device, *policy);
    if (!example.free) return;
    std::vector<Bytes> sizes;
    policy->free_sizes(sizes);
    std::sort(sizes.begin(), sizes.end());
    std::string free;
    for (const Bytes size : sizes) free += (free.empty() ? "" : " ") + size_text(size);
    CHECK(free == example.free);
}

// All examples whose numbers begin with `family`.
void check_family(const std::string& family) {
    int seen = 0;
    for (const Example& example : kExamples)
        if (std::string(example.number).starts_with(family)) check(example), ++seen;
    CHECK(seen > 0);
}

}  // namespace

TEST_CASE("the examples of the stream-ordered pool come out", "[unit][policy][async-pool]") { check_family("CM"); }
TEST_CASE("experiments on a real stream-ordered pool come out", "[unit][policy][async-pool]") { check_family("X"); }
TEST_CASE("the examples of the binary buddy come out", "[unit][policy][buddy]") { check_family("BU"); }
TEST_CASE("the examples of RMM's pool come out", "[unit][policy][rmm-pool]") { check_family("RP"); }
TEST_CASE("the examples of RMM's arena come out", "[unit][policy][rmm-arena]") { check_family("RA"); }
TEST_CASE("the examples of RMM's bins come out", "[unit][policy][rmm-binning]") { check_family("RF"); }
TEST_CASE("the examples of CuPy's pool come out", "[unit][policy][cupy-pool]") { check_family("CU"); }
TEST_CASE("the examples of BFC come out", "[unit][policy][bfc]") { check_family("BF"); }
TEST_CASE("the examples of the classic fits come out", "[unit][policy][best-fit]") { check_family("FI"); }
TEST_CASE("the examples of TLSF come out", "[unit][policy][tlsf]") { check_family("TL"); }
TEST_CASE("the examples of the virtual memory pool come out", "[unit][policy][vmm-pool]") { check_family("VM"); }
TEST_CASE("the examples of GMLake's stitching come out", "[unit][policy][stitching]") { check_family("GM"); }

TEST_CASE("a pool's statistics count what was asked for", "[unit][policy][async-pool]") {
    UpwardDevice device;
    const auto policy = make("async-pool", device, {});
    REQUIRE(policy->allocate({0}, {1, {0}}));
    CHECK(policy->stats().requested_bytes.all.current == 1);
    CHECK(policy->stats().allocated_bytes.all.current == 512);
    CHECK(policy->stats().reserved_bytes.all.current == 32 * kMiB);
}

// CM6, and the limit of section 1.5.
TEST_CASE("PyTorch frees what several streams used on a stream of its own", "[unit][policy][torch-async]") {
    for (const bool used_by_another : {false, true}) {
        UpwardDevice device;
        const auto policy = make("torch-async:gpu_progress=never", device, {});
        const auto first = policy->allocate({0}, {32 * kMiB, {0}});
        REQUIRE(first);
        if (used_by_another) policy->record_stream({0}, {1});
        policy->free({0});
        const auto second = policy->allocate({1}, {32 * kMiB, {0}});
        REQUIRE(second);
        CHECK(second->address - first->address == (used_by_another ? 32 * kMiB : 0));
    }
}

TEST_CASE(
    "PyTorch refuses what exceeds its part of the memory without asking the pool", "[unit][policy][torch-async]") {
    UpwardDevice device(100 * kMiB, 100 * kMiB);
    const auto policy = make("torch-async:per_process_memory_fraction=0.5", device, 100 * kMiB);
    CHECK(policy->allocate({0}, {40 * kMiB, {0}}));
    CHECK_FALSE(policy->allocate({1}, {10 * kMiB + 1, {0}}));
    CHECK(policy->stats().reserved_bytes.all.current == 64 * kMiB);
    CHECK(policy->allocate({2}, {10 * kMiB, {0}}));
}
