#include "tests/support/catch.hpp"
#include "tests/unit/traces_support.hpp"
#include "traces/text.hpp"

using namespace fragsim;
using namespace fragsim::test;

namespace {

Recording problem(const std::string& content) { return read_as("minimalloc", content); }
std::string events(const std::string& content) {
    const std::string text = write_text(problem(content).traces.at(0));
    return text.substr(text.find('\n') + 1);
}
std::string problem_error(const std::string& content) {
    return error_of([&] { problem(content); });
}
std::string format_of(const std::string& content) {
    std::string names;
    for (const FormatInfo& format : trace_formats())
        if (format.detect(content)) names += std::string(format.name) + ' ';
    return names;
}

}  // namespace

TEST_CASE("a MiniMalloc problem becomes allocations and frees in the order of time", "[unit][traces][minimalloc]") {
    // OP1 of spec/policies.md, section 8.
    CHECK(events("id,lower,upper,size\nb1,0,3,4\nb2,3,9,4\nb3,0,9,5\nb4,9,21,6\nb5,0,21,7\n") ==
          "a 0 4\na 1 5\na 2 7\nf 0\na 3 4\nf 3\nf 1\na 4 6\nf 4\nf 2\n");
}

TEST_CASE("at one time frees come before allocations, then the order of the file", "[unit][traces][minimalloc]") {
    CHECK(events("id,lower,upper,size\nlate,5,6,1\nfirst,0,5,2\nsecond,0,5,3\n") ==
          "a 0 2\na 1 3\nf 0\nf 1\na 2 1\nf 2\n");
}

TEST_CASE("columns come in any order, others and blank lines are passed over", "[unit][traces][minimalloc]") {
    CHECK(events(" size ,offset,upper,lower,id\r\n8, 0 ,2,-1,x\r\n\r\n9,0,3,2,y") == "a 0 8\nf 0\na 1 9\nf 1\n");
    CHECK(events("buffer,begin,upper,size\na,0,1,8\n") == "a 0 8\nf 0\n");
}

TEST_CASE("an end is the last time alive, an upper the first not", "[unit][traces][minimalloc]") {
    CHECK(events("buffer_id,start,end,size\na,0,0,8\nb,1,1,9\n") == "a 0 8\nf 0\na 1 9\nf 1\n");
    CHECK(events("buffer_id,start,end,size\na,0,1,8\nb,1,1,9\n") == "a 0 8\na 1 9\nf 0\nf 1\n");
}

TEST_CASE("what a trace cannot say is counted", "[unit][traces][minimalloc]") {
    const Recording recording =
        problem("id,lower,upper,size,alignment,gaps\na,0,4,8,1,1-2\nb,0,4,0,1,\nc,3,3,8,512,\nd,0,9,8,1024,\n");
    CHECK(recording.traces.at(0).ops == 4);
    std::string said;
    for (const Diagnostics::Entry& entry : recording.diagnostics.entries())
        said += entry.kind + " @" + entry.first_position + '\n';
    CHECK(said ==
          "buffer with gaps, taken to live through them @line 2\n"
          "allocation of no bytes @line 3\n"
          "buffer that never lives @line 4\n"
          "alignment above 512, which policies do not know of @line 5\n");
}

TEST_CASE("a problem without buffers has no events", "[unit][traces][minimalloc]") {
    CHECK(problem("id,lower,upper,size\n").traces.at(0).completeness == Completeness::no_events);
}

TEST_CASE("what is wrong with a problem's row is said with its line", "[unit][traces][minimalloc]") {
    const std::string header = "id,lower,upper,size\n";
    CHECK(problem_error(header + "a,1.5,2,8\n") == "run:2: time '1.5' is no whole number");
    CHECK(problem_error(header + "a,1,,8\n") == "run:2: time '' is no whole number");
    CHECK(problem_error(header + "a,1\n") == "run:2: time '' is no whole number");
    CHECK(problem_error(header + "a,0,9223372036854775807,8\n") ==
          "run:2: time '9223372036854775807' is no whole number");
    CHECK(problem_error(header + "a,0,2,-8\n") == "run:2: size '-8' is no number of bytes");
    CHECK(problem_error(header + "a,0,2,4611686018427387904\n") ==
          "run:2: size '4611686018427387904' is no number of bytes");
    CHECK(problem_error(header + "a,0,2,8\nb7,3,2,8\n") == "run:3: buffer b7 ends before it begins");
    CHECK(problem_error("id,lower,upper,size,start\n") == "run:1: a column twice");
}

TEST_CASE("a problem and a log of operations are told apart by the column op", "[unit][traces][minimalloc]") {
    CHECK(format_of("id,lower,upper,size\n") == "minimalloc ");
    CHECK(format_of("buffer,start,end,size\r\n") == "minimalloc ");
    CHECK(format_of("op,id,size,lower,upper\n") == "csv-log ");
    CHECK(format_of("id,lower,size\n") == "");
}
