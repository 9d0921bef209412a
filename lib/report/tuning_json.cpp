#include "lib/report/json_parts.hpp"
#include "lib/report/setting_words.hpp"
#include "lib/report/tuning.hpp"

namespace fragsim {
namespace {

Json json_score(const Score& score) {
    return {{"failing_traces", score.failing}, {"num_ooms", score.ooms}, {"reserved_bytes.all.peak", score.reserved},
        {"reserved_bytes_sum", score.reserved_sum}, {"driver_time_ns", score.stall_ns},
        {"num_driver_calls", score.driver_calls}, {"num_alloc_retries", score.retries}};
}

Json json_candidate(const Candidate& candidate) {
    Json json{{"PYTORCH_CUDA_ALLOC_CONF", candidate.alloc_conf}};
    json.update(json_score(candidate.score));
    json["entries"] = candidate.traits.entries;
    if (candidate.card) json["min_capacity_bytes"] = candidate.card->bytes ? Json(*candidate.card->bytes) : Json();
    return json;
}

Json json_cover(const Cover& cover) {
    return {{"complete", cover.complete}, {"points", cover.points}, {"covered", cover.covered}};
}

}  // namespace

std::string tuning_json(
    const TunedTraces& tuned, const std::string& tool_version, const std::vector<std::string>& argv) {
    const Tuning& tuning = tuned.tuning;
    Json document = json_head("fragsim.tuning", tool_version, argv, kLimitsVersion);
    document["traces"] = Json::array();
    for (std::size_t i = 0; i < tuned.recordings.size(); ++i) {
        const TuneTask::Run& run = tuned.task->runs[i];
        Json json = json_trace(*tuned.recordings[i], *run.trace);
        json["capacity_bytes"] = json_bytes(run.options.limits.capacity);
        json["memory_limit_bytes"] = json_bytes(run.options.limits.memory_limit);
        document["traces"].push_back(std::move(json));
    }
    const auto candidate = [&](const std::optional<std::size_t>& index) {
        return index ? json_candidate(tuning.tried[*index]) : Json();
    };
    document["best"] = candidate(tuning.best);
    document["simplest_within_1_percent"] = candidate(tuning.best);  // which the best is
    document["best_simple"] = candidate(tuning.simple);
    document["in_force"] = candidate(tuning.in_force);
    document["default"] = candidate(tuning.standard);
    document["expandable_segments"] = candidate(tuning.expandable);
    document["optimum"] = candidate(tuning.optimum);
    document["extra"] = candidate(tuning.extra);
    if (tuning.extra) document["extra"]["program_line"] = fraction_line(common_bound(*tuned.task));
    document["program_assumed"] = tuned.task->program.assumed;
    document["recommended"] = nullptr;  // nothing is worth a change
    if (tuning.best != tuning.reference()) {
        const std::string& conf = tuning.tried[tuning.best].alloc_conf;
        document["recommended"] = {{"label", setting_label(conf)}, {"line", setting_line(conf, tuned.task->program)}};
    }
    for (const auto& [name, rows] : {std::pair("pareto", &tuning.pareto), std::pair("folklore", &tuning.folklore)}) {
        document[name] = Json::array();
        for (const std::size_t row : *rows) document[name].push_back(json_candidate(tuning.tried[row]));
    }
    document["keys"] = Json::array();
    for (const KeySearch& search : tuning.keys) {
        Json json{{"key", search.name}, {"cover", json_cover(search.cover)}, {"curve", Json::array()}};
        const auto value = [&](std::int64_t index) {
            const std::string& text = tuned.task->keys[search.key].values[static_cast<std::size_t>(index)];
            return text.empty() ? Json() : Json(text);
        };
        for (const CurvePiece& piece : search.curve) {
            Json point{{"low", value(piece.low)}, {"high", value(piece.high)}};
            point.update(json_score(piece.score));
            json["curve"].push_back(std::move(point));
        }
        document["keys"].push_back(std::move(json));
    }
    document["jointly"] = json_cover(tuning.jointly);
    document["settings_tried"] = tuning.tried.size();
    document["replays"] = tuning.replays;
    document["exhausted"] = tuning.exhausted;
    return to_text(document);
}

}  // namespace fragsim
