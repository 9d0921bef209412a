#include "lib/trace/trace_limits.hpp"

#include <fmt/format.h>

#include "lib/core/error.hpp"

namespace fragsim {
namespace {

[[noreturn]] void refuse(
    const Trace& trace, const std::string& file, const char* what, std::size_t index, const std::string& why) {
    throw Error(ErrorCode::input, fmt::format("{}: device {}, {} {}: {}", file, trace.device, what, index, why),
        "the file is damaged or no recording");
}

template <class Element>
void check_sum(const Trace& trace, const std::string& file, const char* what, const std::vector<Element>& elements,
    Bytes Element::*bytes) {
    Bytes total = 0;
    for (std::size_t i = 0; i < elements.size(); ++i) {
        if (elements[i].*bytes > kMaxTotalBytes - total)
            refuse(trace, file, what, i, fmt::format("{} bytes make more than an EiB in all", elements[i].*bytes));
        total += elements[i].*bytes;
    }
}

void check_picture(const Trace& trace, const std::string& file, const MemoryPicture& picture) {
    check_sum(trace, file, "segment", picture.segments, &SegmentPicture::size);
    check_sum(trace, file, "block", picture.blocks, &BlockPicture::size);
}

}  // namespace

void check_limits(const Trace& trace, const std::string& file) {
    check_sum(trace, file, "allocation", trace.buffers, &Buffer::requested);
    check_sum(trace, file, "segment entry", trace.segment_events, &SegmentEvent::bytes);
    check_picture(trace, file, trace.initial);
    if (trace.final) check_picture(trace, file, *trace.final);
    for (std::size_t i = 0; i < trace.time_us.size(); ++i)
        if (trace.time_us[i] <= -kMaxTimeUs || trace.time_us[i] >= kMaxTimeUs)
            refuse(trace, file, "event", i, fmt::format("{} is no time in microseconds", trace.time_us[i]));
}

}  // namespace fragsim
