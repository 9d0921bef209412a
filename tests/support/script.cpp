#include "tests/support/script.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "lib/trace/trace_builder.hpp"

namespace fragsim::test {
namespace {

std::vector<std::vector<std::string>> statements(std::string_view text) {
    std::string lines(text);
    std::replace(lines.begin(), lines.end(), ';', '\n');
    std::vector<std::vector<std::string>> all;
    std::istringstream in(lines);
    for (std::string line; std::getline(in, line);) {
        std::istringstream words(line);
        std::vector<std::string> statement;
        for (std::string word; words >> word;) statement.push_back(word);
        if (!statement.empty() && statement.front() != "#") all.push_back(std::move(statement));
    }
    return all;
}

}  // namespace

Bytes bytes_of(std::string_view text) {
    Bytes total = 0, number = 0, sign = 1;
    for (const char c : text) {
        if (c >= '0' && c <= '9')
            number = 10 * number + (c - '0');
        else if (c == 'K' || c == 'M' || c == 'G')
            number *= c == 'K' ? kKiB : c == 'M' ? kMiB : kGiB;
        else if (c == '+' || c == '-')
            total += sign * std::exchange(number, 0), sign = c == '+' ? 1 : -1;
        else
            throw std::invalid_argument("not a size in a test: " + std::string(text));
    }
    return total + sign * number;
}

Trace script(std::string_view text) {
    const auto all = statements(text);
    std::set<std::string> delayed;  // buffers whose free becomes effective later
    for (const auto& statement : all)
        if (statement[0] == "c") delayed.insert(statement.at(1));

    TraceBuilder builder;
    builder.stream(0);
    std::map<std::string, BufferId> buffer_of;
    for (const auto& statement : all) {
        const auto word = [&](std::size_t i) { return statement.size() > i ? statement[i] : std::string("0"); };
        const auto buffer = [&] { return buffer_of.at(word(1)); };
        switch (statement[0][0]) {
            case 'a': {
                const BufferId added =
                    builder.add_buffer(bytes_of(statement.at(2)), 0, builder.stream(std::stoull(word(3))));
                buffer_of[word(1)] = added;
                builder.add(EventKind::alloc, added.value);
                break;
            }
            case 'f':
                builder.add(delayed.contains(word(1)) ? EventKind::free_requested : EventKind::free, buffer().value);
                break;
            case 'c': builder.add(EventKind::free_completed, buffer().value); break;
            case 'r': builder.add_stream_use(buffer(), builder.stream(std::stoull(word(2)))); break;
            case 'e': builder.add(EventKind::empty_cache); break;
            case 's':
                if (statement.size() > 1)
                    builder.add_synchronize(builder.stream(std::stoull(word(1))));
                else
                    builder.add(EventKind::synchronize, Event::kAllStreams);
                break;
            case 'm': builder.add_marker(word(1)); break;
            default: throw std::invalid_argument("not a statement in a test: " + statement[0]);
        }
    }
    return builder.finish();
}

}  // namespace fragsim::test
