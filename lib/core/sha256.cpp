#include "lib/core/sha256.hpp"

#include <array>

#include <openssl/evp.h>

#include "lib/core/error.hpp"

namespace fragsim {
namespace {

void require(int result) {
    if (result != 1) throw Error(ErrorCode::environment, "cannot compute SHA-256", "check the OpenSSL installation");
}

}  // namespace

struct Sha256::State {
    EVP_MD_CTX* context = EVP_MD_CTX_new();

    State() = default;
    State(const State&) = delete;
    State& operator=(const State&) = delete;
    ~State() { EVP_MD_CTX_free(context); }
};

Sha256::Sha256() : state_(std::make_unique<State>()) {
    require(state_->context != nullptr ? EVP_DigestInit_ex(state_->context, EVP_sha256(), nullptr) : 0);
}

Sha256::~Sha256() = default;
Sha256::Sha256(Sha256&&) noexcept = default;
Sha256& Sha256::operator=(Sha256&&) noexcept = default;

void Sha256::update(const void* bytes, std::size_t count) { require(EVP_DigestUpdate(state_->context, bytes, count)); }

std::string Sha256::finish() {
    std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
    unsigned length = 0;
    require(EVP_DigestFinal_ex(state_->context, digest.data(), &length));

    constexpr char kDigits[] = "0123456789abcdef";
    std::string hex;
    hex.reserve(2 * length);
    for (unsigned i = 0; i < length; ++i) {
        hex += kDigits[digest[i] >> 4];
        hex += kDigits[digest[i] & 15];
    }
    return hex;
}

}  // namespace fragsim
