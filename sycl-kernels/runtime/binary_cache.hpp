// One device binary in one file, trusted only when every byte of it is as it was written.
#pragma once

#include <optional>
#include <string>

namespace xk {

// The binary, if the file is whole and was written for this key; the key is compared in full.
std::optional<std::string> cache_read(const std::string &path, const std::string &key);

// Replaces the file in one step. False when it cannot be written, which costs the next start some time and no more.
bool cache_write(const std::string &path, const std::string &key, const std::string &binary) noexcept;

} // namespace xk
