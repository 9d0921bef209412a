#include "lib/metrics/catalog.hpp"

#include <algorithm>
#include <utility>

namespace fragsim {
namespace {

void visit_stat(
    const std::string& prefix, const Stat& stat, const std::function<void(const std::string&, Bytes)>& visit) {
    visit(prefix + ".current", stat.current);
    visit(prefix + ".peak", stat.peak);
    visit(prefix + ".allocated", stat.allocated);
    visit(prefix + ".freed", stat.freed());
}

void visit_array(
    const std::string& name, const StatArray& array, const std::function<void(const std::string&, Bytes)>& visit) {
    visit_stat(name + ".all", array.all, visit);
    visit_stat(name + ".large_pool", array.by_class[static_cast<std::size_t>(SizeClass::large)], visit);
    visit_stat(name + ".small_pool", array.by_class[static_cast<std::size_t>(SizeClass::small)], visit);
}

// What each of PyTorch's statistics counts.
constexpr std::pair<std::string_view, std::string_view> kStatistics[] = {
    {"requested_bytes", "bytes the program asked for in blocks in use"},
    {"allocated_bytes", "bytes of blocks in the program's hands"},
    {"active_bytes", "the same, and blocks whose free waits for other streams"},
    {"reserved_bytes", "bytes got from the device and not given back"},
    {"inactive_split_bytes", "free bytes in segments that also hold blocks in use or other free blocks"},
    {"allocation", "blocks in the program's hands"},
    {"active", "the same, and blocks whose free waits for other streams"},
    {"segment", "segments got from the device and not given back"},
    {"inactive_split", "free blocks in segments that are split"},
    {"oversize_allocations", "blocks of max_split_size_mb and more in the program's hands"},
    {"oversize_segments", "segments of max_split_size_mb and more"},
};

std::vector<MetricInfo> build_catalog() {
    std::vector<MetricInfo> catalog;
    for_each_statistic({}, [&](const std::string& key, Bytes) {
        const std::string stat = key.substr(0, key.find('.'));
        const auto* entry = std::find_if(
            std::begin(kStatistics), std::end(kStatistics), [&](const auto& s) { return s.first == stat; });
        if (entry == std::end(kStatistics)) return;  // a plain counter, below
        const bool bytes = stat.ends_with("_bytes");
        const bool judged = key == "reserved_bytes.all.peak" || key == "inactive_split_bytes.all.peak";
        catalog.push_back({key, bytes ? Unit::bytes : Unit::count, judged ? Better::lower : Better::neither,
            std::string(entry->second)});
    });
    const auto add = [&](const char* key, Unit unit, Better better, const char* text) {
        catalog.push_back({key, unit, better, text});
    };
    using enum Unit;
    using enum Better;
    add("num_alloc_retries", count, lower, "times everything cached was given back to serve a request");
    add("num_ooms", count, lower, "requests that failed");
    add("num_oom_rejections", count, lower, "requests refused by throw_on_cudamalloc_oom");
    add("num_sync_all_streams", count, lower, "waits for every stream's pending frees");
    add("num_device_alloc", count, lower, "successful allocations from the driver");
    add("num_device_free", count, lower, "frees to the driver");
    add("num_splits", count, neither, "blocks cut in two");
    add("num_coalesces", count, neither, "free neighbours joined");

    add("requested_bytes.mean_by_op", bytes, neither, "mean over ops");
    add("allocated_bytes.mean_by_op", bytes, neither, "mean over ops");
    add("active_bytes.mean_by_op", bytes, neither, "mean over ops");
    add("reserved_bytes.mean_by_op", bytes, lower, "mean over ops");
    add("inactive_split_bytes.mean_by_op", bytes, lower, "mean over ops");
    add("requested_bytes.mean_by_time", bytes, neither, "mean over the recorded time; absent without time stamps");
    add("allocated_bytes.mean_by_time", bytes, neither, "mean over the recorded time; absent without time stamps");
    add("active_bytes.mean_by_time", bytes, neither, "mean over the recorded time; absent without time stamps");
    add("reserved_bytes.mean_by_time", bytes, lower, "mean over the recorded time; absent without time stamps");
    add("inactive_split_bytes.mean_by_time", bytes, lower, "mean over the recorded time; absent without time stamps");

    add("internal_fragmentation.at_peak", ratio, lower,
        "1 - requested / allocated when reserved memory first is largest");
    add("internal_fragmentation.mean_by_op", ratio, lower, "mean over ops");
    add("internal_fragmentation.mean_by_time", ratio, lower, "mean over the recorded time; absent without time stamps");
    add("external_fragmentation.at_peak", ratio, lower,
        "1 - largest free range / all free bytes when reserved memory first is largest");
    add("external_fragmentation.mean_by_op", ratio, lower, "mean over ops");
    add("external_fragmentation.mean_by_time", ratio, lower, "mean over the recorded time; absent without time stamps");
    add("fragmentation_l2.at_peak", ratio, lower, "1 - sum of squares of the free ranges / square of their sum");
    add("unusable_index.2MiB.at_peak", ratio, lower, "part of the free bytes in ranges below 2 MiB");
    add("unusable_index.20MiB.at_peak", ratio, lower, "part of the free bytes in ranges below 20 MiB");
    add("unusable_index.100MiB.at_peak", ratio, lower, "part of the free bytes in ranges below 100 MiB");
    add("unusable_index.1GiB.at_peak", ratio, lower, "part of the free bytes in ranges below 1 GiB");
    add("holes.at_peak", count, lower, "free ranges");
    add("hole_median_bytes.at_peak", bytes, neither, "median free range");
    add("hole_largest_bytes.at_peak", bytes, neither, "largest free range");

    add("load_bytes", bytes, neither, "peak of live bytes, each rounded to the policy's alignment: it cannot reserve less");
    add("overhead_over_load", ratio, lower, "peak reserved / load - 1");
    add("utilization.at_peak", ratio, higher, "allocated / reserved when reserved memory first is largest");
    add("utilization.peaks", ratio, higher, "peak active / peak reserved, whenever each was");
    add("johnstone_wilson_1", ratio, lower, "mean of reserved / requested over ops, requested > 0");
    add("johnstone_wilson_2", ratio, lower, "reserved / requested when requested bytes first are largest");
    add("johnstone_wilson_3", ratio, lower, "reserved / requested when reserved bytes first are largest");
    add("johnstone_wilson_4", ratio, lower, "peak reserved / peak requested");

    add("num_driver_calls", count, lower, "driver calls, the refused ones included");
    add("driver_bytes", bytes, lower, "bytes allocated from and freed to the driver");
    add("num_hits", count, higher, "allocations served from memory that was there");
    add("num_misses", count, lower, "allocations for which memory was got, moved or given back");
    add("num_stream_waits", count, lower, "waits put into a stream for another one");
    add("num_host_syncs", count, lower, "times the policy let the host wait for a stream or all of them");
    add("driver_time_ns", nanoseconds, lower, "modelled time in driver calls");
    add("driver_time_per_alloc_ns.p50", nanoseconds, lower,
        "modelled driver time of an allocation, 0 for a hit: median");
    add("driver_time_per_alloc_ns.p90", nanoseconds, lower, "the same, 90th percentile");
    add("driver_time_per_alloc_ns.p99", nanoseconds, lower, "the same, 99th percentile");
    add("driver_time_per_alloc_ns.max", nanoseconds, lower, "the same, the largest");
    return catalog;
}

}  // namespace

void for_each_statistic(const AllocatorStats& stats, const std::function<void(const std::string&, Bytes)>& visit) {
    visit_array("requested_bytes", stats.requested_bytes, visit);
    visit_array("allocated_bytes", stats.allocated_bytes, visit);
    visit_array("active_bytes", stats.active_bytes, visit);
    visit_array("reserved_bytes", stats.reserved_bytes, visit);
    visit_array("inactive_split_bytes", stats.inactive_split_bytes, visit);
    visit_array("allocation", stats.allocation, visit);
    visit_array("active", stats.active, visit);
    visit_array("segment", stats.segment, visit);
    visit_array("inactive_split", stats.inactive_split, visit);
    visit_stat("oversize_allocations", stats.oversize_allocations, visit);
    visit_stat("oversize_segments", stats.oversize_segments, visit);
    visit("num_alloc_retries", stats.num_alloc_retries);
    visit("num_ooms", stats.num_ooms);
    visit("num_oom_rejections", stats.num_oom_rejections);
    visit("num_sync_all_streams", stats.num_sync_all_streams);
    visit("num_device_alloc", stats.num_device_alloc);
    visit("num_device_free", stats.num_device_free);
    visit("num_splits", stats.num_splits);
    visit("num_coalesces", stats.num_coalesces);
}

double real(const Metric& metric) {
    return std::visit([](auto value) { return static_cast<double>(value); }, metric.value);
}

const std::vector<MetricInfo>& metric_catalog() {
    static const std::vector<MetricInfo> catalog = build_catalog();
    return catalog;
}

const MetricInfo* find_metric(std::string_view key) {
    for (const MetricInfo& info : metric_catalog())
        if (info.key == key) return &info;
    return nullptr;
}

}  // namespace fragsim
