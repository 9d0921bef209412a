// SHA-256 of bytes that come in pieces: the identity of a trace file in results.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

namespace fragsim {

class Sha256 {
public:
    Sha256();  // throws Error(environment) when the cryptographic library has no SHA-256
    ~Sha256();
    Sha256(Sha256&&) noexcept;
    Sha256& operator=(Sha256&&) noexcept;

    void update(const void* bytes, std::size_t count);
    std::string finish();  // lower-case hex, 64 letters; ends the computation

private:
    struct State;
    std::unique_ptr<State> state_;
};

}  // namespace fragsim
