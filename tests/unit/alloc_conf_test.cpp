// PYTORCH_CUDA_ALLOC_CONF as PyTorch reads it: spec/pytorch-caching-allocator.md, section 13.
#include <algorithm>

#include "policies/pytorch/native_config.hpp"
#include "policies/registry.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/refusal.hpp"

using namespace fragsim;
using namespace fragsim::pytorch;
using test::refusal;
using test::Refusal;

namespace {

constexpr TorchVersion k20{2, 0}, k21{2, 1}, k25{2, 5}, k26{2, 6}, k28{2, 8}, k29{2, 9}, k210{2, 10}, k211{2, 11},
    k214{2, 14};

NativeConfig read(std::string_view text, TorchVersion version = k211) { return parse_alloc_conf(text, version).config; }
std::vector<std::string> warnings(std::string_view text, TorchVersion version = k211) {
    return parse_alloc_conf(text, version).warnings;
}
Refusal refused(const std::string& text, TorchVersion version = k211) {
    CAPTURE(text);
    const Refusal refusal_ = refusal([&] { parse_alloc_conf(text, version); });
    CHECK(refusal_.code == ErrorCode::usage);
    CHECK(refusal_.says("'" + text + "'"));
    CHECK_FALSE(refusal_.hint.empty());
    return refusal_;
}

std::vector<std::uint64_t> table(std::string_view text, TorchVersion version = k211) {
    const auto all = read(text, version).roundup_power2_divisions;
    return {all.begin(), all.end()};
}

}  // namespace

TEST_CASE("an empty string leaves every default", "[unit][alloc-conf]") {
    for (const char* text : {"", "  ", ","}) {
        if (std::string_view(text) == ",") continue;  // a lone comma is no key
        const NativeConfig config = read(text);
        CHECK(config.max_split_size == kUnlimited);
        CHECK(config.large_segment_size == 20 * kMiB);
        CHECK(config.max_non_split_rounding == 20 * kMiB);
        CHECK(config.garbage_collection_threshold == 0);
        CHECK_FALSE(config.expandable_segments);
        CHECK(table(text) == std::vector<std::uint64_t>(16, 0));
    }
}

TEST_CASE("keys and values are read in any order, with white space and a trailing comma", "[unit][alloc-conf]") {
    for (const char* text : {"max_split_size_mb:128,garbage_collection_threshold:0.8",
             "garbage_collection_threshold:0.8,max_split_size_mb:128,",
             " max_split_size_mb : 128 ,\tgarbage_collection_threshold: 0.8",
             "max_split _size_mb:12 8,garbage_collection_threshold:0.8"}) {
        CAPTURE(text);
        CHECK(read(text).max_split_size == 128 * kMiB);
        CHECK(read(text).garbage_collection_threshold == 0.8);
    }
}

TEST_CASE("of a key given twice the last value counts", "[unit][alloc-conf]") {
    CHECK(read("max_split_size_mb:64,max_split_size_mb:128").max_split_size == 128 * kMiB);
    CHECK(parse_alloc_conf("max_split_size_mb:64,max_split_size_mb:128", k211).values ==
          Parameters{{"max_split_size_mb", "128"}});
}

TEST_CASE("a number is read by its prefix, and that is said", "[unit][alloc-conf]") {
    CHECK(read("max_split_size_mb:40MB").max_split_size == 40 * kMiB);
    CHECK(read("garbage_collection_threshold:0.5x").garbage_collection_threshold == 0.5);
    REQUIRE(warnings("max_split_size_mb:40MB").size() == 1);
    CHECK(warnings("max_split_size_mb:40MB").front().find("40MB") != std::string::npos);
    CHECK(warnings("max_split_size_mb:40").empty());
    CHECK(refused("max_split_size_mb:MB40").says("not a number"));
}

TEST_CASE("-1 wraps around and becomes no limit", "[unit][alloc-conf]") {
    CHECK(read("max_split_size_mb:-1").max_split_size == kUnlimited);
}

TEST_CASE("a number too large for its type is refused", "[unit][alloc-conf]") {
    refused("max_split_size_mb:99999999999999999999");  // std::stoull
    refused("max_split_size_mb:3000000000", k28);       // std::stoi before 2.9
    CHECK(read("max_split_size_mb:3000000000", k29).max_split_size == Bytes{3000000000} * kMiB);
}

TEST_CASE("booleans are exactly True or False", "[unit][alloc-conf]") {
    CHECK(read("expandable_segments:True").expandable_segments);
    CHECK_FALSE(read("expandable_segments:False").expandable_segments);
    for (const char* text : {"expandable_segments:true", "expandable_segments:TRUE", "expandable_segments:1",
             "throw_on_cudamalloc_oom:yes"})
        CHECK(refused(text).hints("True or False"));
}

TEST_CASE("an unknown key is answered with the closest one and its place", "[unit][alloc-conf]") {
    const Refusal unknown = refused("garbage_collection_threshold:0.8,max_split_size:128");
    CHECK(unknown.says("'max_split_size'"));
    CHECK(unknown.says("character 34"));  // counted from 1
    CHECK(unknown.hints("'max_split_size_mb'"));
    refused("expandable_segments_handle_type:fabric");  // mentioned in a message of PyTorch, known to no parser
    refused(",");
}

TEST_CASE("errors point at the character", "[unit][alloc-conf]") {
    CHECK(refused("max_split_size_mb:5").says("character 19"));
    CHECK(refused("  max_split_size_mb:  5").says("character 23"));
    CHECK(refused("backend:cuda").says("character 9"));
    CHECK(refused("max_split_size_mb").says("character 18"));  // behind the end, where the rest is missing
    CHECK(refused("max_split_size_mb:").says("character 19"));
    CHECK(refused("roundup_power2_divisions:[256:1,511:2]").says("character 33"));
}

TEST_CASE("a wrong separator is taken from 2.9 on, with a warning, and refused before", "[unit][alloc-conf]") {
    CHECK(read("max_split_size_mb,40", k29).max_split_size == 40 * kMiB);
    CHECK(warnings("max_split_size_mb,40", k29).size() == 1);
    CHECK(refused("max_split_size_mb,40", k28).says("character 18"));
}

TEST_CASE("limits have a smallest value: the size of large segments", "[unit][alloc-conf]") {
    CHECK(read("max_split_size_mb:20").max_split_size == 20 * kMiB);
    refused("max_split_size_mb:19");
    refused("max_split_size_mb:0");
    CHECK(read("max_non_split_rounding_mb:20").max_non_split_rounding == 20 * kMiB);
    refused("max_non_split_rounding_mb:19");
}

TEST_CASE("large_segment_size_mb is parsed first wherever it stands", "[unit][alloc-conf]") {
    const NativeConfig config = read("max_split_size_mb:12,large_segment_size_mb:12");
    CHECK(config.large_segment_size == 12 * kMiB);
    CHECK(config.max_split_size == 12 * kMiB);
    CHECK(config.max_non_split_rounding == 12 * kMiB);  // its default follows
    refused("large_segment_size_mb:30,max_split_size_mb:29");
    refused("large_segment_size_mb:10");
    CHECK(read("large_segment_size_mb:11").large_segment_size == 11 * kMiB);
}

TEST_CASE("the threshold of the garbage collection lies between 0 and 1", "[unit][alloc-conf]") {
    CHECK(read("garbage_collection_threshold:0.01").garbage_collection_threshold == 0.01);
    for (const char* text :
        {"garbage_collection_threshold:0", "garbage_collection_threshold:1", "garbage_collection_threshold:1.5",
            "garbage_collection_threshold:-0.1", "garbage_collection_threshold:nan"})
        refused(text);
}

TEST_CASE("the memory fraction goes from 0 to 1, both included", "[unit][alloc-conf]") {
    CHECK(read("per_process_memory_fraction:0").per_process_memory_fraction == 0);
    CHECK(read("per_process_memory_fraction:1").per_process_memory_fraction == 1);
    refused("per_process_memory_fraction:1.01");
    refused("per_process_memory_fraction:-0.1");
}

TEST_CASE("there are two backends", "[unit][alloc-conf]") {
    CHECK_FALSE(read("backend:native").async_backend);
    CHECK(read("backend:cudaMallocAsync").async_backend);
    CHECK(refused("backend:cudamallocasync").hints("cudaMallocAsync"));
}

TEST_CASE("one number of divisions goes for every size", "[unit][alloc-conf]") {
    CHECK(table("roundup_power2_divisions:8") == std::vector<std::uint64_t>(16, 8));
    CHECK(table("roundup_power2_divisions:1") == std::vector<std::uint64_t>(16, 1));
    for (const char* text : {"roundup_power2_divisions:0", "roundup_power2_divisions:3", "roundup_power2_divisions:-4"})
        refused(text);
}

TEST_CASE("a list of divisions: the first boundary fills downwards, > upwards, gaps stay off", "[unit][alloc-conf]") {
    CHECK(table("roundup_power2_divisions:[4:2,16:8,64:0,>:4]") ==
          std::vector<std::uint64_t>{2, 2, 2, 0, 8, 0, 0, 4, 4, 4, 4, 4, 4, 4, 4, 4});
    CHECK(table("roundup_power2_divisions:[64:2]") ==
          std::vector<std::uint64_t>{2, 2, 2, 2, 2, 2, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0});
    CHECK(table("roundup_power2_divisions:[1:2,1048576:4]").back() == 4);  // above 32 GiB the last entry
    CHECK(table("roundup_power2_divisions:[256:1,512:2],max_split_size_mb:64")[9] == 2);
    refused("roundup_power2_divisions:[4:3]");
    refused("roundup_power2_divisions:[3:4]");
    refused("roundup_power2_divisions:[4:2");
    refused("roundup_power2_divisions:[4:2;8:2]");
}

TEST_CASE("before 2.9 the list's > also overwrote its last boundary", "[unit][alloc-conf]") {
    const char* text = "roundup_power2_divisions:[512:2,1024:4,>:1]";
    CHECK(table(text, k28)[9] == 2);
    CHECK(table(text, k28)[10] == 1);
    CHECK(table(text, k29)[10] == 4);
    CHECK(table(text, k29)[11] == 1);
}

TEST_CASE("in 2.0 the list took no 0", "[unit][alloc-conf]") {
    refused("roundup_power2_divisions:[4:0]", k20);
    CHECK(table("roundup_power2_divisions:[4:0]", k21)[2] == 0);
}

TEST_CASE("a key is refused by versions that did not know it", "[unit][alloc-conf]") {
    struct Since {
        const char* text;
        TorchVersion before, from;
    };
    const Since since = GENERATE(Since{"max_non_split_rounding_mb:64", k25, k26},
        Since{"expandable_segments:True", k20, k21}, Since{"large_segment_size_mb:12", k210, k211},
        Since{"per_process_memory_fraction:0.5", k29, k210}, Since{"throw_on_cudamalloc_oom:True", k210, k211});
    const Refusal old = refused(since.text, since.before);
    CHECK(old.says("PyTorch 2."));
    CHECK(old.hints("torch_version"));
    CHECK_NOTHROW(read(since.text, since.from));
}

TEST_CASE("roundup_bypass_threshold_mb is a key of 2.0 alone", "[unit][alloc-conf]") {
    CHECK_NOTHROW(read("roundup_bypass_threshold_mb:64", k20));
    refused("roundup_bypass_threshold_mb:64", k21);
}

TEST_CASE("2.14 knows how much to reserve for expandable segments", "[unit][alloc-conf]") {
    CHECK_NOTHROW(read("expandable_segments:True,expandable_segments_reserve:16G", k214));
    CHECK_NOTHROW(read("expandable_segments:True,expandable_segments_reserve_by_class:[fast:0.5,slow:8G]", k214));
    refused("expandable_segments_reserve:16G", k211);
}

TEST_CASE("keys of other allocators are accepted and do nothing", "[unit][alloc-conf]") {
    for (const char* text :
        {"release_lock_on_cudamalloc:True", "release_lock_on_hipmalloc:True", "graph_capture_record_stream_reuse:True",
            "pinned_use_cuda_host_register:True", "pinned_num_register_threads:8", "pinned_use_background_threads:True",
            "pinned_reserve_segment_size_mb:64"}) {
        CAPTURE(text);
        CHECK(read(text).max_split_size == kUnlimited);
        CHECK(warnings(text).empty());
    }
}

TEST_CASE("settings without effect together are pointed out", "[unit][alloc-conf]") {
    struct Useless {
        const char* text;
        Limits limits;
        const char* key;
    };
    const Useless useless = GENERATE(Useless{"garbage_collection_threshold:0.8", {kGiB, {}}, "garbage_collection_threshold"},
        Useless{"max_split_size_mb:64,expandable_segments:True", {kGiB, {}}, "expandable_segments"},
        Useless{"max_non_split_rounding_mb:64", {kGiB, {}}, "max_non_split_rounding_mb"},
        Useless{"backend:cudaMallocAsync,max_split_size_mb:64", {kGiB, {}}, "cudaMallocAsync"},
        Useless{"per_process_memory_fraction:0.5", {}, "per_process_memory_fraction"},
        Useless{"throw_on_cudamalloc_oom:True", {}, "throw_on_cudamalloc_oom"});
    const auto advice = keys_without_effect(read(useless.text), useless.limits);
    REQUIRE(advice.size() == 1);
    CHECK(advice.front().find(useless.key) != std::string::npos);
}

TEST_CASE("settings that do something get no advice", "[unit][alloc-conf]") {
    CHECK(keys_without_effect(read(""), {}).empty());
    CHECK(keys_without_effect(
        read("max_split_size_mb:64,max_non_split_rounding_mb:64,garbage_collection_threshold:0.8"), {{}, kGiB})
              .empty());
}

TEST_CASE("torch_version is read from what torch.__version__ says", "[unit][alloc-conf]") {
    CHECK(parse_torch_version("2.11") == TorchVersion{2, 11});
    CHECK(parse_torch_version("2.11.0+cu130") == TorchVersion{2, 11});
    CHECK(parse_torch_version("2.0.0a0") == TorchVersion{2, 0});
    CHECK(parse_torch_version("2.6a0+git123") == TorchVersion{2, 6});
    for (const char* text : {"", "2", "2.", "1.13", "two", "2.x", "2.11z", "-2.1"})
        CHECK(refusal([&] { parse_torch_version(text); }).code == ErrorCode::usage);
}

TEST_CASE("policy parameters mean what the same keys mean in the settings string", "[unit][alloc-conf]") {
    const NativeConfig config = read_native_parameters(
        {{"roundup_power2_divisions", "[256:1,>:4]"}, {"torch_version", "2.8"},
            {"max_split_size_mb",
                "64"}}).config;
    CHECK(config.version == k28);
    CHECK(config.max_split_size == 64 * kMiB);
    CHECK(config.roundup_power2_divisions[8] == 4);  // 2.8's >
    CHECK(config.roundup_power2_divisions[7] == 1);
}

TEST_CASE("a parameter given with its default's value is the same as left out", "[unit][alloc-conf]") {
    Parameters defaults;
    for (const PolicyParameter& parameter : native_parameters())
        defaults.emplace_back(parameter.name, parameter.default_value);
    CHECK_NOTHROW(read_native_parameters(defaults));
    // Here 20 is not what leaving it out would give: that is the size of large segments.
    CHECK(read_native_parameters({{"large_segment_size_mb", "12"}, {"max_non_split_rounding_mb", "20"}})
              .config.max_non_split_rounding == 20 * kMiB);
}

TEST_CASE("a settings string picks the policy and its parameters", "[unit][alloc-conf]") {
    std::vector<std::string> said;
    CHECK(policy_from_alloc_conf("", said).label() == "caching");
    CHECK(policy_from_alloc_conf("garbage_collection_threshold:0.8,pinned_use_background_threads:True", said).label() ==
          "caching:garbage_collection_threshold=0.8");
    CHECK(policy_from_alloc_conf("max_split_size_mb:128", said).label() == "split-capped:max_split_size_mb=128");
    CHECK(policy_from_alloc_conf("max_split_size_mb:-1", said).info->name == std::string_view("caching"));
    CHECK(said.empty());
    CHECK(policy_from_alloc_conf("max_split_size_mb:128MB", said).info->name == std::string_view("split-capped"));
    CHECK(said.size() == 1);
}
