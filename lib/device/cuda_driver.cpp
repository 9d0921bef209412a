#include "lib/device/cuda_driver.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include "lib/core/error.hpp"
#include "lib/core/sizes.hpp"

namespace fragsim::cuda {
namespace {

constexpr const char* kLibrary = "libcuda.so.1";

Driver load() {
    void* library = dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
    if (!library)
        throw Error(ErrorCode::environment, fmt::format("no CUDA driver on this machine: {}", dlerror()),
            "--device host needs none; the driver comes with the GPU's kernel module, not with the CUDA toolkit");
    Driver driver{};
    const auto find = [&](const char* symbol) {
        void* address = dlsym(library, symbol);
        if (!address)
            throw Error(ErrorCode::environment, fmt::format("the CUDA driver has no {}", symbol),
                "a driver of CUDA 11.4 or later is needed");
        return address;
    };
#define FRAGSIM_CUDA_FIND(member, symbol, ...) driver.member = reinterpret_cast<Status (*)(__VA_ARGS__)>(find(symbol));
    FRAGSIM_CUDA_FUNCTIONS(FRAGSIM_CUDA_FIND)
#undef FRAGSIM_CUDA_FIND
    driver.cuGetErrorName = reinterpret_cast<Status (*)(Status, const char**)>(find("cuGetErrorName"));
    if (const Status status = driver.cuInit(0); status != kSuccess)
        throw Error(ErrorCode::environment, fmt::format("the CUDA driver does not start: {}", driver.name(status)),
            "nvidia-smi shows whether it has a GPU; CUDA_VISIBLE_DEVICES can hide one");
    return driver;
}

}  // namespace

const Driver& Driver::get() {
    static const Driver driver = load();
    return driver;
}

const char* Driver::name(Status status) const {
    const char* name = nullptr;
    return cuGetErrorName(status, &name) == kSuccess && name ? name : "unknown error";
}

void Driver::check(Status status, const char* call, Bytes bytes) const {
    if (status == kSuccess) return;
    throw Error(ErrorCode::environment,
        bytes == 0 ? fmt::format("{} failed: {}", call, name(status))
                   : fmt::format("{} of {} failed: {}", call, format_size(bytes), name(status)),
        "nothing of it is left on the device");
}

}  // namespace fragsim::cuda
