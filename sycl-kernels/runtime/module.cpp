// Modules: device code from its cache file, from SPIR-V, or from source text.
#include "binary_cache.hpp"
#include "objects.hpp"

#include <CL/cl.h>
#include <sycl/backend/opencl.hpp>

#include <dlfcn.h>

namespace xk {

// Names that the SPIR-V gives to kernels written as free functions.
static constexpr const char *spirv_prefix = "__sycl_kernel_";

// Without it a driver may divide with an error of a few units in the last place.
static constexpr const char *correct_rounding = "-cl-fp32-correctly-rounded-divide-sqrt";

// The few OpenCL calls that SYCL has no words for. Taken from the loader that SYCL itself has loaded, so that nothing
// links to OpenCL where there is none.
struct OpenCl {
    decltype(&clCreateProgramWithIL) create_with_il;
    decltype(&clCreateProgramWithBinary) create_with_binary;
    decltype(&clBuildProgram) build;
    decltype(&clGetProgramInfo) program_info;
    decltype(&clGetProgramBuildInfo) build_info;
    decltype(&clCreateKernel) create_kernel;
    decltype(&clReleaseProgram) release_program;
    decltype(&clReleaseKernel) release_kernel;
    decltype(&clReleaseContext) release_context;
    decltype(&clReleaseDevice) release_device;

    static const OpenCl &get() {
        static const OpenCl calls;
        return calls;
    }

  private:
    OpenCl() {
        void *library = dlopen("libOpenCL.so.1", RTLD_NOW | RTLD_NOLOAD);
        if (library == nullptr) {
            library = dlopen((library_folder() + "libOpenCL.so.1").c_str(), RTLD_NOW);
        }
        if (library == nullptr) {
            fail(XK_ERR_DEVICE, "OpenCL", "libOpenCL.so.1", dlerror());
        }
        load(library, create_with_il, "clCreateProgramWithIL");
        load(library, create_with_binary, "clCreateProgramWithBinary");
        load(library, build, "clBuildProgram");
        load(library, program_info, "clGetProgramInfo");
        load(library, build_info, "clGetProgramBuildInfo");
        load(library, create_kernel, "clCreateKernel");
        load(library, release_program, "clReleaseProgram");
        load(library, release_kernel, "clReleaseKernel");
        load(library, release_context, "clReleaseContext");
        load(library, release_device, "clReleaseDevice");
    }

    template <class F> static void load(void *library, F &call, const char *name) {
        call = reinterpret_cast<F>(dlsym(library, name));
        if (call == nullptr) {
            fail(XK_ERR_DEVICE, "OpenCL", name, "a library without it");
        }
    }
};

// The OpenCL objects behind a card; get_native hands out a reference that is ours to give back.
struct Native {
    cl_context context;
    cl_device_id device;

    explicit Native(const Card &card)
        : context(sycl::get_native<sycl::backend::opencl>(card.context)),
          device(sycl::get_native<sycl::backend::opencl>(card.device)) {}
    ~Native() {
        OpenCl::get().release_context(context);
        OpenCl::get().release_device(device);
    }
    Native(const Native &) = delete;
    Native &operator=(const Native &) = delete;
};

struct Program {
    cl_program program = nullptr;

    Program() = default;
    ~Program() { reset(); }
    Program(const Program &) = delete;
    Program &operator=(const Program &) = delete;
    void reset() {
        if (program != nullptr) {
            OpenCl::get().release_program(program);
            program = nullptr;
        }
    }
};

static std::string build_log(cl_program program, cl_device_id device) {
    size_t bytes = 0;
    if (OpenCl::get().build_info(program, device, CL_PROGRAM_BUILD_LOG, 0, nullptr, &bytes) != CL_SUCCESS) {
        return {};
    }
    std::string log(bytes, '\0');
    OpenCl::get().build_info(program, device, CL_PROGRAM_BUILD_LOG, log.size(), log.data(), nullptr);
    return log.c_str();
}

static bool load_binary(Program &out, const Native &native, const std::string &binary) {
    const auto &cl = OpenCl::get();
    const auto *data = reinterpret_cast<const unsigned char *>(binary.data());
    const size_t bytes = binary.size();
    cl_int of_binary = CL_SUCCESS;
    cl_int status = CL_SUCCESS;
    out.program = cl.create_with_binary(native.context, 1, &native.device, &bytes, &data, &of_binary, &status);
    if (out.program == nullptr || status != CL_SUCCESS || of_binary != CL_SUCCESS ||
        cl.build(out.program, 1, &native.device, nullptr, nullptr, nullptr) != CL_SUCCESS) {
        out.reset();
        return false;
    }
    return true;
}

// Drivers trust SPIR-V and can crash on what only looks like it; refuse at least what does not.
static void check_spirv(const xk_module_desc &desc) {
    uint32_t magic = 0;
    if (desc.spirv_bytes >= 20 && desc.spirv_bytes % 4 == 0) {
        std::memcpy(&magic, desc.spirv, sizeof(magic));
    }
    if (magic != 0x07230203) {
        fail(XK_ERR_VALUE, desc.name, "SPIR-V", std::to_string(desc.spirv_bytes) + " bytes of something else");
    }
}

static void build_spirv(Program &out, const Native &native, const xk_module_desc &desc) {
    const auto &cl = OpenCl::get();
    cl_int status = CL_SUCCESS;
    out.program = cl.create_with_il(native.context, desc.spirv, desc.spirv_bytes, &status);
    if (out.program == nullptr || status != CL_SUCCESS) {
        throw Error(XK_ERR_BUILD,
                    std::string(desc.name) + ": the driver refused the SPIR-V, OpenCL error " + std::to_string(status));
    }
    status = cl.build(out.program, 1, &native.device, correct_rounding, nullptr, nullptr);
    if (status != CL_SUCCESS) {
        throw Error(XK_ERR_BUILD, std::string(desc.name) + ": OpenCL error " + std::to_string(status) + "\n" +
                                      build_log(out.program, native.device));
    }
}

static std::string binary_of(cl_program program) {
    const auto &cl = OpenCl::get();
    size_t bytes = 0;
    if (cl.program_info(program, CL_PROGRAM_BINARY_SIZES, sizeof(bytes), &bytes, nullptr) != CL_SUCCESS) {
        return {};
    }
    std::string binary(bytes, '\0');
    auto *data = reinterpret_cast<unsigned char *>(binary.data());
    if (cl.program_info(program, CL_PROGRAM_BINARIES, sizeof(data), &data, nullptr) != CL_SUCCESS) {
        return {};
    }
    return binary;
}

static void add_kernel(Module &module, const char *name, sycl::kernel kernel) {
    namespace info = sycl::info;
    // The CUDA backend counts the arguments that were set so far, none.
    std::optional<uint32_t> arguments;
    if (module.card->backend != sycl::backend::ext_oneapi_cuda) {
        arguments = kernel.get_info<info::kernel::num_args>();
    }
    const size_t most = kernel.get_info<info::kernel_device_specific::work_group_size>(module.card->device);
    module.kernels[name] =
        std::unique_ptr<xk_kernel>(new xk_kernel{std::move(kernel), module.card.get(), name, arguments, most});
}

// Takes the kernels out of a program; false if one of them is not there.
static bool add_kernels(Module &module, const xk_module_desc &desc, cl_program program) {
    const auto &cl = OpenCl::get();
    for (uint32_t i = 0; i < desc.kernel_count; ++i) {
        const std::string name = spirv_prefix + std::string(desc.kernel_names[i]);
        cl_int status = CL_SUCCESS;
        cl_kernel native = cl.create_kernel(program, name.c_str(), &status);
        if (native == nullptr || status != CL_SUCCESS) {
            return false;
        }
        auto kernel = sycl::make_kernel<sycl::backend::opencl>(native, module.card->context);
        cl.release_kernel(native);
        add_kernel(module, desc.kernel_names[i], std::move(kernel));
    }
    return true;
}

static void create_opencl(Module &module, const xk_module_desc &desc) {
    const Card &card = *module.card;
    const Native native(card);
    const bool cached = desc.cache_path != nullptr && desc.cache_path[0] != '\0';
    const std::string key = card.name + "\n" + card.driver + "\n" + desc.name + "\n" + desc.hash;
    Program program;
    if (cached) {
        if (const auto binary = cache_read(desc.cache_path, key)) {
            if (load_binary(program, native, *binary) && add_kernels(module, desc, program.program)) {
                module.from_cache = true;
                return;
            }
            module.kernels.clear();
            program.reset();
        }
    }
    build_spirv(program, native, desc);
    if (!add_kernels(module, desc, program.program)) {
        fail(XK_ERR_BUILD, desc.name, "all the kernels it names", "SPIR-V without one of them");
    }
    if (cached) {
        const std::string binary = binary_of(program.program);
        if (!binary.empty()) {
            cache_write(desc.cache_path, key, binary);
        }
    }
}

// Level Zero's driver keeps a cache of its own.
static void create_spirv(Module &module, const xk_module_desc &desc) {
    const auto *data = static_cast<const std::byte *>(desc.spirv);
    const std::vector<std::byte> spirv(data, data + desc.spirv_bytes);
    auto source = ex::create_kernel_bundle_from_source(module.card->context, ex::source_language::spirv, spirv);
    auto built = [&] {
        try {
            const std::vector<std::string> options{correct_rounding};
            return ex::build(source, ex::properties{ex::build_options{options}});
        } catch (const sycl::exception &) {
            // A driver that does not know the option may still round right; the self-test will tell.
            return ex::build(source);
        }
    }();
    for (uint32_t i = 0; i < desc.kernel_count; ++i) {
        const std::string name = spirv_prefix + std::string(desc.kernel_names[i]);
        add_kernel(module, desc.kernel_names[i], built.ext_oneapi_get_kernel(name));
    }
}

static void create_from_source(Module &module, const xk_module_desc &desc) {
    require(desc.source, "source, which this backend needs");
    auto source = ex::create_kernel_bundle_from_source(module.card->context, ex::source_language::sycl,
                                                       std::string(desc.source, desc.source_bytes));
    std::string log;
    const std::vector<std::string> options{"-O3", "-ffp-contract=off", "-fno-sycl-dead-args-optimization",
                                           "-DXK_SG32=1"};
    try {
        auto built = ex::build(source, ex::properties{ex::build_options{options}, ex::save_log{&log}});
        for (uint32_t i = 0; i < desc.kernel_count; ++i) {
            add_kernel(module, desc.kernel_names[i], built.ext_oneapi_get_kernel(desc.kernel_names[i]));
        }
    } catch (const sycl::exception &e) {
        throw Error(XK_ERR_BUILD, std::string(desc.name) + ": " + e.what() + "\n" + log);
    }
}

} // namespace xk

using namespace xk;

xk_status xk_module_create(xk_card *card, const xk_module_desc *desc, xk_module **out) {
    return guard("xk_module_create", [&] {
        require(card, "card");
        const auto d = read_struct(desc, "desc");
        require(out, "out");
        require(d.name, "name");
        require(d.hash, "hash");
        require(d.kernel_names, "kernel_names");
        if (d.kernel_count == 0) {
            fail(XK_ERR_VALUE, "kernel_count", "at least 1", d.kernel_count);
        }
        for (uint32_t i = 0; i < d.kernel_count; ++i) {
            require(d.kernel_names[i], "kernel_names");
        }
        auto module = std::make_unique<xk_module>();
        module->module.card = card->card;
        module->module.name = d.name;
        if (card->card->backend == sycl::backend::ext_oneapi_cuda) {
            create_from_source(module->module, d);
        } else {
            require(d.spirv, "spirv");
            check_spirv(d);
            if (card->card->backend == sycl::backend::opencl) {
                create_opencl(module->module, d);
            } else {
                create_spirv(module->module, d);
            }
        }
        *out = module.release();
    });
}

xk_status xk_module_from_cache(const xk_module *module, uint32_t *from_cache) {
    return guard("xk_module_from_cache", [&] {
        require(module, "module");
        require(from_cache, "from_cache");
        *from_cache = module->module.from_cache ? 1 : 0;
    });
}

xk_status xk_module_kernel(const xk_module *module, const char *name, xk_kernel **out) {
    return guard("xk_module_kernel", [&] {
        require(module, "module");
        require(name, "name");
        require(out, "out");
        const auto &kernels = module->module.kernels;
        const auto found = kernels.find(std::string_view(name));
        if (found == kernels.end()) {
            std::string known;
            for (const auto &entry : kernels) {
                known += (known.empty() ? "" : ", ") + entry.first;
            }
            fail(XK_ERR_NOT_FOUND, ("kernel of module " + module->module.name).c_str(), "one of " + known, name);
        }
        *out = found->second.get();
    });
}

void xk_module_destroy(xk_module *module) {
    if (module != nullptr) {
        module->module.card->wait_all();
        delete module;
    }
}
