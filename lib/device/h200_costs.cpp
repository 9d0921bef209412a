// The bundled prices: one NVIDIA H200, driver 580.159.04, CUDA 13.0, 2026-11-29, the mean of two runs of
// `fragsim calibrate` (tests/gpu/results). cudaMalloc of 8 GiB and more varies between runs by a factor of 40: as long
// as the card has memory that was not freed a moment ago, 8 GiB take 0.6 ms, else it has to be cleared first. The first
// is taken up to 8 GiB; 32 and 64 GiB always took the second.
#include "lib/device/cost_model.hpp"

namespace fragsim {
namespace {

// Virtual memory was measured with nothing else alive only.
CostPoint idle(Bytes bytes, double ns) { return {bytes, ns, ns}; }

}  // namespace

const CostModel& CostModel::h200() {
    static const CostModel model({
        .malloc = {CostPoint{4 * kKiB, 3'338, 3'045}, CostPoint{64 * kKiB, 4'443, 4'202},
            CostPoint{512 * kKiB, 14'517, 14'044}, CostPoint{2 * kMiB, 49'280, 50'808},
            CostPoint{8 * kMiB, 49'160, 51'784}, CostPoint{20 * kMiB, 55'016, 60'594},
            CostPoint{64 * kMiB, 62'478, 64'714}, CostPoint{256 * kMiB, 78'202, 83'374},
            CostPoint{kGiB, 128'412, 120'392}, CostPoint{8 * kGiB, 600'000, 600'000},
            CostPoint{32 * kGiB, 90'000'000, 90'000'000}, CostPoint{64 * kGiB, 200'000'000, 200'000'000}},
        .free = {CostPoint{4 * kKiB, 2'843, 2'740}, CostPoint{64 * kKiB, 3'800, 3'990},
            CostPoint{512 * kKiB, 12'214, 12'164}, CostPoint{2 * kMiB, 41'122, 41'890},
            CostPoint{8 * kMiB, 46'394, 46'940}, CostPoint{20 * kMiB, 59'826, 60'758},
            CostPoint{64 * kMiB, 86'560, 89'656}, CostPoint{256 * kMiB, 190'850, 193'137},
            CostPoint{kGiB, 658'270, 503'234}, CostPoint{8 * kGiB, 4'790'486, 5'083'476},
            CostPoint{32 * kGiB, 20'123'290, 18'338'847}, CostPoint{64 * kGiB, 38'747'968, 41'334'678}},
        .reserve = {idle(2 * kMiB, 880), idle(8 * kMiB, 946), idle(20 * kMiB, 4'073), idle(64 * kMiB, 2'978),
            idle(256 * kMiB, 3'578), idle(kGiB, 3'594), idle(8 * kGiB, 3'228), idle(32 * kGiB, 19'212),
            idle(64 * kGiB, 23'968)},
        .unreserve = {idle(2 * kMiB, 1'010), idle(8 * kMiB, 945), idle(20 * kMiB, 3'671), idle(64 * kMiB, 3'212),
            idle(256 * kMiB, 3'408), idle(kGiB, 4'238), idle(8 * kGiB, 4'013), idle(32 * kGiB, 33'890),
            idle(64 * kGiB, 35'768)},
        .create = {idle(2 * kMiB, 12'072), idle(8 * kMiB, 11'506), idle(20 * kMiB, 12'682), idle(64 * kMiB, 12'066),
            idle(256 * kMiB, 20'626), idle(kGiB, 53'708), idle(8 * kGiB, 236'393), idle(32 * kGiB, 26'715'668),
            idle(64 * kGiB, 233'482'883)},
        .map = {idle(2 * kMiB, 1'148), idle(8 * kMiB, 1'136), idle(20 * kMiB, 1'185), idle(64 * kMiB, 1'152),
            idle(256 * kMiB, 1'380), idle(kGiB, 2'474), idle(8 * kGiB, 2'440), idle(32 * kGiB, 12'916),
            idle(64 * kGiB, 21'082)},
        .set_access = {idle(2 * kMiB, 30'214), idle(8 * kMiB, 29'294), idle(20 * kMiB, 31'696), idle(64 * kMiB, 29'882),
            idle(256 * kMiB, 50'910), idle(kGiB, 75'169), idle(8 * kGiB, 291'403), idle(32 * kGiB, 1'520'850),
            idle(64 * kGiB, 2'056'369)},
        .unmap = {idle(2 * kMiB, 19'121), idle(8 * kMiB, 18'584), idle(20 * kMiB, 20'414), idle(64 * kMiB, 18'312),
            idle(256 * kMiB, 25'358), idle(kGiB, 31'635), idle(8 * kGiB, 88'812), idle(32 * kGiB, 334'661),
            idle(64 * kGiB, 614'699)},
        .release = {idle(2 * kMiB, 14'221), idle(8 * kMiB, 18'946), idle(20 * kMiB, 26'518), idle(64 * kMiB, 45'666),
            idle(256 * kMiB, 146'824), idle(kGiB, 574'497), idle(8 * kGiB, 3'343'722), idle(32 * kGiB, 18'938'538),
            idle(64 * kGiB, 40'611'902)},
        .pool_grow = {idle(32 * kMiB, 52'700), idle(64 * kMiB, 97'326), idle(256 * kMiB, 322'752),
            idle(kGiB, 1'081'182), idle(8 * kGiB, 8'668'324), idle(32 * kGiB, 43'536'435), idle(64 * kGiB, 93'582'506)},
        .access_page_ns = 23'317,
        .pool_hit_ns = 379,
        .pool_free_ns = 482,
        .pool_move_ns = 31'542,
        .record_ns = 244,
        .wait_ns = 218,
        .synchronize_ns = 357,
    });
    return model;
}

}  // namespace fragsim
