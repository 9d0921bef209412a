// fragsim calibrate: what driver calls cost on this card, for the host model.
#include <fmt/chrono.h>
#include <fmt/format.h>

#include <ctime>
#include <memory>

#include "apps/fragsim/cli.hpp"
#include "apps/fragsim/cost_profile.hpp"
#include "apps/fragsim/output_file.hpp"
#include "lib/device/cuda_calibrate.hpp"

namespace fragsim {
namespace {

struct Options {
    int ordinal = 0;
    std::string output = "-";
};

int run(const Options& options, const Invocation& invocation) {
    OutputFile file(options.output, invocation.force);
    CudaDevice device({.ordinal = options.ordinal, .capacity = {}, .leave = {}});
    const std::string card = fmt::format("{}, CUDA {}.{}", device.card().name, device.card().driver_version / 1000,
        device.card().driver_version % 1000 / 10);
    const std::string date = fmt::format("{:%Y-%m-%d}", fmt::gmtime(std::time(nullptr)));
    const std::string text = write_cost_profile(measure_costs(device), card, date);
    file.write(text);
    file.commit(invocation.quiet);
    return 0;
}

}  // namespace

void add_calibrate_command(CLI::App& app, Invocation& invocation) {
    CLI::App* command = app.add_subcommand("calibrate", "What driver calls cost on this machine's GPU");
    auto options = std::make_shared<Options>();
    command->add_option("--gpu", options->ordinal, "which GPU (0)")->type_name("N");
    command->add_option("-o,--output", options->output, "where the profile goes (standard output)")->type_name("FILE");
    command->footer(
        "Takes some seconds on an idle card, and at most half of its free memory at a time.\n\n"
        "example:\n"
        "  fragsim calibrate -o mycard.json\n"
        "  fragsim compare run.pickle --policy caching --policy expandable --cost-profile mycard.json");
    invocation.add_options(*command);
    command->callback(
        [options, &invocation] { invocation.run = [options, &invocation] { return run(*options, invocation); }; });
}

}  // namespace fragsim
