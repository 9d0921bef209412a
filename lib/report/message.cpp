#include "lib/report/message.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "lib/core/sizes.hpp"
#include "lib/policy/torch_program.hpp"
#include "lib/report/json_parts.hpp"
#include "lib/report/text_table.hpp"

namespace fragsim {
namespace {

std::string range_text(const ByteRange& range) {
    const std::string low = format_size(range.low), high = format_size(range.high);
    return low == high ? low : low + " to " + high;
}

const char* text(Proof proof) {
    return proof == Proof::yes ? "yes" : proof == Proof::no ? "no" : "cannot be told from these figures";
}

const char* question(MessageCause cause) {
    switch (cause) {
        case MessageCause::fragmentation: return "Would it have fitted if the free memory were in one piece?";
        case MessageCause::private_pools: return "Would it have fitted with what lies free in private pools?";
        case MessageCause::limit: return "Did the limit in force refuse what the card had free?";
        case MessageCause::other_size_class: return "Would it have fitted if small requests could use all free memory?";
        case MessageCause::outside: return "Would it have fitted without what others hold on the card?";
        case MessageCause::capacity: return "Is it more than could be free on this card?";
        default: return "";
    }
}

std::string arithmetic(const MessageFinding& finding) {
    TextTable table({{std::string("  "), TextTable::Align::left}, {"at least"}, {"at most"}});
    for (const MessageFinding::Term& term : finding.terms)
        table.add({{"  " + term.what}, {(term.sign < 0 ? "-" : "") + format_size(term.bytes.low)},
            {(term.sign < 0 ? "-" : "") + format_size(term.bytes.high)}});
    table.add({{"  together"}, {format_size(finding.sum.low)}, {format_size(finding.sum.high)}});
    table.add({{"  asked for"}, {format_size(finding.needed.low)}, {format_size(finding.needed.high)}});
    return fmt::format("{} {}.\n{}", question(finding.cause), text(finding.proof), table.render(0, false));
}

// That there is enough on the card, or nothing outside, is no news; that the pieces were not enough is.
bool worth_showing(const MessageFinding& finding) {
    return finding.proof != Proof::no || finding.cause == MessageCause::fragmentation ||
           finding.cause == MessageCause::limit || finding.cause == MessageCause::other_size_class;
}

const char* const kSnapshot =
    "A snapshot would tell more (the largest hole, who keeps the pieces apart, which settings would have served it): "
    "call torch.cuda.memory._record_memory_history() at the start, torch.cuda.memory._dump_snapshot('run.pickle') when "
    "it fails, then fragsim explain run.pickle.";

bool holds(const MessageVerdict& verdict, MessageCause cause) {
    return std::any_of(verdict.findings.begin(), verdict.findings.end(),
        [&](const MessageFinding& finding) { return finding.cause == cause && finding.proof == Proof::yes; });
}

std::string sentence(const OomMessage& message, const MessageVerdict& verdict) {
    switch (verdict.cause) {
        case MessageCause::fragmentation:
            return "fragmentation. The free bytes would have been enough if they were one piece. A message does not "
                   "say "
                   "how large the largest piece was, nor whether some wait for another stream.";
        case MessageCause::private_pools:
            return "private pools. What would have been enough lies free in private pools, where only their CUDA "
                   "graphs "
                   "can use it.";
        case MessageCause::limit:
            return "the limit in force. The card had room; the memory fraction that was set for this process refused "
                   "it." +
                   std::string(holds(verdict, MessageCause::other_size_class)
                                   ? " A tensor of at most 1 MiB cannot use what is unallocated for larger blocks."
                                   : "");
        case MessageCause::other_size_class:
            return "the pool of small blocks. A tensor of at most 1 MiB is served from segments of 2 MiB only, and the "
                   "driver gave no more of them. What is unallocated lies in the pool of larger blocks, or in pieces "
                   "that are too small.";
        case MessageCause::outside:
            return "outside PyTorch's allocator. Other processes or other libraries hold what was missing.";
        case MessageCause::capacity:
            return "capacity. What is allocated and the request are more than the card has; no allocator setting "
                   "helps.";
        case MessageCause::undecided:
            if (verdict.free_sufficed)
                return "cannot be told. By its own figures the card had enough free: they were read after the failure, "
                       "when another process or thread may have given memory back, or the driver had no room for other "
                       "reasons.";
            return verdict.missing.empty() ? "cannot be told. The figures are rounded too much to decide."
                                           : "cannot be told. The message lacks figures that would decide it.";
        case MessageCause::no_figures:
            return message.origin == OomOrigin::cuda
                       ? "cannot be told. This is the driver's error as it came: it has no figures. A kernel, a "
                         "library or "
                         "the context asked outside PyTorch's allocator, or another process filled the card."
                       : "cannot be told. PyTorch's figures are missing from the text: paste the whole message.";
        case MessageCause::not_torch: break;
    }
    switch (message.origin) {
        case OomOrigin::torch_cpu: return "host memory, not the GPU's. Nothing here is about a GPU allocator.";
        case OomOrigin::cublas:
        case OomOrigin::cudnn:
        case OomOrigin::nccl:
            return fmt::format("outside PyTorch's allocator: {} could not get memory of its own and gives no figures.",
                name(message.origin));
        case OomOrigin::jax: return "not PyTorch's: JAX or XLA ran out of memory. Their messages are not judged here.";
        case OomOrigin::tensorflow:
            return "not PyTorch's: TensorFlow ran out of memory. Its messages are not judged here.";
        default: return "no out-of-memory message was recognised in this text.";
    }
}

// What may help, given what the text says is already done.
std::vector<std::string> advice(const OomMessage& message, const MessageVerdict& verdict) {
    std::vector<std::string> lines;
    if (verdict.cause == MessageCause::fragmentation) {
        if (message.expandable_in_force)
            lines.emplace_back(
                "expandable_segments:True is in force by this text, so that pieces on other streams, in the "
                "small pool or in private pools are what is left.");
        else
            lines.push_back(fmt::format("{}=expandable_segments:True{}",
                alloc_conf_variable({message.versions, message.hip}),
                message.wording == OomWording::by_process
                    ? ""
                    : " (PyTorch 2.1 and later; before that max_split_size_mb:N, found with fragsim on a snapshot)."));
    }
    if (verdict.cause == MessageCause::private_pools)
        lines.emplace_back(
            "Capture fewer graphs, let them share a pool (pool= of torch.cuda.graph), or drop those that are "
            "not needed.");
    if (holds(verdict, MessageCause::limit))
        lines.emplace_back("Raise the limit: torch.cuda.set_per_process_memory_fraction.");
    if (verdict.cause == MessageCause::other_size_class)
        lines.emplace_back("Need a little less at the peak: one more small segment takes 2 MiB of the card.");
    if (verdict.cause == MessageCause::outside)
        lines.emplace_back(
            "End or move the other processes on this card (nvidia-smi lists them), and give other libraries "
            "less.");
    if (verdict.cause == MessageCause::capacity ||
        (verdict.nearly_full && verdict.cause == MessageCause::fragmentation))
        lines.emplace_back("Need less: smaller batches, activation checkpointing, lower precision, more cards.");
    if (message.origin == OomOrigin::cublas || message.origin == OomOrigin::cudnn ||
        message.origin == OomOrigin::nccl || message.origin == OomOrigin::cuda)
        lines.emplace_back(
            "Leave room outside PyTorch's cache: torch.cuda.set_per_process_memory_fraction below 1, or "
            "torch.cuda.empty_cache() before the call.");
    return lines;
}

}  // namespace

std::string message_text(const OomMessage& message, const MessageVerdict& verdict) {
    std::string out = "verdict: " + sentence(message, verdict) + '\n';
    if (message.messages > 0) {
        out += fmt::format("\nPyTorch {}{}, GPU {}: ", message.versions, message.hip ? " (HIP)" : "",
            message.gpu ? fmt::format("{}", *message.gpu) : "unknown");
        out += message.wording == OomWording::async_pool
                   ? fmt::format("asked for {}.\n", range_text(*message.requested))
                   : fmt::format("wanted a segment of {} from the driver, for a tensor of {}.\n",
                         range_text(*message.requested), range_text(tensor_size(*message.requested)));
        if (message.messages > 1) out += fmt::format("The first of {} messages in the text.\n", message.messages);
        for (const MessageFinding& finding : verdict.findings)
            if (worth_showing(finding)) out += '\n' + arithmetic(finding);
        if (verdict.nearly_full && verdict.cause == MessageCause::fragmentation)
            out +=
                "\nWith less than 2 % free in all, this is a program at the limit: what serves this request will not "
                "serve many more.\n";
        if (message.impossible_in_use)
            out += "\nThe driver did not know what a process holds; that figure was left out.\n";
        for (const std::string& missing : verdict.missing) out += fmt::format("\nnot in the message: {}", missing);
        if (!verdict.missing.empty()) out += '\n';
    }
    const std::vector<std::string> lines = advice(message, verdict);
    if (!lines.empty()) out += "\nto try:\n";
    for (const std::string& line : lines) out += "  " + line + '\n';
    const bool torch = verdict.cause != MessageCause::not_torch;
    return torch ? out + '\n' + kSnapshot + '\n' : out;
}

std::string message_json(const OomMessage& message, const MessageVerdict& verdict, const std::string& tool_version,
    const std::vector<std::string>& argv) {
    const auto json_range = [](const std::optional<ByteRange>& range) {
        return range ? Json{{"low_bytes", range->low}, {"high_bytes", range->high}} : Json();
    };
    Json document = json_head("fragsim.message", tool_version, argv);
    Json others = Json::array();
    for (const OomMessage::Process& other : message.others)
        others.push_back({{"pid", other.pid}, {"in_use", json_range(other.in_use)}});
    document["message"] = {{"origin", name(message.origin)}, {"wording", name(message.wording)}, {"hip", message.hip},
        {"torch_versions", message.versions}, {"messages", message.messages},
        {"gpu", message.gpu ? Json(*message.gpu) : Json()}, {"requested", json_range(message.requested)},
        {"total", json_range(message.total)}, {"free", json_range(message.free)},
        {"allowed", json_range(message.allowed)}, {"in_use", json_range(message.in_use)},
        {"allocated", json_range(message.allocated)}, {"in_private_pools", json_range(message.in_private_pools)},
        {"reserved", json_range(message.reserved)}, {"unallocated", json_range(message.unallocated)},
        {"other_processes", others}, {"expandable_segments_in_force", message.expandable_in_force}};
    Json findings = Json::array();
    for (const MessageFinding& finding : verdict.findings) {
        Json terms = Json::array();
        for (const MessageFinding::Term& term : finding.terms)
            terms.push_back({{"what", term.what}, {"sign", term.sign}, {"bytes", json_range(term.bytes)}});
        findings.push_back({{"cause", name(finding.cause)},
            {"holds", finding.proof == Proof::open ? Json() : Json(finding.proof == Proof::yes)}, {"terms", terms},
            {"sum", json_range(finding.sum)}, {"needed", json_range(finding.needed)}});
    }
    document["verdict"] = {{"cause", name(verdict.cause)}, {"findings", findings}, {"missing", verdict.missing},
        {"free_sufficed", verdict.free_sufficed}, {"nearly_full", verdict.nearly_full},
        {"advice", advice(message, verdict)}};
    return to_text(document);
}

}  // namespace fragsim
