// Templates that Bankshot's C++ has too, compiled otherwise.
#include <algorithm>
#include <charconv>
#include <functional>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

extern "C" unsigned cpp_digits(unsigned end) {
    std::vector<std::string> words;
    std::map<std::string, std::shared_ptr<std::string>> by_name;
    for (unsigned number = 0; number < end; number++) {
        char text[16];
        const auto result = std::to_chars(text, text + sizeof text, number);
        words.emplace_back(text, result.ptr);
        by_name[words.back()] = std::make_shared<std::string>(std::to_string(number));
    }
    std::sort(words.begin(), words.end());
    const std::function<unsigned(const std::string &)> size = [&](const std::string &word) {
        return static_cast<unsigned>(by_name.at(word)->size());
    };
    unsigned count = 0;
    for (const auto &word : words) {
        count += size(word);
    }
    try {
        throw std::runtime_error(std::to_string(count));
    } catch (const std::exception &error) {
        return static_cast<unsigned>(std::stoul(error.what()));
    }
}
