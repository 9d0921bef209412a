#include "tests/support/reference_program.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <sstream>

#include "policies/registry.hpp"
#include "tests/support/reference_policies.hpp"
#include "tests/support/script.hpp"
#include "tests/support/upward_device.hpp"

namespace fragsim::test {

ReferenceProgram random_program(std::mt19937& random, const ProgramShape& shape, int ops) {
    ReferenceProgram program;
    std::vector<int> live, waiting;
    const auto below = [&](std::size_t n) { return static_cast<int>(random() % n); };
    const auto take = [&](std::vector<int>& from) {
        std::swap(from[random() % from.size()], from.back());
        const int id = from.back();
        from.pop_back();
        return id;
    };
    const auto size = [&] {
        const Bytes chosen = shape.sizes[random() % shape.sizes.size()];
        switch (below(4)) {
            case 0: return chosen;
            case 1: return std::max<Bytes>(1, chosen - 1);
            default: return std::max<Bytes>(1, chosen - static_cast<Bytes>(random()) % std::max<Bytes>(1, chosen / 2));
        }
    };
    // Memory fills, then about as much is freed as is allocated, with a flood of frees now and then.
    int flood = 0;
    for (int id = 0; static_cast<int>(program.size()) < ops;) {
        if (below(30) == 0) flood = below(10);
        const bool frees = !live.empty() && (flood > 0 || below(100) < (live.size() < 6 ? 20 : 48));
        if (flood > 0) --flood;
        if (shape.synchronizes && below(12) == 0)
            program.push_back({'s', 0, 0, below(4) == 0 ? -1 : below(static_cast<std::size_t>(shape.streams))});
        else if (shape.empties && below(25) == 0)
            program.push_back({'e'});
        else if (shape.records && !live.empty() && below(8) == 0)
            program.push_back({'r', live[random() % live.size()], 0, below(static_cast<std::size_t>(shape.streams))});
        else if (!waiting.empty() && below(6) == 0)
            program.push_back({'c', take(waiting)});
        else if (frees && shape.waits && below(5) == 0) {
            waiting.push_back(take(live));
            program.push_back({'w', waiting.back()});
        } else if (frees)
            program.push_back({'f', take(live)});
        else {
            program.push_back({'a', id, size(), below(static_cast<std::size_t>(shape.streams))});
            live.push_back(id++);
        }
    }
    for (const int id : waiting) program.push_back({'c', id});
    return program;
}

std::string to_text(const ReferenceProgram& program) {
    std::string text;
    for (const ReferenceOp& op : program) {
        text += text.empty() ? "" : "; ";
        switch (op.kind) {
            case 'a': text += fmt::format("a {} {} {}", op.id, op.bytes, op.stream); break;
            case 's': text += op.stream < 0 ? "s" : fmt::format("s {}", op.stream); break;
            case 'e': text += "e"; break;
            case 'r': text += fmt::format("r {} {}", op.id, op.stream); break;
            default: text += fmt::format("{} {}", op.kind == 'w' ? 'f' : op.kind, op.id);
        }
    }
    // A free that waits says so by its completion.
    for (const ReferenceOp& op : program)
        if (op.kind == 'w' && std::none_of(program.begin(), program.end(),
                                  [&](const ReferenceOp& other) { return other.kind == 'c' && other.id == op.id; }))
            text += fmt::format("; c {}", op.id);
    return text;
}

ReferenceProgram parse_program(std::string_view text) {
    std::string lines(text);
    std::replace(lines.begin(), lines.end(), ';', '\n');
    std::istringstream in(lines);
    ReferenceProgram program;
    std::set<int> delayed;
    for (std::string line; std::getline(in, line);) {
        std::istringstream words(line);
        std::string kind, first, second;
        if (!(words >> kind)) continue;
        ReferenceOp op{kind[0]};
        if (words >> first)
            (op.kind == 's' ? op.stream : op.id) = std::stoi(first);
        else if (op.kind == 's')
            op.stream = -1;
        if (words >> second) op.bytes = bytes_of(second);
        if (op.kind == 'a') words >> op.stream;
        if (op.kind == 'c') delayed.insert(op.id);
        program.push_back(op);
    }
    for (ReferenceOp& op : program)
        if (op.kind == 'f' && delayed.contains(op.id)) op.kind = 'w';
    return program;
}

namespace {

std::string told(const std::optional<Placement>& placement, const UpwardDevice& device) {
    if (!placement) return "out of memory";
    return fmt::format("{} of {}", device.place(placement->address), placement->allocated);
}

std::vector<std::string> run(const ReferenceProgram& program, const UpwardDevice& device, Policy& policy) {
    std::vector<std::string> account;
    std::set<int> live, waiting;
    for (const ReferenceOp& op : program) {
        const BufferId buffer{static_cast<std::uint32_t>(op.id)};
        const StreamId stream{static_cast<std::uint32_t>(op.stream)};
        std::string line;
        switch (op.kind) {
            case 'a': {
                const auto placement = policy.allocate(buffer, {op.bytes, stream});
                if (placement) live.insert(op.id);
                line = told(placement, device) + ", ";
                break;
            }
            case 'f':
                if (live.erase(op.id) == 1) policy.free(buffer);
                break;
            case 'w':
                if (live.erase(op.id) == 0) break;
                waiting.insert(op.id);
                policy.free_requested(buffer);
                break;
            case 'c':
                if (waiting.erase(op.id) == 1) policy.free_completed(buffer);
                break;
            case 'r':
                if (live.contains(op.id)) policy.record_stream(buffer, stream);
                break;
            case 's': policy.synchronize(op.stream < 0 ? std::nullopt : std::optional(stream)); break;
            default: policy.empty_cache();
        }
        account.push_back(fmt::format("{}reserved {}", line, policy.stats().reserved_bytes.all.current));
    }
    return account;
}

}  // namespace

std::vector<std::string> run_policy_on(
    const ReferenceProgram& program, const std::string& text, std::optional<Bytes> capacity, Bytes card) {
    const PolicySpec spec = parse_policy_spec(text, policies());
    UpwardDevice device(capacity, card);
    const auto policy = spec.info->make(spec.given, {device, {capacity, {}}, {}});
    return run(program, device, *policy);
}

std::vector<std::string> run_reference_on(
    const ReferenceProgram& program, const std::string& spec, std::optional<Bytes> capacity, Bytes card) {
    UpwardDevice device(capacity, card);
    return run(program, device, *reference_as_policy(spec, capacity, device));
}

std::string disagreement(ReferenceProgram program, const std::string& spec, std::optional<Bytes> capacity, Bytes card) {
    const auto differ = [&](const ReferenceProgram& tried) {
        return run_policy_on(tried, spec, capacity, card) != run_reference_on(tried, spec, capacity, card);
    };
    if (!differ(program)) return "";
    for (std::size_t length = program.size(); length > 0; length /= 2)
        for (std::size_t from = 0; from < program.size();) {
            ReferenceProgram shorter = program;
            const auto begin = shorter.begin() + static_cast<std::ptrdiff_t>(from);
            shorter.erase(begin, begin + static_cast<std::ptrdiff_t>(std::min(length, program.size() - from)));
            if (differ(shorter))
                program = std::move(shorter);
            else
                from += length;
        }
    const auto policy = run_policy_on(program, spec, capacity, card);
    const auto reference = run_reference_on(program, spec, capacity, card);
    std::string text = fmt::format(
        "--policy '{}'{}\n{}\n", spec, capacity ? fmt::format(" --capacity {}", *capacity) : "", to_text(program));
    for (std::size_t i = 0; i < program.size(); ++i) {
        const bool same = policy[i] == reference[i];
        text += fmt::format("{} op {}: {}{}\n", same ? ' ' : '*', i, same ? "" : "policy ", policy[i]);
        if (!same) text += fmt::format("       reference {}\n", reference[i]);
    }
    return text;
}

}  // namespace fragsim::test
