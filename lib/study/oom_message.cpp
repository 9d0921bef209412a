#include "lib/study/oom_message.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <utility>

namespace fragsim {
namespace {

constexpr auto kNone = std::string_view::npos;
constexpr std::string_view kOutOfMemory = "out of memory";
constexpr std::string_view kAsyncMessage = "Allocation on device";
constexpr std::size_t kLongest = 8192;  // bytes of a message, with all that loggers put into it; most have one thousand

bool digit(char c) { return c >= '0' && c <= '9'; }

// Without escape sequences of a terminal and without the frames that pretty tracebacks draw.
std::string without_decoration(std::string_view text) {
    std::string out;
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (text[i] == '\x1b' && i + 1 < text.size() && text[i + 1] == '[') {
            i += 2;
            while (i < text.size() && !std::isalpha(static_cast<unsigned char>(text[i]))) ++i;
        } else if (text.substr(i, 3) == "\xe2\x94\x82") {  // a vertical bar
            out += ' ', i += 2;
        } else {
            out += text[i];
        }
    }
    return out;
}

// Where a message of PyTorch's begins, at or after `from`.
std::size_t find_message(std::string_view text, std::size_t from) {
    for (std::size_t at = text.find(kOutOfMemory, from); at != kNone; at = text.find(kOutOfMemory, at + 1)) {
        const std::string_view head = text.substr(from, at - from);
        if (head.ends_with("CUDA ")) return at - 5;
        if (head.ends_with("HIP ")) return at - 4;
        const std::string_view near = head.substr(head.size() - std::min<std::size_t>(head.size(), 80));
        if (const std::size_t async = near.rfind(kAsyncMessage); async != kNone) return at - near.size() + async;
    }
    return kNone;
}

// One line with single spaces. What stands before the message in its first line, a log's prefix, goes where following
// lines repeat it.
std::string one_line(std::string_view text, std::string_view prefix) {
    std::string out;
    while (!text.empty()) {
        const std::string_view line = text.substr(0, text.find_first_of("\r\n"));
        text.remove_prefix(std::min(text.size(), line.size() + 1));
        std::string_view rest = line;
        if (!prefix.empty() && rest.starts_with(prefix)) rest.remove_prefix(prefix.size());
        while (!rest.empty() && (rest.front() == '>' || rest.front() == '#' || rest.front() == ' '))
            rest.remove_prefix(1);
        for (const char c : rest) {
            const bool space = std::isspace(static_cast<unsigned char>(c));
            if (!space) out += c;
            if (space && !out.empty() && out.back() != ' ') out += ' ';
        }
        if (!out.empty() && out.back() != ' ') out += ' ';
    }
    return out;
}

// What would be printed as `digits unit`: upstream prints two decimals of KiB, MiB and GiB, and whole bytes.
std::optional<ByteRange> figure(std::string_view digits, std::string_view unit) {
    static constexpr std::array<std::pair<std::string_view, double>, 5> kUnits{
        {{"bytes", 1}, {"KiB", 0x1p10}, {"MiB", 0x1p20}, {"GiB", 0x1p30}, {"TiB", 0x1p40}}};
    const auto* known =
        std::find_if(kUnits.begin(), kUnits.end(), [&](const auto& u) { return unit.starts_with(u.first); });
    double value = 0;
    const auto [end, status] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (known == kUnits.end() || status != std::errc() || end != digits.data() + digits.size() || !(value >= 0))
        return {};
    if (value * known->second >= 0x1p62) return ByteRange{Bytes{1} << 62, Bytes{1} << 62};
    // Half of the last decimal that was printed: people cut "1.50 GiB" to "1.5 GiB".
    const std::size_t point = digits.find('.');
    const double decimals = point == kNone ? 0 : static_cast<double>(digits.size() - point - 1);
    const double half = known->second == 1 ? 0 : 0.5 * std::pow(10, -decimals);
    return ByteRange{static_cast<Bytes>(std::ceil(std::max(0.0, value - half) * known->second)),
        static_cast<Bytes>(std::floor((value + half) * known->second))};
}

std::string_view word(std::string_view text, std::size_t at) {
    if (at >= text.size()) return {};
    return text.substr(at, std::min(text.find(' ', at), text.size()) - at);
}

// "1.50 GiB" at the beginning of `text`.
std::optional<ByteRange> figure_at(std::string_view text) {
    const std::string_view digits = word(text, 0);
    return figure(digits, word(text, digits.size() + 1));
}

// "... 1.50 GiB" at its end; brackets before the digits do not belong to them.
std::optional<ByteRange> figure_ending(std::string_view text) {
    while (text.ends_with(' ')) text.remove_suffix(1);
    const std::size_t unit = text.rfind(' ');
    if (unit == kNone || unit == 0) return {};
    std::size_t begin = unit;
    while (begin > 0 && (digit(text[begin - 1]) || text[begin - 1] == '.')) --begin;
    return figure(text.substr(begin, unit - begin), text.substr(unit + 1));
}

std::optional<ByteRange> after(std::string_view text, std::string_view marker) {
    const std::size_t at = text.find(marker);
    return at == kNone ? std::nullopt : figure_at(text.substr(at + marker.size()));
}

// The first place of `marker` that a figure stands before.
std::optional<ByteRange> before(std::string_view text, std::string_view marker) {
    for (std::size_t at = text.find(marker); at != kNone; at = text.find(marker, at + 1))
        if (const auto found = figure_ending(text.substr(0, at))) return found;
    return {};
}

void read_processes(OomMessage& message, std::string_view text) {
    static constexpr std::string_view kProcess = "Process ", kHas = " has ";
    for (std::size_t at = text.find(kProcess); at != kNone; at = text.find(kProcess, at + 1)) {
        const std::string_view pid = word(text, at + kProcess.size());
        const std::string_view rest = text.substr(at + kProcess.size() + pid.size());
        if (pid.empty() || !std::all_of(pid.begin(), pid.end(), digit) || !rest.starts_with(kHas)) continue;
        if (const auto bytes = figure_at(rest.substr(kHas.size())))
            message.others.push_back({std::string(pid), *bytes});
    }
    // Where the driver does not know, -1 is printed as an unsigned number: 17179869184.00 GiB.
    if (!message.total) return;
    const auto impossible = [&](const ByteRange& bytes) { return bytes.low > message.total->high; };
    const std::size_t processes = message.others.size();
    std::erase_if(message.others, [&](const OomMessage::Process& other) { return impossible(other.in_use); });
    message.impossible_in_use = message.others.size() != processes;
    if (message.in_use && impossible(*message.in_use)) message.in_use.reset(), message.impossible_in_use = true;
}

const char* versions(OomWording wording, std::string_view text) {
    const auto has = [&](std::string_view what) { return text.find(what) != kNone; };
    switch (wording) {
        case OomWording::none: return "";
        case OomWording::cached: return has(" inactive)") ? "1.3" : "1.3 and earlier";
        case OomWording::reserved_total: return has("max_split_size_mb") ? "1.10 to 2.0" : "1.4 to 2.0";
        case OomWording::async_pool: return "1.14 and later, backend:cudaMallocAsync";
        case OomWording::by_process: break;
    }
    if (has("total capacty")) return "2.1";
    if (has("PYTORCH_ALLOC_CONF")) return "2.9 and later";
    if (has("in private pools")) return "2.4 and later";
    return "2.2 and later";
}

// Of the cudaMallocAsync backend, with white space as one_line() leaves it.
void read_async_figures(OomMessage& message, std::string_view text) {
    message.wording = OomWording::async_pool;
    message.allocated = after(text, "Currently allocated : ");
    message.requested = after(text, "Requested : ");
    message.total = after(text, "Device limit : ");
    message.free = after(text, "Free (according to CUDA): ");
    message.allowed = after(text, "memory fraction) : ");
    // No limit is printed as the largest number there is.
    if (message.allowed && message.total && message.allowed->low > message.total->high) message.allowed.reset();
}

// The figures of one message.
void read_figures(OomMessage& message, std::string_view text) {
    if (text.starts_with(kAsyncMessage)) {
        int ordinal = 0;
        const std::string_view rest = text.substr(std::min(text.size(), kAsyncMessage.size() + 1));
        if (std::from_chars(rest.data(), rest.data() + rest.size(), ordinal).ec == std::errc()) message.gpu = ordinal;
        return read_async_figures(message, text);
    }
    message.requested = after(text, "Tried to allocate ");
    for (std::size_t at = text.find("GPU "); at != kNone && !message.gpu; at = text.find("GPU ", at + 1)) {
        int ordinal = 0;
        const char* begin = text.data() + at + 4;
        if (std::from_chars(begin, text.data() + text.size(), ordinal).ec == std::errc()) message.gpu = ordinal;
    }
    message.allowed = before(text, "allowed;");
    message.free = before(text, "is free");
    if (message.free || text.find("is allocated by PyTorch") != kNone) {
        message.wording = OomWording::by_process;
        for (const char* spelling : {"total capacity of ", "total capacty of "})
            if (!message.total) message.total = after(text, spelling);
        message.in_use = after(text, "this process has ");
        message.allocated = before(text, "is allocated by PyTorch");
        message.in_private_pools = before(text, "allocated in private pools");
        message.unallocated = before(text, "is reserved by PyTorch but unallocated");
        read_processes(message, text);
        return;
    }
    message.total = before(text, "total capacity");
    message.allocated = before(text, "already allocated");
    message.free = before(text, "free;");
    message.reserved = before(text, "reserved in total by PyTorch");
    if (!message.reserved) message.unallocated = before(text, "cached");
    if (message.reserved || message.unallocated)
        message.wording = message.reserved ? OomWording::reserved_total : OomWording::cached;
}

// Messages without PyTorch's figures, the more telling words first.
OomOrigin origin_of(std::string_view text) {
    static constexpr std::array<std::pair<std::string_view, OomOrigin>, 17> kWords{{
        {"CUBLAS_STATUS_ALLOC_FAILED", OomOrigin::cublas},
        {"CUDNN_STATUS_ALLOC_FAILED", OomOrigin::cudnn},
        {"NCCL error", OomOrigin::nccl},
        {"ncclUnhandledCudaError", OomOrigin::nccl},
        {"NCCL WARN", OomOrigin::nccl},
        {"OOM when allocating tensor", OomOrigin::tensorflow},
        {"ResourceExhaustedError", OomOrigin::tensorflow},
        {"tensorflow", OomOrigin::tensorflow},
        {"RESOURCE_EXHAUSTED", OomOrigin::jax},
        {"XlaRuntimeError", OomOrigin::jax},
        {"DefaultCPUAllocator", OomOrigin::torch_cpu},
        {"CUDA out of memory", OomOrigin::torch},
        {"HIP out of memory", OomOrigin::torch},
        {"error: out of memory", OomOrigin::cuda},
        {"cudaErrorMemoryAllocation", OomOrigin::cuda},
        {"CUDA_ERROR_OUT_OF_MEMORY", OomOrigin::cuda},
        {"OutOfMemoryError", OomOrigin::torch},
    }};
    for (const auto& [words, origin] : kWords)
        if (text.find(words) != kNone) return origin;
    return OomOrigin::unknown;
}

// "expandable_segments:True" where it is not the message's advice ("try setting ...").
bool sets_expandable(std::string_view text) {
    for (std::size_t at = text.find("expandable_segments:"); at != kNone;
         at = text.find("expandable_segments:", at + 1)) {
        const std::string_view head = text.substr(0, at), value = text.substr(at + 20, 4);
        if (value != "True" && value != "true") continue;
        const std::size_t advice = head.rfind("try setting");
        if (advice == kNone || head.size() - advice > 60) return true;
    }
    return false;
}

}  // namespace

OomMessage read_oom_message(std::string_view pasted) {
    const std::string text = without_decoration(pasted);
    const std::string_view view = text;
    OomMessage first;
    int messages = 0;
    for (std::size_t at = find_message(view, 0); at != kNone;) {
        const std::size_t next = find_message(view, at + 1);
        const std::size_t line = view.substr(0, at).find_last_of("\r\n") + 1;
        std::string_view prefix = view.substr(line, at - line);
        // The exception's name belongs to the message.
        for (const char* exception : {"torch.", "RuntimeError"}) prefix = prefix.substr(0, prefix.rfind(exception));
        const std::string flat = one_line(view.substr(at, std::min(next - at, kLongest)), prefix);
        OomMessage message;
        read_figures(message, flat);
        if (message.requested && message.wording != OomWording::none) {
            message.origin = OomOrigin::torch;
            message.hip = flat.starts_with("HIP");
            message.versions = versions(message.wording, flat);
            if (messages++ == 0) first = std::move(message);
        }
        at = next;
    }
    first.messages = messages;
    if (messages == 0) first.origin = origin_of(view);
    first.expandable_in_force = sets_expandable(one_line(view, {}));
    return first;
}

const char* name(OomOrigin origin) {
    switch (origin) {
        case OomOrigin::torch: return "torch";
        case OomOrigin::torch_cpu: return "torch_cpu";
        case OomOrigin::cuda: return "cuda";
        case OomOrigin::cublas: return "cublas";
        case OomOrigin::cudnn: return "cudnn";
        case OomOrigin::nccl: return "nccl";
        case OomOrigin::jax: return "jax";
        case OomOrigin::tensorflow: return "tensorflow";
        case OomOrigin::unknown: return "unknown";
    }
    return "";
}

const char* name(OomWording wording) {
    switch (wording) {
        case OomWording::none: return "none";
        case OomWording::cached: return "cached";
        case OomWording::reserved_total: return "reserved_total";
        case OomWording::by_process: return "by_process";
        case OomWording::async_pool: return "async_pool";
    }
    return "";
}

}  // namespace fragsim
