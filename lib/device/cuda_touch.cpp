#include "lib/device/cuda_touch.hpp"

#include <algorithm>
#include <new>

namespace fragsim::cuda {
namespace {

// Word i of a buffer holds pattern ^ (i * 2654435761): Knuth's multiplicative hash, so that a buffer that lies shifted
// over itself is found, too. Threads walk the buffer in strides of the whole grid. PTX of sm_52, which every driver
// since CUDA 7 translates for the card it finds.
constexpr const char* kKernels = R"ptx(
.version 5.0
.target sm_52
.address_size 64

.visible .entry fill(.param .u64 address, .param .u64 words, .param .u32 pattern, .param .u64 found)
{
    .reg .pred %done;
    .reg .u32 %block, %threads, %thread, %blocks, %pattern, %low, %value;
    .reg .u64 %base, %words, %i, %step, %at;
    ld.param.u64 %base, [address];
    ld.param.u64 %words, [words];
    ld.param.u32 %pattern, [pattern];
    cvta.to.global.u64 %base, %base;
    mov.u32 %block, %ctaid.x;
    mov.u32 %threads, %ntid.x;
    mov.u32 %thread, %tid.x;
    mov.u32 %blocks, %nctaid.x;
    mul.wide.u32 %i, %block, %threads;
    cvt.u64.u32 %at, %thread;
    add.u64 %i, %i, %at;
    mul.wide.u32 %step, %blocks, %threads;
NEXT:
    setp.ge.u64 %done, %i, %words;
    @%done bra END;
    cvt.u32.u64 %low, %i;
    mul.lo.u32 %value, %low, 2654435761;
    xor.b32 %value, %value, %pattern;
    shl.b64 %at, %i, 2;
    add.u64 %at, %base, %at;
    st.global.u32 [%at], %value;
    add.u64 %i, %i, %step;
    bra NEXT;
END:
    ret;
}

.visible .entry check(.param .u64 address, .param .u64 words, .param .u32 pattern, .param .u64 found)
{
    .reg .pred %done, %same;
    .reg .u32 %block, %threads, %thread, %blocks, %pattern, %low, %value, %read, %old;
    .reg .u64 %base, %words, %i, %step, %at, %found, %before;
    ld.param.u64 %base, [address];
    ld.param.u64 %words, [words];
    ld.param.u32 %pattern, [pattern];
    ld.param.u64 %found, [found];
    cvta.to.global.u64 %base, %base;
    cvta.to.global.u64 %found, %found;
    mov.u32 %block, %ctaid.x;
    mov.u32 %threads, %ntid.x;
    mov.u32 %thread, %tid.x;
    mov.u32 %blocks, %nctaid.x;
    mul.wide.u32 %i, %block, %threads;
    cvt.u64.u32 %at, %thread;
    add.u64 %i, %i, %at;
    mul.wide.u32 %step, %blocks, %threads;
NEXT:
    setp.ge.u64 %done, %i, %words;
    @%done bra END;
    cvt.u32.u64 %low, %i;
    mul.lo.u32 %value, %low, 2654435761;
    xor.b32 %value, %value, %pattern;
    shl.b64 %at, %i, 2;
    add.u64 %at, %base, %at;
    ld.global.u32 %read, [%at];
    add.u64 %i, %i, %step;
    setp.eq.u32 %same, %read, %value;
    @%same bra NEXT;
    atom.global.add.u64 %before, [%found], 1;
    atom.global.cas.b32 %old, [%found+8], 0, %pattern;
    bra NEXT;
END:
    ret;
}
)ptx";

constexpr unsigned kThreads = 256, kMostBlocks = 1024;

}  // namespace

Touch::Touch() : driver_(Driver::get()) {
    driver_.check(driver_.cuModuleLoadData(&module_, kKernels), "cuModuleLoadData");
    driver_.check(driver_.cuModuleGetFunction(&fill_, module_, "fill"), "cuModuleGetFunction");
    driver_.check(driver_.cuModuleGetFunction(&check_, module_, "check"), "cuModuleGetFunction");
    void* host = nullptr;
    driver_.check(driver_.cuMemHostAlloc(&host, sizeof(Spoilt), kHostMapped), "cuMemHostAlloc", sizeof(Spoilt));
    found_ = new (host) Spoilt;
    driver_.check(driver_.cuMemHostGetDevicePointer(&found_on_device_, host, 0), "cuMemHostGetDevicePointer");
}

Touch::~Touch() {
    driver_.cuMemFreeHost(const_cast<Spoilt*>(found_));
    driver_.cuModuleUnload(module_);
}

void Touch::fill(DevicePointer address, Bytes bytes, std::uint32_t pattern, Stream stream) const {
    launch(fill_, address, bytes, pattern, stream);
}

void Touch::check(DevicePointer address, Bytes bytes, std::uint32_t pattern, Stream stream) const {
    launch(check_, address, bytes, pattern, stream);
}

void Touch::launch(Function kernel, DevicePointer address, Bytes bytes, std::uint32_t pattern, Stream stream) const {
    auto words = static_cast<std::uint64_t>(bytes) / 4;
    DevicePointer found = found_on_device_;
    void* arguments[] = {&address, &words, &pattern, &found};
    const auto blocks = static_cast<unsigned>(std::clamp<std::uint64_t>(words / kThreads, 1, kMostBlocks));
    driver_.check(
        driver_.cuLaunchKernel(kernel, blocks, 1, 1, kThreads, 1, 1, 0, stream, arguments, nullptr), "cuLaunchKernel");
}

Touch::Spoilt Touch::spoilt() const {
    driver_.check(driver_.cuCtxSynchronize(), "cuCtxSynchronize");
    return {found_->words, found_->first_pattern};
}

}  // namespace fragsim::cuda
