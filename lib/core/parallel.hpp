// Independent pieces of work on several threads.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

namespace fragsim {

// What the machine runs at once, at least 1.
inline int hardware_jobs() { return static_cast<int>(std::max(1u, std::thread::hardware_concurrency())); }

// Calls work(i) once for each i below `count`, on up to `jobs` threads, in no order. Results are stored by index, so
// that the number of threads cannot be seen in them. What a call throws is thrown here when all have ended; no new ones
// begin meanwhile.
template <class Work>
void for_each_index(std::size_t count, int jobs, Work&& work) {
    std::atomic<std::size_t> next{0};
    std::exception_ptr failure;
    std::mutex failing;
    const auto run = [&] {
        for (std::size_t i = next++; i < count; i = next++) try {
                work(i);
            } catch (...) {
                next = count;
                const std::lock_guard lock(failing);
                if (!failure) failure = std::current_exception();
            }
    };
    std::vector<std::thread> threads;
    try {
        for (std::size_t t = 1; t < count && t < static_cast<std::size_t>(jobs); ++t) threads.emplace_back(run);
    } catch (const std::system_error&) {
        // The system has no more threads; those that there are do.
    }
    run();
    for (std::thread& thread : threads) thread.join();
    if (failure) std::rethrow_exception(failure);
}

}  // namespace fragsim
