#include "binary_cache.hpp"

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <unistd.h>

// The file: magic, key bytes (u32), binary bytes (u64), key, binary, checksum of everything before it (u64); the
// numbers in the byte order of the machine, which is the only one that can use the binary.
namespace xk {

static constexpr char magic[8] = {'X', 'K', 'B', 'I', 'N', '\0', '\0', '\1'};
static constexpr size_t head_bytes = sizeof(magic) + sizeof(uint32_t) + sizeof(uint64_t);

// FNV-1a; each step is a bijection, so that no change of a single byte goes unseen.
static uint64_t checksum(const char *data, size_t bytes) {
    uint64_t h = 0xcbf29ce484222325u;
    for (size_t i = 0; i < bytes; ++i) {
        h = (h ^ static_cast<unsigned char>(data[i])) * 0x100000001b3u;
    }
    return h;
}

template <class T> static T take(const std::string &from, size_t at) {
    T value;
    std::memcpy(&value, from.data() + at, sizeof(value));
    return value;
}

template <class T> static void append(std::string &to, T value) {
    to.append(reinterpret_cast<const char *>(&value), sizeof(value));
}

std::optional<std::string> cache_read(const std::string &path, const std::string &key) {
    std::ifstream file(path, std::ios::binary);
    if (!file) {
        return std::nullopt;
    }
    std::string all;
    try {
        all.assign(std::istreambuf_iterator<char>(file), {});
    } catch (const std::ios_base::failure &) {
        // What the stream library makes of a folder in the file's place.
        return std::nullopt;
    }
    if (all.size() < head_bytes + sizeof(uint64_t) || std::memcmp(all.data(), magic, sizeof(magic)) != 0) {
        return std::nullopt;
    }
    const uint64_t key_bytes = take<uint32_t>(all, sizeof(magic));
    const uint64_t binary_bytes = take<uint64_t>(all, sizeof(magic) + sizeof(uint32_t));
    const uint64_t body_bytes = all.size() - head_bytes - sizeof(uint64_t);
    if (key_bytes > body_bytes || binary_bytes != body_bytes - key_bytes) {
        return std::nullopt;
    }
    const size_t end = all.size() - sizeof(uint64_t);
    if (checksum(all.data(), end) != take<uint64_t>(all, end) || all.compare(head_bytes, key_bytes, key) != 0) {
        return std::nullopt;
    }
    return all.substr(head_bytes + key_bytes, binary_bytes);
}

bool cache_write(const std::string &path, const std::string &key, const std::string &binary) noexcept {
    try {
        static std::atomic<unsigned> counter{0};
        const std::string part = path + "." + std::to_string(getpid()) + "-" + std::to_string(++counter) + ".part";
        std::string all(magic, sizeof(magic));
        append(all, static_cast<uint32_t>(key.size()));
        append(all, static_cast<uint64_t>(binary.size()));
        all += key;
        all += binary;
        append(all, checksum(all.data(), all.size()));
        std::ofstream file(part, std::ios::binary | std::ios::trunc);
        file.write(all.data(), static_cast<std::streamsize>(all.size()));
        file.close();
        if (!file || std::rename(part.c_str(), path.c_str()) != 0) {
            std::remove(part.c_str());
            return false;
        }
        return true;
    } catch (...) {
        return false;
    }
}

} // namespace xk
