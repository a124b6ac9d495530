// Runs a fuzz target over the files of a folder, without libFuzzer: each file whole, cut short at up to 64
// places (--cuts N: at N), and with a byte changed at each of them. Fails when there is no file, so that lost
// seeds are noticed.
//
// Each input is copied into a block of exactly its size: a read beyond its end is seen by AddressSanitizer.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

void run(const std::string& input) {
  const std::unique_ptr<std::uint8_t[]> exact(new std::uint8_t[input.size()]);
  if (!input.empty()) std::memcpy(exact.get(), input.data(), input.size());
  LLVMFuzzerTestOneInput(exact.get(), input.size());
}

std::size_t run_file(const std::filesystem::path& path, std::size_t cuts) {
  std::ifstream file(path, std::ios::binary);
  const std::string input((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  run(input);
  std::size_t runs = 1;
  const std::size_t step = std::max<std::size_t>(1, input.size() / cuts);
  for (std::size_t cut = 0; cut < input.size(); cut += step) {
    run(input.substr(0, cut));
    std::string changed = input;
    changed[cut] = static_cast<char>(changed[cut] ^ 0x15);
    run(changed);
    runs += 2;
  }
  return runs;
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::filesystem::path> files;
  std::size_t cuts = 64;
  for (int i = 1; i < argc; ++i) {
    if (argv[i] == std::string("--cuts") && i + 1 < argc) cuts = std::max(1UL, std::stoul(argv[++i]));
    if (!std::filesystem::is_directory(argv[i])) continue;
    for (const auto& entry : std::filesystem::directory_iterator(argv[i])) files.push_back(entry.path());
  }
  std::ranges::sort(files);
  if (files.empty()) {
    std::fprintf(stderr, "no seed files: give a folder that has some\n");
    return 1;
  }
  std::size_t runs = 0;
  for (const auto& path : files) runs += run_file(path, cuts);
  std::printf("%zu inputs from %zu files\n", runs, files.size());
  return 0;
}
