// Build-time tool: compiles one kernel module from SYCL source text to SPIR-V.
//
//   kernel_compiler <source> <output.spv> <output.names> [option...]
//
// The compiler is the one inside the SYCL runtime; the CPU device is only the way to get at its SPIR-V.
#include <CL/cl.h>
#include <sycl/backend/opencl.hpp>
#include <sycl/sycl.hpp>

#include <fstream>
#include <iostream>
#include <iterator>

namespace ex = sycl::ext::oneapi::experimental;

static int write_file(const std::string &path, const char *data, size_t bytes) {
    std::ofstream file(path, std::ios::binary);
    file.write(data, static_cast<std::streamsize>(bytes));
    file.close();
    if (!file) {
        std::cerr << "cannot write " << path << "\n";
        return 1;
    }
    return 0;
}

int main(int argc, char **argv) {
    if (argc < 4) {
        std::cerr << "usage: kernel_compiler <source> <output.spv> <output.names> [option...]\n";
        return 2;
    }
    std::ifstream input(argv[1], std::ios::binary);
    const std::string text((std::istreambuf_iterator<char>(input)), {});
    if (!input) {
        std::cerr << "cannot read " << argv[1] << "\n";
        return 1;
    }
    const std::vector<std::string> options(argv + 4, argv + argc);
    std::string log;
    try {
        sycl::device device{sycl::cpu_selector_v};
        sycl::context context{device};
        auto source = ex::create_kernel_bundle_from_source(context, ex::source_language::sycl, text);
        auto built = ex::build(source, ex::properties{ex::build_options{options}, ex::save_log{&log}});
        std::cerr << log;

        const auto programs = sycl::get_native<sycl::backend::opencl>(built);
        if (programs.size() != 1) {
            std::cerr << "expected one SPIR-V module, got " << programs.size() << "\n";
            return 1;
        }
        size_t il_bytes = 0;
        size_t names_bytes = 0;
        cl_program program = programs.front();
        cl_int status = clGetProgramInfo(program, CL_PROGRAM_IL, 0, nullptr, &il_bytes);
        status |= clGetProgramInfo(program, CL_PROGRAM_KERNEL_NAMES, 0, nullptr, &names_bytes);
        std::string il(il_bytes, '\0');
        std::string names(names_bytes, '\0');
        status |= clGetProgramInfo(program, CL_PROGRAM_IL, il.size(), il.data(), nullptr);
        status |= clGetProgramInfo(program, CL_PROGRAM_KERNEL_NAMES, names.size(), names.data(), nullptr);
        if (status != CL_SUCCESS || il.empty()) {
            std::cerr << "the OpenCL runtime gave no SPIR-V\n";
            return 1;
        }
        names.resize(names.find('\0') == std::string::npos ? names.size() : names.find('\0'));
        return write_file(argv[2], il.data(), il.size()) | write_file(argv[3], names.data(), names.size());
    } catch (const std::exception &e) {
        std::cerr << log << e.what() << "\n";
        return 1;
    }
}
